package weir

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Limiter is one limit on one store, for programs that need no more.
type Limiter struct {
	store Store
	limit *Compiled
}

// NewLimiter returns a limiter of every key by the same limit.
func NewLimiter(store Store, limit Limit) (*Limiter, error) {
	if store == nil {
		return nil, errors.New("weir: NewLimiter needs a store; memory.New makes one")
	}
	c, err := limit.Compile()
	if err != nil {
		return nil, err
	}
	return &Limiter{store: store, limit: c}, nil
}

// Allow takes one unit and reports whether the request may pass. With a shaping
// limit, use Take or Wait, which tell how long to hold it.
func (l *Limiter) Allow(ctx context.Context, key string) (bool, error) {
	d, err := l.Take(ctx, key, 1)
	return d.Allowed, err
}

// Take takes cost units, all or none of them.
func (l *Limiter) Take(ctx context.Context, key string, cost int64) (Decision, error) {
	return one(ctx, l.store.Take, Op{Key: key, Limit: l.limit, Cost: cost})
}

// Peek answers what Take would, and charges nothing; see [Store]. A cost of 0
// only looks.
func (l *Limiter) Peek(ctx context.Context, key string, cost int64) (Decision, error) {
	return one(ctx, l.store.Peek, Op{Key: key, Limit: l.limit, Cost: cost})
}

// Reset forgets what the key has used.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	return l.store.Reset(ctx, Op{Key: key, Limit: l.limit})
}

// Wait blocks until one unit is taken and, with a shaping limit, until its turn
// has come. It returns ErrDeadline at once, and charges nothing, when the
// context's deadline comes first. Those who wait for the same key are not
// served in order, except by a shaping limit. A request that gives up while it
// is held has used its turn.
func (l *Limiter) Wait(ctx context.Context, key string) error {
	for {
		d, err := l.reserve(ctx, key)
		if err != nil {
			return err
		}
		if err := pause(ctx, max(d.Delay, d.RetryAfter)); err != nil {
			return err
		}
		if d.Allowed {
			return nil
		}
	}
}

// reserve takes a unit, but no turn that comes after the deadline.
func (l *Limiter) reserve(ctx context.Context, key string) (Decision, error) {
	op := Op{Key: key, Limit: l.limit, Cost: 1}
	if _, ok := ctx.Deadline(); ok && l.limit.limit.Shape {
		d, err := one(ctx, l.store.Peek, op)
		if err != nil || !d.Allowed || outlasts(ctx, d.Delay) {
			return d, err
		}
		// Others may queue up in the meantime: then this refuses, rather than
		// take a turn that was not judged, and Wait looks again.
		op.MaxDelay = max(d.Delay, time.Microsecond)
	}
	return one(ctx, l.store.Take, op)
}

// pause sleeps for d, or returns why it cannot.
func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	if outlasts(ctx, d) {
		return ErrDeadline
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// outlasts reports whether the context's deadline comes before d is over. The
// context package compares them, which keeps this one free of clocks.
func outlasts(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	if !ok {
		return false
	}
	slot, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	end, _ := slot.Deadline()
	return !end.Before(deadline)
}

// call holds the arguments of a store call, which escape to the heap through
// the interface; reusing them keeps a check free of allocations.
type call struct {
	ops       [1]Op
	decisions [1]Decision
}

var calls = sync.Pool{New: func() any { return new(call) }}

func one(ctx context.Context, do func(context.Context, []Decision, ...Op) ([]Decision, error), op Op) (Decision, error) {
	c := calls.Get().(*call)
	c.ops[0] = op
	out, err := do(ctx, c.decisions[:0], c.ops[:]...)
	var d Decision
	if err == nil {
		d = out[0]
	}
	*c = call{} // keeps no client's key alive
	calls.Put(c)
	return d, err
}
