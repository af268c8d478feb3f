package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/clock"
)

// work holds an item until its release, and does it.
func (r *runner) work(ctx context.Context, l Lease, received time.Time) {
	// The store gave the lease before we received it, so by our clock it may end sooner.
	// It is late enough to look at it when the store is asked.
	t := &task{runner: r, lease: l, ends: received.Add(time.Duration(l.Expires-l.Release)*time.Microsecond + l.Delay)}
	_ = clock.Sleep(ctx, time.Until(received.Add(l.Delay)))
	begin := ctx.Err() == nil
	if !begin {
		r.mu.Lock()
		r.unbegun = append(r.unbegun, l)
		r.mu.Unlock()
	}
	r.holders.Done()
	if begin {
		t.do()
	}
}

// task is an item at a worker.
type task struct {
	*runner
	lease Lease

	mu   sync.Mutex
	ends time.Time // of the lease, as far as is known
}

// do calls the handler and tells the store how it went.
func (t *task) do() {
	if time.Now().After(t.ends) {
		// The process stood still. Somebody else may have the item.
		if _, err := t.store.Extend(t.base, t.queue, t.lease.Token); err != nil {
			t.report("beginning too late with", err)
			return
		}
	}
	ctx, cancel := context.WithCancelCause(t.base)
	defer cancel(nil)
	if t.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, t.Timeout)
		defer stop()
	}
	working, finished := context.WithCancel(context.WithoutCancel(t.base))
	var extender sync.WaitGroup
	extender.Go(func() { t.extend(working, cancel) })
	failure := t.call(ctx)
	finished()
	extender.Wait()

	if failure == nil {
		t.tell("acknowledging", func(ctx context.Context) error { return t.store.Ack(ctx, t.queue, t.lease.Token) })
		return
	}
	f := Failure{Reason: failure.Error(), Bury: isBuried(failure)}
	t.tell("giving up", func(ctx context.Context) error {
		_, err := t.store.Nack(ctx, t.queue, t.lease.Token, f)
		return err
	})
}

// call makes an error of a panic: one bad item must not end the process again and again.
func (t *task) call(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
			t.report("handling", fmt.Errorf("%w\n%s", err, debug.Stack()))
		}
	}()
	return t.handler(ctx, t.lease)
}

// extend makes the lease last as long as the handler is at work.
func (t *task) extend(working context.Context, lost context.CancelCauseFunc) {
	every := max(t.terms.Visibility/3, time.Millisecond)
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-working.Done():
			return
		case <-timer.C:
		}
		asked := time.Now()
		left, err := t.store.Extend(working, t.queue, t.lease.Token)
		switch {
		case working.Err() != nil:
			return
		case errors.Is(err, ErrLost):
			t.report("extending", err)
			lost(ErrLost)
			return
		case err != nil:
			t.report("extending", err)
			timer.Reset(max(every/4, time.Millisecond))
		default:
			t.mu.Lock()
			t.ends = asked.Add(left)
			t.mu.Unlock()
			timer.Reset(every)
		}
	}
}

// tell ends the lease. While the store is unavailable it retries, as long as the lease
// lasts, so that finished work is not repeated because its result could not be stored.
func (t *task) tell(doing string, end func(context.Context) error) {
	t.mu.Lock()
	ends := t.ends
	t.mu.Unlock()
	ctx := context.WithoutCancel(t.base)
	unknown := false
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := end(ctx)
		if err == nil || unknown && errors.Is(err, ErrLost) {
			return // the time before, if not now
		}
		unknown = true
		if !errors.Is(err, ErrUnavailable) || time.Now().Add(pause).After(ends) {
			t.report(doing, err)
			return
		}
		if clock.Sleep(t.base, pause) != nil { // no more time: this was the last try
			t.report(doing, err)
			return
		}
	}
}

func (t *task) report(doing string, err error) {
	t.Report(fmt.Errorf("queue %s: %s item %d: %w", t.queue, doing, t.lease.Number, err))
}
