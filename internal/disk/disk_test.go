package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func entries(t *testing.T, dir string) string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// A file is replaced as a whole, or stays as it was.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	text := func(s string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			io.WriteString(w, s)
			return err
		}
	}
	for _, c := range []struct {
		text string
		err  error
		want string
	}{
		{"first", nil, "first"},
		{"second", nil, "second"},
		{strings.Repeat("third", 1<<16), errors.New("no third"), "second"}, // some of it has been written by then
	} {
		if err := Replace(path, 0o600, text(c.text, c.err)); err != c.err {
			t.Errorf("Replace = %v", err)
		}
		if got, err := os.ReadFile(path); string(got) != c.want || err != nil {
			t.Errorf("the file is %.20q, %v", got, err)
		}
		if got := entries(t, dir); got != "file" {
			t.Errorf("there are %s", got)
		}
	}
	if err := Replace(dir, 0o600, text("", nil)); err == nil {
		t.Error("a directory was replaced")
	}
	if got := entries(t, filepath.Dir(dir)); strings.Contains(got, ".tmp") {
		t.Errorf("there are %s", got)
	}
	if err := Replace(filepath.Join(dir, "missing", "file"), 0o600, text("", nil)); err == nil {
		t.Error("a file was made in a directory that does not exist")
	}
}

func TestIsLeftover(t *testing.T) {
	for name, want := range map[string]string{
		"keys.snapshot.1750102809.tmp": "keys.snapshot", "a.1.tmp": "a", "a.1.2.tmp": "a.1",
		"keys.snapshot": "", "keys.snapshot.tmp": "", "keys.snapshot.x1.tmp": "", ".1.tmp": "", "a.1.tmp.gz": "", "a..tmp": "",
	} {
		if of, is := IsLeftover(name); of != want || is != (want != "") {
			t.Errorf("IsLeftover(%s) = %q, %v", name, of, is)
		}
	}
	// It knows what Replace makes.
	dir := t.TempDir()
	var during string
	if err := Replace(filepath.Join(dir, "file"), 0o600, func(io.Writer) error { during = entries(t, dir); return nil }); err != nil {
		t.Fatal(err)
	}
	if of, is := IsLeftover(during); of != "file" || !is {
		t.Errorf("IsLeftover(%s) = %q, %v", during, of, is)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("the second: %v", err)
	}
	if !Holds(first, path) {
		t.Error("it is not held")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if Holds(first, path) {
		t.Error("it is held although it is gone")
	}
	next, err := TryLock(path)
	if err != nil || Holds(first, path) || !Holds(next, path) {
		t.Errorf("TryLock = %v; the first holds it: %v", err, Holds(first, path))
	}
	next.Close()
	if last, err := TryLock(path); err != nil {
		t.Error(err)
	} else {
		last.Close()
	}
	first.Close()
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for size, want := range map[int]string{0: "", 2048: "", 2049: path + " is larger than 2 KiB, the maximum for a test"} {
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := ReadFile(path, 2048, "test")
		if want == "" && (err != nil || len(text) != size) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%d bytes: %d were read, %v", size, len(text), err)
		}
	}
	if _, err := ReadAll(strings.NewReader(strings.Repeat("x", 3<<20)), "standard input", 2<<20, "test"); err == nil || err.Error() != "standard input is larger than 2 MiB, the maximum for a test" {
		t.Error(err)
	}
	if _, err := ReadFile(path+"x", 1, "test"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := ReadFile(filepath.Dir(path), 1, "test"); err == nil || err.Error() != "read "+filepath.Dir(path)+": is a directory" {
		t.Error(err)
	}
}
