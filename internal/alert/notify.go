package alert

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/clock"
)

// Notifier sends notifications about alerts that started or ended. A *PermanentError is
// not retried.
type Notifier interface {
	Name() string // for the log; without secrets
	Notify(ctx context.Context, alerts []Alert) error
}

// Repeater is a notifier that must be notified repeatedly while an alert fires.
type Repeater interface{ Repeat() time.Duration }

// PermanentError is an error that a retry cannot fix.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// Bounds on telling.
const (
	maxQueue    = 64               // messages that wait
	maxAttempts = 8                // for one message
	firstPause  = time.Second      // which doubles
	maxPause    = 30 * time.Second // up to this
	patience    = 10 * time.Second // for one attempt
)

// recipient is a notifier with what waits for it. Alerts and warnings wait apart, so that many
// warnings displace no alert.
type recipient struct {
	Notifier
	alerts, warnings *outbox
	repeated         time.Time
}

// outbox is what waits for a notifier, which gets one message after the other.
type outbox struct {
	to      string // its name
	what    string // for the log
	logger  *slog.Logger
	signal  chan struct{}
	dropped atomic.Int64

	mu      sync.Mutex
	waiting []message
}

// message sends itself.
type message func(context.Context) error

func newOutbox(to, what string, logger *slog.Logger) *outbox {
	return &outbox{to: to, what: what, logger: logger, signal: make(chan struct{}, 1)}
}

// putMessage never waits: if too much does already, the oldest is dropped.
func (o *outbox) putMessage(send message) {
	o.mu.Lock()
	o.waiting = append(o.waiting, send)
	if len(o.waiting) > maxQueue {
		o.waiting = o.waiting[1:]
		o.dropped.Add(1)
	}
	o.mu.Unlock()
	select {
	case o.signal <- struct{}{}:
	default:
	}
}

// takeMessage returns the first message; nil if there is none.
func (o *outbox) takeMessage() (first message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) > 0 {
		first, o.waiting = o.waiting[0], o.waiting[1:]
	}
	return first
}

// run tells until the context ends.
func (o *outbox) run(ctx context.Context) {
	for {
		select {
		case <-o.signal:
			for send := o.takeMessage(); send != nil && ctx.Err() == nil; send = o.takeMessage() {
				o.deliver(ctx, send)
			}
		case <-ctx.Done():
			return
		}
	}
}

// deliver tries until it succeeds or makes no sense any more.
func (o *outbox) deliver(ctx context.Context, send message) {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		once, cancel := context.WithTimeout(ctx, patience)
		err := send(once)
		cancel()
		if err == nil || ctx.Err() != nil {
			return
		}
		if _, permanent := errors.AsType[*PermanentError](err); permanent || attempt == maxAttempts {
			o.dropped.Add(1)
			o.logger.Error(o.what+" not sent", "to", o.to, "attempts", attempt, "error", err)
			return
		}
		if clock.Sleep(ctx, time.Duration(float64(pause)*(0.5+0.5*rand.Float64()))) != nil {
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// Test is the kind of a test alert, which only checks that notifications arrive.
const Test Kind = "test"

// Delivery is the result of a notification.
type Delivery struct {
	To  string // the notifier's name
	Err error  // nil if the notification was accepted
}

// Test sends an alert of the kind Test to every notifier, once and immediately,
// regardless of silences and of which instance usually sends. It returns the alert and
// the results in the order of the notifiers.
func (w *Watcher) Test(ctx context.Context) (Alert, []Delivery) {
	now := w.options.Clock().UTC().Truncate(time.Second)
	a := attributed(w.sign([]Alert{{
		ID: string(Test), Kind: Test, State: Firing, Value: 1, Current: 1, Threshold: 1,
		Summary: "This is a test alert; no action is required.", StartsAt: now, UpdatedAt: now,
	}}))
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
