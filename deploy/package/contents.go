package main

import (
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/files"
)

// info is what a package says and contains. Compressed manual pages are put into a directory.
func (j *job) info(format, arch string, made time.Time, pages string) (*nfpm.Info, error) {
	zsh := "/usr/share/zsh/vendor-completions/_weir" // where Debian has them
	if format == "rpm" {
		zsh = "/usr/share/zsh/site-functions/_weir"
	}
	all := contents{made: made}
	all.add(j.binary(arch), "/usr/bin/weir", 0o755)
	all.add("../systemd/weir.service", "/usr/lib/systemd/system/weir.service", 0o644)
	all.add(filepath.Join(j.files, "sysusers.conf"), "/usr/lib/sysusers.d/weir.conf", 0o644)
	all.add("", "/etc/weir", 0o750).Type = files.TypeDir
	all.add(filepath.Join(j.files, "weir.yaml"), "/etc/weir/weir.yaml", 0o640).Type = files.TypeConfigNoReplace
	all.add(filepath.Join(j.files, "rules.yaml"), "/etc/weir/rules.yaml", 0o640).Type = files.TypeConfigNoReplace
	all.add(filepath.Join(j.binaries, "completions/weir.bash"), "/usr/share/bash-completion/completions/weir", 0o644)
	all.add(filepath.Join(j.binaries, "completions/_weir"), zsh, 0o644)
	all.add(filepath.Join(j.binaries, "completions/weir.fish"), "/usr/share/fish/vendor_completions.d/weir.fish", 0o644)
	all.add("../../LICENSE", "/usr/share/doc/weir/copyright", 0o644)
	all.add("../../CHANGELOG.md", "/usr/share/doc/weir/CHANGELOG.md", 0o644)
	if err := all.addPages(filepath.Join(j.binaries, "man"), pages); err != nil {
		return nil, err
	}
	return nfpm.WithDefaults(&nfpm.Info{
		Name: "weir", Arch: arch, Platform: "linux", Version: j.version, MTime: made,
		Section: "net", Priority: "optional", License: "MIT", Homepage: "https://github.com/weirhq/weir",
		Maintainer:      "weirhq <weirhq@users.noreply.github.com>",
		Description:     "API rate limiter\nweir decides whether a request is allowed: a service over HTTP and gRPC,\nand a reverse proxy, with limits in memory or in Redis.",
		DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents: all.list,
			Scripts:  nfpm.Scripts{PostInstall: filepath.Join(j.files, "postinstall.sh"), PreRemove: filepath.Join(j.files, "preremove.sh"), PostRemove: filepath.Join(j.files, "postremove.sh")},
			RPM:      nfpm.RPM{BuildHost: "weir", Compression: "gzip", Group: "System Environment/Daemons", Summary: "API rate limiter"},
		},
	}), nil
}

// contents are the files of a package, all of one time.
type contents struct {
	made time.Time
	list files.Contents
}

func (c *contents) add(source, destination string, mode fs.FileMode) *files.Content {
	content := &files.Content{Source: source, Destination: destination, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: c.made}}
	c.list = append(c.list, content)
	return content
}

// addPages adds compressed manual pages, which it writes into a directory.
func (c *contents) addPages(from, to string) error {
	pages, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(from, page.Name()))
		if err != nil {
			return err
		}
		name := page.Name() + ".gz"
		file, err := os.Create(filepath.Join(to, name))
		if err != nil {
			return err
		}
		w, _ := gzip.NewWriterLevel(file, gzip.BestCompression) // without a time, so always the same
		if _, err = w.Write(text); err == nil {
			err = w.Close()
		}
		if err != nil {
			file.Close()
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
		c.add(file.Name(), "/usr/share/man/man1/"+name, 0o644)
	}
	return nil
}
