package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// An archive depends on the files, the folder and the time of the commit alone.
func TestPack(t *testing.T) {
	files := []file{{"weir", 0o755, []byte("program")}, {"man/weir.1", 0o644, []byte("page")}}
	made := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for name, pack := range map[string]func(io.Writer, string, []file, time.Time) error{"tar": packTar, "zip": packZip} {
		var packed [3]bytes.Buffer
		for i := range packed {
			at := made
			if i == 2 {
				at = made.Add(time.Hour)
			}
			if err := pack(&packed[i], "weir_0.1.0", files, at); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(packed[0].Bytes(), packed[1].Bytes()) || bytes.Equal(packed[0].Bytes(), packed[2].Bytes()) {
			t.Errorf("%s: the bytes are not those of the time", name)
		}
	}
}

func TestSection(t *testing.T) {
	const changelog = "# Changelog\n\n## Unreleased\n\n- later\n\n## v0.2.0 (2026-12-01)\n\n### Rules\n\n- second\n\n## v0.2.0-rc.1\n\n## v0.1.0\n- first\n"
	for version, want := range map[string]string{"v0.2.0": "### Rules\n\n- second\n", "v0.1.0": "- first\n"} {
		if got, err := section(changelog, version); got != want || err != nil {
			t.Errorf("%s: %q %v", version, got, err)
		}
	}
	for version, want := range map[string]string{"v0.2": "no section", "v0.3.0": "no section", "v0.2.0-rc.1": "is empty"} {
		if got, err := section(changelog, version); got != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q %v", version, got, err)
		}
	}
}

// What cannot be released is told before anything is built or removed, with the remedy.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(version, want string) {
		t.Helper()
		r := release{version: version, dir: dir, out: dir, build: dir, progress: io.Discard}
		if err := r.run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", version, err, want)
		}
	}
	for _, version := range []string{"", "0.1.0", "v0.1", "v01.0.0", "v0.1.0-", "v0.1.0 ", "v0.1.0/x", "v0.1.0+x", "-v0.1.0"} {
		refused(version, "write it as v0.1.0")
	}
	write("CHANGELOG.md", "## Unreleased\n\n- all\n")
	commit(t, dir)
	refused("v0.1.0", "git tag -a v0.1.0")
	git(t, dir, "tag", "v0.1.0")
	refused("v0.1.0", `under "## Unreleased"`)
	write("x.go", "package x\n")
	refused("v0.1.0", "x.go")
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "--quiet", "--message", "more")
	refused("v0.1.0", "git checkout v0.1.0")
	if _, err := os.Stat(filepath.Join(dir, "x.go")); err != nil {
		t.Error(err)
	}
}

func TestModules(t *testing.T) {
	good := debug.Module{Path: "example.com/a", Version: "v1.0.0+incompatible", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}
	all := map[string]component{}
	if err := addModules(all, &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{&good}}); err != nil {
		t.Fatal(err)
	}
	c := all["pkg:golang/example.com/a@v1.0.0%2Bincompatible"]
	if c.Version != "v1.0.0+incompatible" || c.Hashes[0].Content != "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" || all["pkg:golang/std@1.26.8"].Name != "std" {
		t.Errorf("%+v", all)
	}
	replaced, unknown := good, good
	replaced.Replace, unknown.Sum = &debug.Module{Path: "../a"}, ""
	for _, m := range []debug.Module{replaced, unknown} {
		if err := addModules(all, &debug.BuildInfo{Deps: []*debug.Module{&m}}); err == nil {
			t.Errorf("%+v is taken", m)
		}
	}
	for _, manifest := range []string{"", `{"dependencies": {"uplot": "1"}}`} {
		if err := addPackages(all, []byte(manifest)); err == nil {
			t.Errorf("%q is taken", manifest)
		}
	}
}
