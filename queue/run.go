package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/clock"
)

// Defaults and bounds of RunOptions.
const (
	DefaultAhead = 100 * time.Millisecond
	DefaultGrace = 10 * time.Second
	DefaultPoll  = time.Second

	MaxWorkers = 10_000
)

// Handler processes an item. If it returns nil, the item is done. If it returns an
// error or panics, the item has failed and is retried; see [Bury]. The context ends
// when the lease is lost, when the timeout has passed, and when Run must stop; the
// handler should return soon after that.
type Handler func(ctx context.Context, l Lease) error

// RunOptions configures Run. The zero value is ready to use.
type RunOptions struct {
	// Workers is the number of items processed concurrently. Default 1. The number of
	// workers does not change the pace of the queue.
	Workers int

	// Ahead is how long before its release an item is leased. Default DefaultAhead. It
	// should be longer than a round trip to the store.
	Ahead time.Duration

	// Timeout is the maximum duration of a handler. Default 0: no maximum.
	Timeout time.Duration

	// Grace is how long handlers may continue after Run was stopped, before their
	// context ends. Default DefaultGrace.
	Grace time.Duration

	// Poll is the polling interval for an empty queue, ±20 %, in case a notification
	// was lost. Default DefaultPoll.
	Poll time.Duration

	// Report receives errors of the store, of leases, and of handlers that panic. It
	// must not block. Default none.
	Report func(error)
}

func (o RunOptions) withDefaults() (RunOptions, error) {
	o.Workers = cmp.Or(o.Workers, 1)
	if o.Workers < 0 || o.Workers > MaxWorkers {
		return o, invalid("workers", "%d is out of range; write 1 to %d", o.Workers, MaxWorkers)
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	return o, cmp.Or(
		bound("ahead", "up to", &o.Ahead, DefaultAhead, MaxAhead, 1),
		bound("timeout", "up to", &o.Timeout, 0, 1<<62, 1),
		bound("grace", "up to", &o.Grace, DefaultGrace, 1<<62, 1),
		bound("poll", "up to", &o.Poll, DefaultPoll, time.Minute, 1),
	)
}

// Run processes the items of a queue until the context ends. Then it leases no more
// items, returns those that were not started, waits for running handlers, and returns
// nil. It returns an error only for invalid arguments. Errors of the store are
// reported, and Run retries.
//
// Run extends the lease while a handler works. So an item goes to another worker if its
// worker died, not if it is slow.
func Run(ctx context.Context, store Store, queue string, handler Handler, o RunOptions) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if store == nil || handler == nil {
		return errors.New("queue: Run requires a store and a handler")
	}
	terms, err := store.Terms(queue)
	if err != nil {
		return err
	}
	r := &runner{store: store, queue: queue, handler: handler, terms: terms, RunOptions: o, seats: make(chan struct{}, o.Workers)}
	// What was leased has to be seen to, whatever becomes of the context.
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	r.base = base

	wake := make(chan struct{}, 1)
	var listener sync.WaitGroup
	listener.Go(func() {
		err := store.Watch(ctx, queue, func() {
			select {
			case wake <- struct{}{}:
			default: // once is enough
			}
		})
		if err != nil && ctx.Err() == nil {
			o.Report(err)
		}
	})
	r.lease(ctx, wake)
	r.giveBack()
	listener.Wait()
	r.finish(stop)
	return nil
}

// runner is one Run.
type runner struct {
	RunOptions
	store   Store
	queue   string
	handler Handler
	terms   *Terms
	base    context.Context // ends when handlers must

	seats   chan struct{}  // holds a word for each worker that has an item
	workers sync.WaitGroup // that have an item
	holders sync.WaitGroup // that have not begun with it

	mu       sync.Mutex
	unbegun  []Lease
	troubles int // questions in a row that were not answered
}

// lease gets items for workers that are free, until the context ends.
func (r *runner) lease(ctx context.Context, wake <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case r.seats <- struct{}{}:
		}
		free := 1
		for more := true; more && free < MaxBatch; {
			select {
			case r.seats <- struct{}{}:
				free++
			default:
				more = false
			}
		}
		// Not with the context: if it ended meanwhile, the leases in the answer would be
		// lost.
		batch, err := r.store.Lease(r.base, r.queue, Ask{Max: free, Ahead: r.Ahead})
		received := time.Now()
		for range free - len(batch.Leases) {
			<-r.seats
		}
		for _, l := range batch.Leases {
			r.holders.Add(1)
			r.workers.Go(func() {
				defer func() { <-r.seats }()
				r.work(ctx, l, received)
			})
		}
		pause := min(batch.Wait, clock.Jitter(r.Poll))
		if err != nil {
			pause = r.trouble(err)
		} else {
			r.troubles = 0
		}
		if pause <= 0 {
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-wake:
		}
		timer.Stop()
	}
}

// trouble reports an error of the store, and says how long to wait: longer each time.
func (r *runner) trouble(err error) time.Duration {
	r.Report(fmt.Errorf("queue %s: leasing: %w", r.queue, err))
	r.troubles++
	return min(clock.Jitter(r.Poll), 50*time.Millisecond<<min(r.troubles, 10))
}

// giveBack returns what is leased and not begun, the last first: then the turns are free
// again, too.
func (r *runner) giveBack() {
	r.holders.Wait()
	ctx, cancel := context.WithTimeout(r.base, r.Grace)
	defer cancel()
	slices.SortFunc(r.unbegun, func(a, b Lease) int {
		return cmp.Or(cmp.Compare(b.Release, a.Release), cmp.Compare(b.Number, a.Number))
	})
	for _, l := range r.unbegun {
		if err := r.store.Return(ctx, r.queue, l.Token); err != nil && !errors.Is(err, ErrLost) {
			r.Report(fmt.Errorf("queue %s: returning item %d, which goes to another worker when its lease expires: %w", r.queue, l.Number, err))
		}
	}
}

// errStopped is why the context of a handler ends when Run has waited long enough.
var errStopped = errors.New("queue: the worker was told to stop")

// finish waits for handlers that are at work.
func (r *runner) finish(stop context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.workers.Wait()
	}()
	timer := time.NewTimer(r.Grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		stop(errStopped)
		<-done
	}
}
