// Package makes the Debian and RPM packages of weir from the binaries, manual pages and
// completions that "make release" leaves in bin/build:
//
//	go run . --version v0.1.0 --binaries ../../bin/build --out ../../bin/release
//
// The same binaries give the same bytes.
package main

import (
	"debug/buildinfo"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

var (
	architectures = []string{"amd64", "arm64"}
	formats       = []string{"deb", "rpm"}
)

func main() {
	j := job{files: "files", progress: os.Stdout}
	flag.StringVar(&j.version, "version", "", "the `version`, such as v0.1.0")
	flag.StringVar(&j.binaries, "binaries", "../../bin/build", "the `directory` with linux_amd64/weir, linux_arm64/weir, man and completions")
	flag.StringVar(&j.out, "out", "../../bin/release", "the `directory` for the packages")
	flag.Parse()
	if err := j.run(); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

// job is one run.
type job struct {
	version, binaries, out string
	files                  string // the directory of what is only in packages
	progress               io.Writer
}

func (j *job) run() error {
	if j.version == "" {
		return fmt.Errorf("--version is required; write for example --version v0.1.0")
	}
	if err := os.MkdirAll(j.out, 0o755); err != nil {
		return err
	}
	for _, arch := range architectures {
		for _, format := range formats {
			if err := j.write(format, arch); err != nil {
				return fmt.Errorf("%s for %s: %w", format, arch, err)
			}
		}
	}
	return nil
}

func (j *job) binary(arch string) string {
	return filepath.Join(j.binaries, "linux_"+arch, "weir")
}

// write writes one package.
func (j *job) write(format, arch string) error {
	p, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	made, err := commitTime(j.binary(arch))
	if err != nil {
		return err
	}
	pages, err := os.MkdirTemp("", "weir-man")
	if err != nil {
		return err
	}
	defer os.RemoveAll(pages)
	info, err := j.info(format, arch, made, pages)
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(j.out, p.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	if err := p.Package(info, file); err != nil {
		file.Close()
		return err
	}
	fmt.Fprintln(j.progress, file.Name())
	return file.Close()
}

// commitTime is when the commit was made from which a binary was built, and the beginning of
// 1980 if it does not say.
func commitTime(binary string) (time.Time, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return time.Time{}, err
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			return time.Parse(time.RFC3339, s.Value)
		}
	}
	return time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC), nil
}
