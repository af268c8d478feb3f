package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, path string, files ...string) *dataDir {
	t.Helper()
	d, err := openDataDir(t.Context(), path, 0, nil, files...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if d.lock != nil {
			d.Close()
		}
	})
	return d
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); string(got) != want || err != nil {
		t.Errorf("%s has %q, %v", path, got, err)
	}
}

func TestSaveAndRestore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "data")
	d := open(t, path)
	var got string
	read := func(r io.Reader) error { all, err := io.ReadAll(r); got = string(all); return err }
	if found, err := d.Restore("a", read); found || err != nil {
		t.Errorf("Restore = %v, %v", found, err)
	}
	if err := d.Save("a", text("one")); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if err := d.Save("a", text("two")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close, Save = %v", err)
	}
	d = open(t, path)
	if found, err := d.Restore("a", read); !found || err != nil || got != "one" {
		t.Errorf("Restore = %v, %v: %q", found, err, got)
	}
}

func TestOneOwner(t *testing.T) {
	path := t.TempDir()
	first := open(t, path)
	want := fmt.Sprintf("%s is in use by process %d", path, os.Getpid())
	if _, err := openDataDir(t.Context(), path, 0, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Open = %v, want %s", err, want)
	}
	// A waiting process is told the owner, and gets the directory when it is free.
	told := ""
	second, err := openDataDir(t.Context(), path, time.Minute, func(owner string) { told = owner; first.Close() })
	if err != nil || !strings.HasPrefix(told, fmt.Sprintf("process %d", os.Getpid())) {
		t.Fatalf("Open = %v, told %q", err, told)
	}
	// It can be told to wait no longer.
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := openDataDir(ctx, path, time.Hour, func(string) { cancel() }); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Open = %v", err)
	}
	put(t, path, "lock", "nonsense")
	if _, err := openDataDir(t.Context(), path, 0, nil); err == nil || !strings.Contains(err.Error(), "is in use by another process; stop it") {
		t.Errorf("Open = %v", err)
	}
	second.Close()
}

// If the directory is emptied, the lock is gone. If another process has a new lock by
// then, this process overwrites none of its files.
func TestLockIsRemoved(t *testing.T) {
	path := t.TempDir()
	first := open(t, path)
	lock := filepath.Join(path, "lock")
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	second := open(t, path)
	if err := second.Save("a", text("second")); err != nil {
		t.Fatal(err)
	}
	if err := first.Save("a", text("first")); err == nil || !strings.Contains(err.Error(), "is in use by") {
		t.Errorf("Save = %v", err)
	}
	wantFile(t, filepath.Join(path, "a"), "second")
	second.Close()
	if err := first.Save("a", text("first")); err != nil {
		t.Errorf("when the other has gone, Save = %v", err)
	}
	if _, err := openDataDir(t.Context(), path, 0, nil); err == nil {
		t.Error("the lock was not taken again")
	}
}

// What cannot be used is never overwritten, neither in its place nor where it is moved.
func TestSetAside(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	d.now = func() time.Time { return now }
	for round := range 3 {
		put(t, path, "a", fmt.Sprint(round))
		if found, err := d.Restore("a", func(io.Reader) error { return errors.New("damaged") }); !found || err == nil {
			t.Errorf("Restore = %v, %v", found, err)
		}
		if err := d.Save("a", text("new")); err == nil {
			t.Error("it was overwritten")
		}
		if _, err := d.Restore("b", func(io.Reader) error { return nil }); err != nil {
			t.Error(err)
		}
		moved, err := d.SetAside()
		if err != nil || len(moved) != 1 {
			t.Fatalf("SetAside = %v, %v", moved, err)
		}
		wantFile(t, moved["a"], fmt.Sprint(round))
		if moved, err := d.SetAside(); err != nil || moved != nil {
			t.Errorf("once more: %v, %v", moved, err)
		}
		if err := d.Save("a", text("new")); err != nil {
			t.Error(err)
		}
	}
	const aside = "a.unusable-20261115T120000Z"
	for round, name := range []string{aside, aside + "-2", aside + "-3"} {
		wantFile(t, filepath.Join(path, name), fmt.Sprint(round))
	}
	if f := d.Files()[0]; f.Name != "a" || !f.Unusable || f.trouble() != nil {
		t.Errorf("%+v", f)
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{"a.1.tmp", "a.22.tmp", "b.3.tmp", "c.4.tmp", "a.tmp", "a.x.tmp"} {
		put(t, path, name, "")
	}
	open(t, path, "a", "b")
	left, err := filepath.Glob(filepath.Join(path, "*.tmp"))
	if err != nil || len(left) != 3 {
		t.Errorf("%s are left, %v", left, err)
	}
}

// A save that failed is counted, and told without paths until one succeeds.
func TestFiles(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	d.now = func() time.Time { return now }
	say := func(want string) {
		t.Helper()
		f := d.Files()[0]
		if got := fmt.Sprint(f.Failures, " ", f.trouble()); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
	fail := func(io.Writer) error {
		return &os.PathError{Op: "write", Path: path, Err: errors.New("the disk is full")}
	}
	d.Save("a", fail)
	say("1 a could not be saved: the disk is full; it was not saved since the start")
	if err := d.Save("a", text("")); err != nil {
		t.Fatal(err)
	}
	say("1 <nil>")
	d.Save("a", fail)
	d.Save("a", fail)
	say("3 a could not be saved: the disk is full; it was last saved at 2026-11-15T12:00:00Z")
	if err := os.MkdirAll(filepath.Join(path, "b", "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.Save("b", text(""))
	if err := d.Files()[1].trouble(); err == nil || strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}
