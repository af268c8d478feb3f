package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/repo/repotest"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/watch"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(writerPath); path != "" {
		writeForever(path)
	}
	os.Exit(testkit.Run(m))
}

// The suite passes with the help of the system, and without.
func TestSuite(t *testing.T) {
	t.Parallel()
	t.Run("Told", func(t *testing.T) { testSuite(t, Options{Create: true, watch: watch.Options{Poll: time.Hour}}) })
	t.Run("PollOnly", func(t *testing.T) {
		testSuite(t, Options{Create: true, watch: watch.Options{PollOnly: true, Poll: 100 * time.Millisecond}})
	})
}

func testSuite(t *testing.T, o Options) {
	t.Parallel() // it mostly waits
	repotest.Run(t, func(t *testing.T) repotest.Place {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		return repotest.Place{
			Open:  func() repo.Repository { return open(t, path, o) },
			Force: func(source []byte) { save(t, path, source) },
		}
	})
}

func open(t *testing.T, path string, o Options) *Repository {
	t.Helper()
	r, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// save is what a simple editor does.
func save(t *testing.T, path string, source []byte) {
	t.Helper()
	if err := os.WriteFile(path, source, 0o640); err != nil {
		t.Fatal(err)
	}
}

// saveAside is what a careful editor does.
func saveAside(t *testing.T, path string, source []byte) {
	t.Helper()
	save(t, path+"~", source)
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func current(t *testing.T, r *Repository) repo.Version {
	t.Helper()
	v, err := r.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// document is one that can be told from others.
func documentOf(limit string) []byte {
	return []byte("# limit " + limit + "\nrules:\n  - {id: a, key: ip, limit: " + limit + "}\n")
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rules.yaml")
	rejected := func(what, want string, o Options) {
		t.Helper()
		if _, err := Open(path, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Open = %v, want %q", what, err, want)
		}
	}
	rejected("no file", "write your rules into it", Options{})
	save(t, path, []byte("rules: [{}]"))
	rejected("with errors", "id: required", Options{})

	save(t, path, documentOf("5/1m"))
	v := current(t, open(t, path, Options{Create: true}))
	if v.Number != 1 || v.Author != "file" || v.Summary != "added a" || string(v.Source) != string(documentOf("5/1m")) {
		t.Errorf("the first version is %+v", v)
	}
	// With a version to fall back upon, errors are no reason not to begin.
	save(t, path, []byte("rules: [{}]"))
	if v := current(t, open(t, path, Options{})); v.Number != 1 {
		t.Errorf("the version in force is %+v", v)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	rejected("gone", "there is no file", Options{})
	rejected("gone, with a history", "copy back the one that you want", Options{Create: true})

	path = filepath.Join(dir, "new", "rules.json")
	v = current(t, open(t, path, Options{Create: true}))
	if v.Number != 1 || read(t, path) != "{\n  \"rules\": []\n}\n" {
		t.Errorf("what was created is %+v", v)
	}
	path = dir
	rejected("a directory", "is a directory", Options{})
}

// The document keeps its permission bits, and so do older versions, which have the
// same secrets.
func TestPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	save(t, path, documentOf("5/1m"))
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	r := open(t, path, Options{})
	if _, err := r.Write(t.Context(), repo.Draft{Base: 1, Source: documentOf("6/1m")}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{path: 0o640, path + ".history/1.yaml": 0o640, path + ".history/2.yaml": 0o640, path + ".history": 0o750 | os.ModeDir} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has %v, want %v", name, info.Mode(), want)
		}
	}
	// Also when it has to be made again.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write(t.Context(), repo.Draft{Base: 2, Source: documentOf("7/1m")}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("the new document has %v, %v", info.Mode(), err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 2 {
		t.Errorf("beside the document and its history there is more: %v, %v", files, err)
	}
}

// An older version is a document with a line before it.
func TestHistoryIsReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	save(t, path, documentOf("5/1m"))
	r := open(t, path, Options{})
	if _, err := r.Write(t.Context(), repo.Draft{Base: 1, Author: "alice", Source: documentOf("6/1m")}); err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(read(t, path+".history/2.yaml"), "\n")
	if rest != string(documentOf("6/1m")) || !strings.HasPrefix(head, `# weir {"number":2,"time":"`) || !strings.Contains(head, `"author":"alice","summary":"a: limit 5/1m → 6/1m"`) {
		t.Errorf("%s\n%s", head, rest)
	}
	// One that was damaged is not used, and its number is not used again.
	save(t, path+".history/2.yaml", []byte(head+"\nrules: []\n"))
	save(t, path+".history/3.yaml", nil)
	save(t, path, []byte("rules: ["))
	if v := current(t, open(t, path, Options{})); v.Number != 1 {
		t.Errorf("the version in force is %+v", v)
	}
	save(t, path, documentOf("7/1m"))
	if v := current(t, r); v.Number != 4 {
		t.Errorf("the next version is %+v", v)
	}
	if history, err := r.History(t.Context()); err != nil || len(history) != 3 {
		t.Errorf("History = %+v, %v", history, err)
	}
	// Without its history a document begins again.
	if err := os.RemoveAll(path + ".history"); err != nil {
		t.Fatal(err)
	}
	if v := current(t, r); v.Number != 1 || string(v.Source) != string(documentOf("7/1m")) {
		t.Errorf("without history: %+v", v)
	}
}
