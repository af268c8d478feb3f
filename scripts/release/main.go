// Release builds the files of a release: an archive for each platform, an SBOM, the notes, and the
// checksums of all. "make release VERSION=v0.1.0" runs it.
//
// The same commit, built with the same version of Go, gives the same bytes, on any machine and in
// any directory.
package main

import (
	"cmp"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/build"
)

// platforms are what a release has archives for.
var platforms = []string{
	"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64",
	"windows/amd64", "windows/arm64", "freebsd/amd64", "freebsd/arm64",
}

func main() {
	r := release{dir: ".", platforms: platforms, progress: os.Stdout}
	flag.StringVar(&r.version, "version", "", "the `version` to release, such as v0.1.0; a tag of this name must be checked out")
	flag.StringVar(&r.out, "out", "bin/release", "the `directory` for what users download; it is cleared")
	flag.StringVar(&r.build, "build", "bin/build", "the `directory` for the binaries; it is cleared")
	flag.Parse()
	if err := r.run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one run.
type release struct {
	version   string // such as v0.1.0
	dir       string // the checkout
	out       string
	build     string // binaries as linux_amd64/weir, manual pages in man, and completions
	platforms []string
	progress  io.Writer

	notes string
	time  time.Time // of the commit, and of every file in the archives
}

func (r *release) run() error {
	for _, step := range []func() error{r.check, r.prepare, r.compile, r.document, r.archive, r.packages, r.list, r.sum} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) say(step, format string, values ...any) {
	fmt.Fprintf(r.progress, "%-10s %s\n", step, fmt.Sprintf(format, values...))
}

// prepare makes empty directories, with absolute names, because commands run in others.
func (r *release) prepare() (err error) {
	for _, dir := range []*string{&r.out, &r.build} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
		if err := errors.Join(os.RemoveAll(*dir), os.MkdirAll(*dir, 0o755)); err != nil {
			return err
		}
	}
	return nil
}

// binary is the file of the program for a platform.
func (r *release) binary(platform string) string {
	name := "weir"
	if strings.HasPrefix(platform, "windows/") {
		name = "weir.exe"
	}
	return filepath.Join(r.build, strings.ReplaceAll(platform, "/", "_"), name)
}

// compile builds the binaries, each with the version that Go finds in the tag.
func (r *release) compile() error {
	for _, platform := range r.platforms {
		binary := r.binary(platform)
		if err := command(build.Weir(r.dir, platform, binary, "-buildvcs=true")); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return err
		}
		if info.Main.Version != r.version {
			return fmt.Errorf("%s: Go gave the binary the version %s, want %s; remove other version tags from this commit",
				platform, cmp.Or(info.Main.Version, "(none)"), r.version)
		}
		size, err := os.Stat(binary)
		if err != nil {
			return err
		}
		r.say("build", "%-14s %s", platform, megabytes(size.Size()))
	}
	return nil
}

// document has the program of this machine write its manual pages and completions.
func (r *release) document() error {
	host := r.binary(build.Host)
	if _, err := os.Stat(host); err != nil {
		return fmt.Errorf("the manual pages are written by the binary for %s, which is not built: %w", build.Host, err)
	}
	if err := command(exec.Command(host, "man", filepath.Join(r.build, "man"))); err != nil {
		return err
	}
	completions := filepath.Join(r.build, "completions")
	if err := os.MkdirAll(completions, 0o755); err != nil {
		return err
	}
	for shell, name := range map[string]string{"bash": "weir.bash", "zsh": "_weir", "fish": "weir.fish", "powershell": "weir.ps1"} {
		script, err := exec.Command(host, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("weir completion %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(completions, name), script, 0o644); err != nil {
			return err
		}
	}
	pages, err := os.ReadDir(filepath.Join(r.build, "man"))
	r.say("document", "%d manual pages, completions for 4 shells", len(pages))
	return err
}

// packages makes the packages for Linux. What makes them is a module of its own, and the main
// module alone, as in the tests, does not have it.
func (r *release) packages() error {
	dir := filepath.Join(r.dir, "deploy", "package")
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	cmd := exec.Command("go", "run", ".", "--version", r.version, "--binaries", r.build, "--out", r.out)
	cmd.Dir = dir
	if err := command(cmd); err != nil {
		return err
	}
	r.say("packages", "deb and rpm for amd64 and arm64")
	return nil
}

// command runs a command, whose output is of interest only if it fails.
func command(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
