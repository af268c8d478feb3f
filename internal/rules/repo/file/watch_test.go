package file

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/repo/repotest"
	"github.com/weirhq/weir/internal/watch"
)

// both runs a test with the help of the system alone, and by polling alone.
func both(t *testing.T, test func(t *testing.T, o Options)) {
	t.Parallel()
	t.Run("Told", func(t *testing.T) {
		t.Parallel()
		test(t, Options{watch: watch.Options{Poll: time.Hour}})
	})
	t.Run("PollOnly", func(t *testing.T) {
		t.Parallel()
		test(t, Options{watch: watch.Options{Poll: 20 * time.Millisecond, PollOnly: true}})
	})
}

// Editors write a file in several ways.
func TestWatchEditors(t *testing.T) {
	ways := map[string]func(t *testing.T, path string, source []byte){
		"in place": save,
		"rename":   saveAside,
		"move away": func(t *testing.T, path string, source []byte) {
			if err := os.Rename(path, path+"~"); err != nil {
				t.Fatal(err)
			}
			save(t, path, source)
		},
		"delete": func(t *testing.T, path string, source []byte) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			save(t, path, source)
		},
		"piece by piece": func(t *testing.T, path string, source []byte) {
			file, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			for _, b := range source {
				if _, err := file.Write([]byte{b}); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
	both(t, func(t *testing.T, o Options) {
		for name, edit := range ways {
			t.Run(name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "rules.yaml")
				save(t, path, documentOf("1/1m"))
				w := repotest.Watch(t, open(t, path, o))
				w.WaitVersion(1)
				for i, limit := range []string{"2/1m", "3/1m", "4/1m"} {
					edit(t, path, documentOf(limit))
					c := w.WaitVersion(int64(i) + 2)
					if string(c.Version.Source) != string(documentOf(limit)) || c.Version.Author != "file" {
						t.Errorf("version %d is %q by %s", c.Version.Number, c.Version.Source, c.Version.Author)
					}
				}
				// Nothing in between was taken for a version, or for trouble.
				if calls := w.Calls(); len(calls) != 4 {
					t.Errorf("there were %d calls, want 4: %+v", len(calls), calls)
				}
			})
		}
	})
}

// A file that stays half-written is trouble, and is used as soon as it is whole.
func TestWatchHalf(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		save(t, path, documentOf("1/1m"))
		w := repotest.Watch(t, open(t, path, o))
		w.WaitVersion(1)
		whole := documentOf("2/1m")
		save(t, path, whole[:len(whole)-4])
		if c := w.WaitError(1); !strings.Contains(c.Err.Error(), "rules.yaml:3:") {
			t.Errorf("the trouble is %v", c.Err)
		}
		save(t, path, whole)
		w.WaitVersion(2)
	})
}

// What is gone, or empty, was hardly meant.
func TestWatchGone(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		save(t, path, documentOf("1/1m"))
		r := open(t, path, o)
		w := repotest.Watch(t, r)
		w.WaitVersion(1)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if c := w.WaitError(1); !strings.Contains(c.Err.Error(), "no longer exists") {
			t.Errorf("the trouble is %v", c.Err)
		}
		// Back as it was: the trouble is over, and it is no new version.
		save(t, path, documentOf("1/1m"))
		w.WaitVersion(1)
		save(t, path, nil)
		if c := w.WaitError(1); !strings.Contains(c.Err.Error(), `write "rules: []"`) {
			t.Errorf("the trouble is %v", c.Err)
		}
		save(t, path, []byte("rules: []\n"))
		w.WaitVersion(2)
		save(t, path, nil) // nothing is lost by that
		w.WaitVersion(3)
		// A write puts back what is gone.
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		w.WaitError(3)
		if _, err := r.Write(t.Context(), repo.Draft{Base: 3, Source: documentOf("4/1m")}); err != nil {
			t.Fatal(err)
		}
		w.WaitVersion(4)
	})
}

// configMap is a directory as Kubernetes mounts it.
type configMap struct {
	t    *testing.T
	dir  string
	path string // of the document
	n    int
}

func newConfigMap(t *testing.T, source []byte) *configMap {
	t.Helper()
	m := &configMap{t: t, dir: t.TempDir()}
	m.path = filepath.Join(m.dir, "rules.yaml")
	m.update(source)
	if err := os.Symlink(filepath.Join("..data", "rules.yaml"), m.path); err != nil {
		t.Fatal(err)
	}
	return m
}

