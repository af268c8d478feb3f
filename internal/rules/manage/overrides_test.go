package manage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/repo"
	filerepo "github.com/weirhq/weir/internal/rules/repo/file"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

// instance is one that keeps its overrides with others, on a clock that they share.
type instance struct {
	*Overrides
	engine *engine.Engine
	place  *fickle
	log    *bytes.Buffer
}

// fickle is a place that can be lost, and in which somebody else is faster so many times.
type fickle struct {
	repo.Store
	lost   bool
	faster int
	writes int
}

var errAway = errors.New("the place is unavailable")

func (f *fickle) Read(ctx context.Context, known repo.Revision) ([]byte, bool, error) {
	if f.lost {
		return nil, false, errAway
	}
	return f.Store.Read(ctx, known)
}

func (f *fickle) Write(ctx context.Context, base repo.Revision, source []byte) error {
	f.writes++
	if f.faster > 0 {
		f.faster--
		return repo.ErrChanged
	}
	return f.Store.Write(ctx, base, source)
}

func newInstance(t *testing.T, dir string, now *time.Time) *instance {
	t.Helper()
	i := &instance{log: new(bytes.Buffer), place: &fickle{Store: testkit.Must(filerepo.OpenStore(dir, repo.StoreOptions{Name: "overrides", Most: MaxOverrideBytes}))(t)}}
	i.engine = testkit.Must(engine.New(engine.Options{Clock: func() weir.Micros { return weir.MicrosOf(*now) }}))(t)
	testkit.OK(t, i.engine.Load("", []byte(testRules)))
	i.Overrides = NewOverrides(OverrideOptions{
		Store: i.place, Engine: i.engine, Clock: func() time.Time { return *now },
		Logger: slog.New(slog.NewTextHandler(i.log, nil)),
	})
	testkit.OK(t, i.Look(t.Context()))
	return i
}

// limit is the one of a user under the rule api.
func (i *instance) limit(t *testing.T, user string) int64 {
	t.Helper()
	var v engine.Verdict
	testkit.OK(t, i.engine.Peek(t.Context(), &rule.Request{User: user}, &v))
	return v.Results[0].Limit
}

func (i *instance) want(t *testing.T, when string, limits ...int64) {
	t.Helper()
	for n, want := range limits {
		if got := i.limit(t, fmt.Sprint("u", n)); got != want {
			t.Errorf("%s: the limit of u%d is %d, want %d", when, n, got, want)
		}
	}
}

func draft(user int, limit string) OverrideDraft {
	return OverrideDraft{Rule: "api", Key: fmt.Sprint("user:u", user), Limits: []string{limit}, For: time.Hour, Reason: "why", Author: "alice"}
}

// Two instances follow each other; while the place is unavailable, and when it has lost
// everything, what was in force stays so until it ends.
func TestOverridesShared(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	a, b := newInstance(t, dir, &now), newInstance(t, dir, &now)
	first := testkit.Must(a.Add(t.Context(), draft(0, "500/1m")))(t)
	a.want(t, "who has written", 500, 100)
	b.want(t, "who has not looked", 100)
	testkit.OK(t, b.Look(t.Context()))
	b.want(t, "who has looked", 500)

	// A change after a change of another instance keeps both, and no change is lost to a
	// race.
	b.place.faster = 3
	testkit.Must(b.Add(t.Context(), draft(1, "7/1m")))(t)
	testkit.OK(t, a.Look(t.Context()))
	a.want(t, "both", 500, 7)
	b.place.faster = maxTries
	if _, err := b.Add(t.Context(), draft(2, "7/1m")); !errors.Is(err, ErrBusy) {
		t.Errorf("who never comes to it gets %v", err)
	}
	b.place.faster = 0

	a.place.lost = true
	if _, err := a.Add(t.Context(), draft(2, "7/1m")); !errors.Is(err, errAway) {
		t.Errorf("%v", err)
	}
	for range 3 {
		if err := a.Look(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("%v", err)
		}
	}
	a.want(t, "without the place", 500, 7)
	if n := strings.Count(a.log.String(), "could not read the overrides"); n != 1 {
		t.Errorf("it was logged %d times:\n%s", n, a.log)
	}
	a.place.lost = false
	testkit.OK(t, a.Look(t.Context()))
	if n := strings.Count(a.log.String(), "can be read again"); n != 1 {
		t.Errorf("its end was logged %d times:\n%s", n, a.log)
	}

	// Somebody has emptied the place.
	testkit.OK(t, a.place.Store.Write(t.Context(), b.revision, nil))
	testkit.OK(t, b.Look(t.Context()))
	b.want(t, "a place that has lost it", 500, 7)
	restarted := newInstance(t, dir, &now)
	restarted.want(t, "a new instance", 500, 7)

	testkit.Must(restarted.End(t.Context(), first.ID, "bob"))(t)
	restarted.want(t, "after an end", 100, 7)
	if _, err := a.End(t.Context(), "x", "bob"); !errors.Is(err, ErrNoOverride) {
		t.Errorf("%v", err)
	}
	now = now.Add(time.Hour)
	for _, i := range []*instance{a, b, restarted, newInstance(t, dir, &now)} {
		i.want(t, "at its end", 100, 100)
	}
}

// What was saved is in force until the place is read.
func TestOverridesSnapshot(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := newInstance(t, t.TempDir(), &now)
	testkit.Must(a.Add(t.Context(), draft(0, "500/1m")))(t)
	var saved bytes.Buffer
	testkit.OK(t, a.Snapshot(&saved))
	b := newInstance(t, t.TempDir(), &now)
	b.revision = repo.Unknown // nothing was read
	testkit.OK(t, b.Restore(&saved))
	b.want(t, "restored", 500)
	testkit.OK(t, b.Look(t.Context()))
	b.want(t, "read", 100)
	if err := b.Restore(strings.NewReader("{")); err == nil {
		t.Error("what is damaged was restored")
	}
}

// A document that cannot be read keeps what is in force, and is not overwritten.
func TestOverridesDamaged(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := newInstance(t, t.TempDir(), &now)
	testkit.Must(a.Add(t.Context(), draft(0, "500/1m")))(t)
	testkit.OK(t, a.place.Store.Write(t.Context(), a.revision, []byte("{")))
	writes := a.place.writes
	if _, err := a.Add(t.Context(), draft(1, "500/1m")); err == nil || a.place.writes != writes {
		t.Errorf("%v, after %d writes", err, a.place.writes-writes)
	}
	a.want(t, "damaged", 500, 100)
}

// Many at once: one for each client stays, and as many as there is room for.
func TestOverridesConcurrent(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := newInstance(t, t.TempDir(), &now)
	var all sync.WaitGroup
	for n := range 30 {
		all.Go(func() {
			if _, err := a.Add(t.Context(), draft(n%10, "500/1m")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if active, past := a.List(OverrideFilter{}), a.List(OverrideFilter{Past: true}); len(active) != 10 || len(past) != 20 {
		t.Errorf("%d are active, and %d were", len(active), len(past))
	}
}
