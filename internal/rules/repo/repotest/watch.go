package repotest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/rule"
)

// soon is how long anything may take that should take a second: the machine may have
// other things to do.
const soon = 2 * time.Minute

// Told is what a watch was told, to be waited for.
type Told struct {
	t  *testing.T
	mu sync.Mutex

	all  []Call
	more chan struct{} // closed when there is more
}

// Call is one call.
type Call struct {
	Version repo.Version
	Err     error
}

// Watch watches until the test is over, and checks of every version that it can be
// used: this is what a version that cannot be compiled must not get past.
func Watch(t *testing.T, r repo.Repository) *Told {
	t.Helper()
	told := &Told{t: t, more: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Watch(ctx, told.changed) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Watch ended with %v", err)
			}
		case <-time.After(soon):
			t.Error("Watch does not end with its context")
		}
	})
	return told
}

func (w *Told) changed(v repo.Version, err error) {
	if err == nil {
		if _, err := rule.Usable("", v.Source); err != nil {
			w.t.Errorf("Watch tells of version %d, which cannot be used: %v", v.Number, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, Call{v, err})
	close(w.more)
	w.more = make(chan struct{})
}

// Calls are all calls so far.
func (w *Told) Calls() []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Call(nil), w.all...)
}

// Wait waits for a last call that is as it should be.
func (w *Told) Wait(what string, good func(Call) bool) Call {
	w.t.Helper()
	late := time.After(soon)
	for {
		w.mu.Lock()
		more := w.more
		var last Call
		if n := len(w.all); n > 0 {
			last = w.all[n-1]
		}
		reached := len(w.all) > 0 && good(last)
		w.mu.Unlock()
		if reached {
			return last
		}
		select {
		case <-more:
		case <-late:
			w.t.Fatalf("%s: it was not told within %v; the last of %d calls was version %d, %v", what, soon, len(w.Calls()), last.Version.Number, last.Err)
		}
	}
}

// WaitVersion waits for a version without an error.
func (w *Told) WaitVersion(number int64) Call {
	w.t.Helper()
	return w.Wait(fmt.Sprint("version ", number), func(c Call) bool { return c.Err == nil && c.Version.Number == number })
}

// WaitError waits for an error while a version stays in force.
func (w *Told) WaitError(inForce int64) Call {
	w.t.Helper()
	return w.Wait("an error", func(c Call) bool { return c.Err != nil && c.Version.Number == inForce })
}

func testWatch(t *testing.T, p Place) {
	writer, reader := p.Open(), p.Open()
	v := write(t, writer, source(1))
	own, other := Watch(t, writer), Watch(t, reader)
	for i := 2; i < 8; i++ {
		for _, w := range []*Told{own, other} {
			check(t, "Watch", w.WaitVersion(v.Number).Version, v.Number, source(i-1))
		}
		v = write(t, writer, source(i))
	}
	own.WaitVersion(v.Number)
	other.WaitVersion(v.Number)
	for _, w := range []*Told{own, other} {
		last := int64(0)
		for _, c := range w.Calls() {
			if c.Err != nil || c.Version.Number <= last {
				t.Errorf("version %d, %v was told after %d", c.Version.Number, c.Err, last)
			}
			last = c.Version.Number
		}
	}
}

// testWatchLast writes faster than anybody can follow.
func testWatchLast(t *testing.T, p Place) {
	writer := p.Open()
	w := Watch(t, p.Open())
	var v repo.Version
	for i := range 30 {
		v = write(t, writer, source(i))
	}
	check(t, "the last", w.WaitVersion(v.Number).Version, v.Number, source(29))
}