// update does what the kubelet does: a new directory, and a link turned to it.
func (m *configMap) update(source []byte) {
	m.t.Helper()
	m.n++
	name := "..2026_01_01_00_00_0" + string(rune('0'+m.n))
	link := filepath.Join(m.dir, "..data")
	old, _ := os.Readlink(link)
	if err := os.Mkdir(filepath.Join(m.dir, name), 0o755); err != nil {
		m.t.Fatal(err)
	}
	save(m.t, filepath.Join(m.dir, name, "rules.yaml"), source)
	if err := os.Symlink(name, link+"_tmp"); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(link+"_tmp", link); err != nil {
		m.t.Fatal(err)
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(m.dir, old)); err != nil {
			m.t.Fatal(err)
		}
	}
}

func TestWatchConfigMap(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		m := newConfigMap(t, documentOf("1/1m"))
		r := open(t, m.path, o)
		w := repotest.Watch(t, r)
		w.WaitVersion(1)
		for i, limit := range []string{"2/1m", "3/1m", "4/1m"} {
			m.update(documentOf(limit))
			w.WaitVersion(int64(i) + 2)
		}
		if calls := w.Calls(); len(calls) != 4 {
			t.Errorf("there were %d calls, want 4: %+v", len(calls), calls)
		}
		_, err := r.Write(t.Context(), repo.Draft{Base: 4, Source: documentOf("5/1m")})
		if err == nil || !strings.Contains(err.Error(), "is a symbolic link to ..data") || !strings.Contains(err.Error(), "where they come from") {
			t.Errorf("Write = %v", err)
		}
		if readOnly, ok := errors.AsType[*repo.ReadOnlyError](err); !ok || readOnly.Why != "rules.yaml is a symbolic link, as Kubernetes mounts a ConfigMap" {
			t.Errorf("Write = %#v", err)
		}
		if _, err := os.Readlink(m.path); err != nil {
			t.Error(err)
		}
	})
}

// The file behind a link is watched, too, wherever it is.
func TestWatchLink(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "real.yaml")
	save(t, elsewhere, documentOf("1/1m"))
	middle := filepath.Join(t.TempDir(), "middle")
	path := filepath.Join(t.TempDir(), "rules.yaml")
	for from, to := range map[string]string{middle: elsewhere, path: middle} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	w := repotest.Watch(t, open(t, path, Options{watch: watch.Options{Poll: time.Hour}}))
	w.WaitVersion(1)
	saveAside(t, elsewhere, documentOf("2/1m"))
	w.WaitVersion(2)
	other := filepath.Join(t.TempDir(), "other.yaml")
	save(t, other, documentOf("3/1m"))
	if err := os.Symlink(other, middle+"~"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(middle+"~", middle); err != nil {
		t.Fatal(err)
	}
	w.WaitVersion(3)
	save(t, other, documentOf("4/1m"))
	w.WaitVersion(4)
}

// Where there is no room for older versions, they are kept in memory, and nothing is
// written.
func TestMemory(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		save(t, path, documentOf("1/1m"))
		o.History = filepath.Join(path, "no-directory")
		r := open(t, path, o)
		if err := r.memory; err == nil || !strings.Contains(err.Error(), "in memory only") {
			t.Errorf("the history is in memory: %v", err)
		}
		w := repotest.Watch(t, r)
		w.WaitVersion(1)
		save(t, path, documentOf("2/1m"))
		w.WaitVersion(2)
		save(t, path, []byte("rules: ["))
		w.WaitError(2)
		if v := current(t, r); v.Number != 2 {
			t.Errorf("Current = %+v", v)
		}
		if history, err := r.History(t.Context()); err != nil || len(history) != 2 || history[0].Number != 2 || history[0].Source != nil {
			t.Errorf("History = %+v, %v", history, err)
		}
		if v, err := r.Find(t.Context(), 1); err != nil || string(v.Source) != string(documentOf("1/1m")) {
			t.Errorf("Find = %+v, %v", v, err)
		}
		if _, err := r.Write(t.Context(), repo.Draft{Base: 2, Source: documentOf("3/1m")}); err == nil || !strings.Contains(err.Error(), "let weir write to") {
			t.Errorf("Write = %v", err)
		}
		if _, err := os.Stat("/sys/kernel"); err == nil { // where not even root can write
			o, path := o, path+".yaml"
			save(t, path, documentOf("1/1m"))
			o.History = "/sys/kernel/rules.yaml.history"
			if _, err := open(t, path, o).Write(t.Context(), repo.Draft{Base: 1, Source: documentOf("3/1m")}); !errors.As(err, new(*repo.ReadOnlyError)) {
				t.Errorf("Write = %v", err)
			}
		}
		// The same if the directory exists, but cannot be locked.
		o.History = filepath.Join(t.TempDir(), "history")
		if err := os.MkdirAll(filepath.Join(o.History, "lock"), 0o755); err != nil {
			t.Fatal(err)
		}
		save(t, path, documentOf("4/1m"))
		if r := open(t, path, o); r.memory == nil || current(t, r).Number != 1 {
			t.Errorf("the history is in memory: %v", r.memory)
		}
	})
}
