package run

import (
	"context"
	"sync"
	"time"

	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/plan"
)

// watch finds out by itself when the store is well and who serves, and tells the timeline.
type watch struct {
	store    store
	timeline *check.Timeline
	now      func() time.Duration
	patience time.Duration // beyond which the store does not answer

	mu       sync.Mutex
	owners   owners
	seen     time.Duration // when these were
	expected bool          // another master is no loss, or one that is known
	since    time.Duration // when the fault began; none if 0
}

const (
	watchEvery = 40 * time.Millisecond

	// rumour is for how long a node may not know yet who is the master.
	rumour = time.Second
)

func (w *watch) run(ctx context.Context) {
	well, sick := w.now(), false
	for tick := time.Tick(watchEvery); ctx.Err() == nil; <-tick {
		begun := w.now()
		o := w.look()
		ok := w.ask(o)
		if !ok || sick {
			w.timeline.Sick(check.Span{From: well, To: w.now()})
		}
		if sick = !ok; ok {
			well = begun
		}
	}
}

// look asks who serves. If that has changed, what the former master knew may be lost.
func (w *watch) look() owners {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, err := w.store.owners()
	if err != nil {
		return w.owners
	}
	before := w.owners
	if w.owners != nil && !w.expected {
		changed := func(slot int) bool { a, b := before.of(slot), o.of(slot); return a != nil && b != nil && a != b }
		if before.begins(changed) || o.begins(changed) {
			from := w.seen - rumour
			if w.since > 0 {
				from = min(from, w.since)
			}
			w.timeline.Lose(check.Loss{Span: check.Span{From: from, To: check.Open}, Lives: 1, Has: changed})
		}
	}
	w.owners, w.seen = o, w.now()
	return o
}

// ask writes into each part of the store.
func (w *watch) ask(o owners) bool {
	failed := make(chan error)
	keys := w.store.probe()
	for _, key := range keys {
		go func() { failed <- asks(o, w.store.slotOf(key), key, w.patience) }()
	}
	ok := true
	for range keys {
		ok = <-failed == nil && ok
	}
	return ok
}

// begin says that a fault begins now, and whether it is known what a new master means.
func (w *watch) begin(expected bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since, w.expected = w.now(), expected
}

// end says that the fault is over and the store in order.
func (w *watch) end() {
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since, w.expected = 0, false
	w.timeline.EndLosses(w.now() + plan.Lease) // until then, instances may spend what a lost master had leased
}
