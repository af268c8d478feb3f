package repotest

import (
	"errors"
	"testing"

	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/rule"
)

// testForce has somebody edit the document by other means.
func testForce(t *testing.T, p Place) {
	r := p.Open()
	v := write(t, r, source(1))
	w := Watch(t, p.Open())
	w.WaitVersion(v.Number)
	p.Force(source(2))
	check(t, "Watch", w.WaitVersion(v.Number+1).Version, v.Number+1, source(2))
	check(t, "Current", current(t, r), v.Number+1, source(2))
	// Who has not seen it must not overwrite it.
	_, err := r.Write(t.Context(), repo.Draft{Base: v.Number, Source: source(3)})
	var conflict *repo.ConflictError
	if !errors.As(err, &conflict) {
		t.Errorf("Write upon what was changed = %v", err)
	}
	next := write(t, r, source(3))
	check(t, "Write", next, v.Number+2, source(3))
	found := testcall.Must(r.Find(t.Context(), v.Number+1))(t)
	check(t, "Find", found, v.Number+1, source(2))
	historyOf(t, r)
}

// testForceUnusable has somebody make a mistake: the version before stays in force, for
// those who were there and for those who come, and the mistake can be mended by hand or
// by a write.
func testForceUnusable(t *testing.T, p Place) {
	r := p.Open()
	v := write(t, r, source(1))
	w := Watch(t, p.Open())
	w.WaitVersion(v.Number)

	p.Force([]byte("rules: [oh"))
	w.WaitError(v.Number)
	check(t, "Current", current(t, r), v.Number, source(1))
	late := p.Open()
	check(t, "Current of one who comes", current(t, late), v.Number, source(1))
	lateWatch := Watch(t, late)
	lateWatch.WaitError(v.Number)
	if calls := lateWatch.Calls(); len(calls) != 2 || calls[0].Err != nil || calls[0].Version.Number != v.Number {
		t.Errorf("one who comes is told %+v, want the version, and then the error", calls)
	}

	// Mended by hand: a new version.
	p.Force(source(2))
	now := w.Wait("another version", func(c Call) bool { return c.Err == nil && c.Version.Number > v.Number }).Version
	check(t, "Watch", now, now.Number, source(2))
	check(t, "Current", current(t, r), now.Number, source(2))

	// Mended by a write upon what is in force.
	p.Force([]byte("rules: [no"))
	w.WaitError(now.Number)
	next := write(t, r, source(3))
	if next.Number <= now.Number {
		t.Errorf("version %d came after %d", next.Number, now.Number)
	}
	check(t, "Watch", w.WaitVersion(next.Number).Version, next.Number, source(3))

	// Each trouble is told once.
	errs := 0
	for _, c := range w.Calls() {
		if c.Err != nil {
			errs++
		}
	}
	if errs != 2 {
		t.Errorf("%d errors were told, want 2: %+v", errs, w.Calls())
	}
}

// testNeverInstalled tries every way in for documents that cannot be compiled. Watch
// looks at everything that comes out; here is the rest.
func testNeverInstalled(t *testing.T, p Place) {
	r := p.Open()
	v := write(t, r, source(0))
	w := Watch(t, p.Open())
	w.WaitVersion(v.Number)
	for name, bad := range unusable {
		if _, err := r.Write(t.Context(), repo.Draft{Base: v.Number, Source: []byte(bad)}); err == nil {
			t.Fatalf("%s: it was written", name)
		}
		p.Force([]byte(bad))
		w.WaitError(v.Number)
		for _, some := range []repo.Repository{r, p.Open()} {
			check(t, name+": Current", current(t, some), v.Number, v.Source)
			history := testcall.Must(some.History(t.Context()))(t)
			for _, old := range history {
				found := testcall.Must(some.Find(t.Context(), old.Number))(t)
				if _, err := rule.Usable("", found.Source); err != nil {
					t.Errorf("%s: version %d is in the history: %v", name, old.Number, err)
				}
			}
		}
		v = write(t, r, source(int(v.Number)))
		w.WaitVersion(v.Number)
	}
}
