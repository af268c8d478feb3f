package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/build"
)

// maxBinary is how large the program may be, in bytes. If it suddenly is much larger, something
// calls methods by name again, as templates do; docs/decisions/0048-releases.md tells how to find it.
const maxBinary = 35_000_000

func newRelease(t *testing.T, progress io.Writer) *release {
	dir := t.TempDir()
	return &release{
		version: "v0.1.0", dir: checkout(t), out: filepath.Join(dir, "out"), build: filepath.Join(dir, "build"),
		platforms: []string{build.Host}, progress: progress,
	}
}

func TestRelease(t *testing.T) {
	var progress bytes.Buffer
	r := newRelease(t, &progress)
	if err := r.run(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"check", "build", "document", "archive", "sbom", "notes", "checksums"} {
		if !strings.Contains("\n"+progress.String(), "\n"+step) {
			t.Errorf("no progress of %s in:\n%s", step, &progress)
		}
	}
	files := contents(t, r.out)
	if len(files) != 4 {
		t.Errorf("%d files", len(files))
	}
	for name, content := range files {
		line := fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name)
		if name != "checksums.txt" && name != "notes.md" && !strings.Contains(string(files["checksums.txt"]), line) {
			t.Errorf("checksums.txt has no %q", line)
		}
	}
	if notes := string(files["notes.md"]); !strings.Contains(notes, "go install") || strings.Contains(notes, "\n## ") {
		t.Errorf("the notes are %.300s", notes)
	}
	checkBinary(t, r.binary(build.Host))
	if runtime.GOOS != "windows" {
		checkArchive(t, files["weir_0.1.0_"+strings.ReplaceAll(build.Host, "/", "_")+".tar.gz"])
	}
	checkSBOM(t, files["weir_0.1.0.cdx.json"])
	checkAgain(t, r)
}

// checkAgain checks that what is in the archives is the same from another directory; archives
// depend on nothing else, which TestPack checks.
func checkAgain(t *testing.T, first *release) {
	second := newRelease(t, io.Discard)
	for _, step := range []func() error{second.check, second.prepare, second.compile, second.document} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	compared := 0
	err := filepath.WalkDir(first.build, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(first.build, name)
		if err != nil {
			return err
		}
		one, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		other, err := os.ReadFile(filepath.Join(second.build, relative))
		if err != nil {
			return err
		}
		if compared++; !bytes.Equal(one, other) {
			t.Errorf("%s depends on where it is built", relative)
		}
		return nil
	})
	if err != nil || compared < 10 {
		t.Fatal(compared, err)
	}
}

// checkBinary checks that a program knows its version, and is small.
func checkBinary(t *testing.T, binary string) {
	t.Helper()
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", megabytes(info.Size()))
	if info.Size() > maxBinary {
		t.Errorf("the binary has %d bytes, at most %d are to be", info.Size(), maxBinary)
	}
	out, err := exec.Command(binary, "version", "--output", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var b build.Info
	if err := json.Unmarshal(out, &b); err != nil {
		t.Fatal(err)
	}
	if b.Version != "v0.1.0" || len(b.Commit) != 40 || b.Time != "2026-11-16T12:00:00Z" || b.Modified || b.Platform != build.Host {
		t.Errorf("%+v", b)
	}
}

func checkArchive(t *testing.T, content []byte) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	folder := "weir_0.1.0_" + strings.ReplaceAll(build.Host, "/", "_") + "/"
	found := map[string]int64{}
	for archive := tar.NewReader(z); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(header.Name, folder) || header.Uid != 0 || header.Uname != "" || header.ModTime.Unix() != 1794830400 {
			t.Errorf("%+v", header)
		}
		found[strings.TrimPrefix(header.Name, folder)] = header.Mode
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "completions/weir.bash", "completions/_weir", "man/weir.1", "man/weir-serve.1"} {
		if found[name] != 0o644 {
			t.Errorf("%s has the mode %o", name, found[name])
		}
	}
	if found["weir"] != 0o755 {
		t.Errorf("the program has the mode %o", found["weir"])
	}
}

func checkSBOM(t *testing.T, content []byte) {
	t.Helper()
	var b bom
	if err := json.Unmarshal(content, &b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.Spec != "1.6" || b.Metadata.Component.PURL != "pkg:golang/github.com/weirhq/weir@v0.1.0" || b.Metadata.Timestamp != "2026-11-16T12:00:00Z" {
		t.Errorf("%+v", b.Metadata)
	}
	names := map[string]component{}
	for _, c := range b.Components {
		names[c.Name] = c
	}
	for _, name := range []string{"google.golang.org/grpc", "cel.dev/cel-go", "std", "svelte", "uplot"} {
		if names[name].Version == "" {
			t.Errorf("%s is missing", name)
		}
	}
	if c := names["google.golang.org/grpc"]; len(c.Hashes) != 1 || len(c.Hashes[0].Content) != 64 {
		t.Errorf("%+v", c)
	}
	for _, c := range append(b.Components, b.Metadata.Component) {
		if len(c.Licences) != 1 || c.Licences[0].License != nil && c.Licences[0].License.ID == "" {
			t.Errorf("the licence of %s is not known: %+v", c.Name, c.Licences)
		}
	}
	if c := names["svelte"]; c.Licences[0].License.ID != "MIT" {
		t.Errorf("%+v", c.Licences[0])
	}
	if len(b.Dependencies[0].DependsOn) != len(b.Components) {
		t.Error("not everything is a dependency")
	}
}

// contents returns the files of a directory.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}
