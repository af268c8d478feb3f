package alert

import (
	"context"
	"sync"
	"time"
)

// Test is the kind of an alert that is sent only to see whether it arrives.
const Test Kind = "test"

// Delivery is what became of a message.
type Delivery struct {
	To  string // the notifier's name
	Err error  // nil if it took the message
}

// Test sends an alert of the kind Test to every notifier, once and at once, whichever
// instance sends otherwise and whatever is silenced. It returns what was sent, and what
// became of it in the order of the notifiers.
func (w *Watcher) Test(ctx context.Context) (Alert, []Delivery) {
	now := w.options.Clock().UTC().Truncate(time.Second)
	a := w.sign([]Alert{{
		ID: string(Test), Kind: Test, State: Firing, Value: 1, Current: 1, Threshold: 1,
		Summary: "this is a test: nothing is wrong", StartsAt: now, UpdatedAt: now,
	}})
	all := make([]Delivery, len(w.options.Notifiers))
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var sending sync.WaitGroup
	for i, n := range w.options.Notifiers {
		sending.Go(func() { all[i] = Delivery{n.Name(), n.Notify(ctx, a)} })
	}
	sending.Wait()
	return a[0], all
}
