package watch

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, from string) {
	t.Helper()
	if err := os.Symlink(to, from); err != nil {
		t.Fatal(err)
	}
}

func folder(t *testing.T, path ...string) string {
	t.Helper()
	dir := filepath.Join(path...)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEntries(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// As Kubernetes has it.
	data := folder(t, dir, "..2026")
	write(t, filepath.Join(data, "rules.yaml"), "")
	link(t, "..2026", filepath.Join(dir, "..data"))
	link(t, "..data/rules.yaml", filepath.Join(dir, "rules.yaml"))
	want := func(path string, want map[string][]string) {
		t.Helper()
		if got := entries(path); !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	want(filepath.Join(dir, "rules.yaml"), map[string][]string{dir: {"rules.yaml", "..data"}, data: {"rules.yaml"}})

	// Links to links, up, and from the root.
	up := folder(t, dir, "up")
	link(t, "../b", filepath.Join(up, "a"))
	link(t, filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "b"))
	want(filepath.Join(up, "a"), map[string][]string{up: {"a"}, dir: {"b", "rules.yaml", "..data"}, data: {"rules.yaml"}})
	link(t, "loop", filepath.Join(up, "loop"))
	if got := entries(filepath.Join(up, "loop")); len(got[up]) != maxLinks {
		t.Errorf("a loop is followed %d times", len(got[up]))
	}

	// In a directory everything counts, wherever it is.
	want(filepath.Join(dir, "..data"), map[string][]string{dir: {"..data", "..2026"}, data: nil})
	want(data, map[string][]string{dir: {"..2026"}, data: nil})
	want(filepath.Join(dir, "missing"), map[string][]string{dir: {"missing"}})
}

// What happens to a file or in a directory is seen, by the system's help or without.
func TestFollow(t *testing.T) {
	for name, o := range map[string]Options{
		"told": {Poll: time.Hour}, "polling": {Poll: 10 * time.Millisecond, PollOnly: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			config := folder(t, dir, "config")
			for _, path := range []string{filepath.Join(config, "a"), config} {
				write(t, filepath.Join(config, "a"), "old")
				ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
				looks := 0
				err := Follow(ctx, path, o, func() {
					text, err := os.ReadFile(filepath.Join(config, "a"))
					if err != nil {
						t.Error(err)
					}
					if looks++; looks == 1 {
						write(t, filepath.Join(config, "a"), "new")
					} else if string(text) == "new" {
						stop()
					}
				})
				if err != context.Canceled {
					t.Errorf("%s: Follow = %v after %d looks", path, err, looks)
				}
			}
		})
	}
}

// Changes of other files in the directory are ignored.
func TestConcerns(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules.yaml"), "")
	ctx, stop := context.WithCancel(t.Context())
	looks := 0
	err := Follow(ctx, filepath.Join(dir, "rules.yaml"), Options{Poll: time.Hour}, func() {
		if looks++; looks > 1 {
			stop()
			return
		}
		for range 20 {
			write(t, filepath.Join(dir, "neighbour"), "x")
		}
		write(t, filepath.Join(dir, "rules.yaml"), "x")
	})
	if err != context.Canceled || looks != 2 {
		t.Errorf("Follow = %v after %d looks", err, looks)
	}
}
