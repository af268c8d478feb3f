package file

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/rules/repo"
)

// saving lets an editor do something in each pause of those that wait for it.
func saving(t *testing.T, r *Repository, path string, contents ...string) {
	t.Helper()
	r.pause = func(context.Context) error {
		if len(contents) > 0 {
			save(t, path, []byte(contents[0]))
			contents = contents[1:]
		}
		return nil
	}
}

func TestSettle(t *testing.T) {
	good, other := string(documentOf("1/1m")), string(documentOf("2/1m"))
	for _, c := range []struct {
		name    string
		saves   []string
		version int64
		trouble string
	}{
		{"as it was", []string{"", "rules: [", good}, 1, ""},
		{"another", []string{"", other[:20], other}, 2, ""},
		{"half, which is good", []string{"rules: []", "rules: []\nexempt: {user: [a]}", other}, 2, ""},
		{"with errors", []string{"rules: [", "rules: [", "rules: [", "rules: [", other}, 1, "invalid YAML"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rules.yaml")
			save(t, path, []byte(good))
			r := open(t, path, Options{})
			saving(t, r, path, c.saves[1:]...)
			save(t, path, []byte(c.saves[0]))
			f := r.look(t.Context())
			if f.version == nil || f.version.Number != c.version || (c.trouble == "") != (f.trouble == nil) || f.trouble != nil && !strings.Contains(f.trouble.Error(), c.trouble) {
				t.Errorf("%+v, want version %d and %q", f, c.version, c.trouble)
			}
		})
	}
}

// A document that keeps changing is not used, and no call waits forever.
func TestSettleNever(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	save(t, path, documentOf("1/1m"))
	r := open(t, path, Options{})
	n := 1
	r.pause = func(context.Context) error {
		n++
		save(t, path, documentOf(strconv.Itoa(n)+"/1m"))
		return nil
	}
	save(t, path, documentOf("1000/1m"))
	if f := r.look(t.Context()); f.version == nil || f.version.Number != 1 || f.trouble == nil || !strings.Contains(f.trouble.Error(), "keeps changing") {
		t.Errorf("%+v", f)
	}
	saving(t, r, path) // no more
	if f := r.look(t.Context()); f.version == nil || f.version.Number != 2 || f.trouble != nil {
		t.Errorf("at rest: %+v", f)
	}
}

// Somebody who saves while a version is being written is not overwritten.
func TestTouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	save(t, path, documentOf("1/1m"))
	r := open(t, path, Options{})
	save(t, path, documentOf("2/1m"))
	if _, err := r.install(r.archive.(*folder), repo.Version{Source: documentOf("3/1m")}); !errors.Is(err, errTouched) {
		t.Errorf("install = %v", err)
	}
	if got := read(t, path); got != string(documentOf("2/1m")) {
		t.Errorf("the document is %q", got)
	}
	var conflict *repo.ConflictError
	if _, err := r.Write(t.Context(), repo.Draft{Base: 1, Source: documentOf("3/1m")}); !errors.As(err, &conflict) || conflict.Current.Number != 2 || conflict.Current.Author != "file" {
		t.Errorf("Write = %v", err)
	}
}

// What the API overwrites is kept if somebody may want to go on with it.
func TestUnusableIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	save(t, path, documentOf("1/1m"))
	r := open(t, path, Options{})
	save(t, path, []byte("rules: [half"))
	v, err := r.Write(t.Context(), repo.Draft{Base: 1, Source: documentOf("3/1m")})
	if err != nil || v.Replaced == nil || v.Replaced.Copy != path+".history/unusable.yaml" {
		t.Fatalf("%+v %v", v, err)
	}
	if v, err = r.Write(t.Context(), repo.Draft{Base: 2, Source: documentOf("4/1m")}); err != nil || v.Replaced != nil {
		t.Errorf("nothing was replaced: %+v %v", v, err)
	}
	if got := read(t, path+".history/unusable.yaml"); got != "rules: [half" {
		t.Errorf("what was kept is %q", got)
	}
}

// A change that cannot be recorded is in force all the same, and is recorded later.
func TestUnrecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	save(t, path, documentOf("1/1m"))
	r := open(t, path, Options{})
	archive := r.archive
	r.archive = full{archive}
	save(t, path, documentOf("2/1m"))
	for range 2 {
		if f := r.look(t.Context()); f.version == nil || f.version.Number != 2 || !f.unrecorded || f.trouble == nil {
			t.Fatalf("%+v", f)
		}
	}
	if history, err := r.History(t.Context()); err != nil || len(history) != 2 || history[0].Number != 2 {
		t.Errorf("History = %+v, %v", history, err)
	}
	if v, err := r.Find(t.Context(), 2); err != nil || v.Number != 2 {
		t.Errorf("Find = %+v, %v", v, err)
	}
	r.archive = archive
	if f := r.look(t.Context()); f.version == nil || f.version.Number != 2 || f.trouble != nil {
		t.Errorf("%+v", f)
	}
}

// full is an archive with no room left.
type full struct{ archive }

func (full) save(entry, fs.FileMode) error { return errors.New("no space left on device") }

// While another process has the lock, a call waits no longer than its context.
func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	save(t, path, documentOf("1/1m"))
	r, other := open(t, path, Options{}), open(t, path, Options{})
	unlock, err := other.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := r.Write(ctx, repo.Draft{Base: 1, Source: documentOf("2/1m")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Write = %v", err)
	}
	// Reading an unchanged document takes no lock.
	if v := current(t, r); v.Number != 1 {
		t.Errorf("Current = %+v", v)
	}
}
