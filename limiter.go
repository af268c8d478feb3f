package weir

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir/internal/turns"
)

// Limiter is one limit on one store, for programs that need no more.
type Limiter struct {
	store Store
	limit *Compiled
	quick oneTaker
	turns turns.Turns // of those who wait
}

// oneTaker is what a store may have besides [Store]: Take for a single op. The
// arguments travel in registers, where a slice of ops would escape to the heap,
// so that a check in memory allocates nothing.
type oneTaker interface {
	TakeOne(ctx context.Context, key string, limit *Compiled, cost int64) (Decision, error)
	AllowOne(ctx context.Context, key string, limit *Compiled) (bool, error)

	// Unwrapped tells the store itself from a struct that embeds it and would
	// be passed over.
	Unwrapped(Store) bool
}

// slowTaker makes a oneTaker of any store.
type slowTaker struct{ store Store }

func (s slowTaker) TakeOne(ctx context.Context, key string, limit *Compiled, cost int64) (Decision, error) {
	return first(s.store.Take(ctx, nil, Op{Key: key, Limit: limit, Cost: cost}))
}

func (s slowTaker) AllowOne(ctx context.Context, key string, limit *Compiled) (bool, error) {
	d, err := s.TakeOne(ctx, key, limit, 1)
	return d.Allowed, err
}

func (s slowTaker) Unwrapped(Store) bool { return true }

// NewLimiter returns a limiter of every key by the same limit. Limiters that
// share a store need names (Limit.Name), unless they are to share what a key has
// used.
func NewLimiter(store Store, limit Limit) (*Limiter, error) {
	if store == nil {
		return nil, errors.New("weir: NewLimiter needs a store; memory.New makes one")
	}
	c, err := limit.Compile()
	if err != nil {
		return nil, err
	}
	quick, ok := store.(oneTaker)
	if !ok || !quick.Unwrapped(store) {
		quick = slowTaker{store}
	}
	return &Limiter{store: store, limit: c, quick: quick}, nil
}

// Allow takes one unit and reports whether the request may pass. It is not for
// shaping limits, which say how long to hold a request: use Take or Wait.
func (l *Limiter) Allow(ctx context.Context, key string) (bool, error) {
	if l.limit.limit.Shape {
		return false, errShape
	}
	return l.quick.AllowOne(ctx, key, l.limit)
}

// Take takes cost units, all or none of them.
func (l *Limiter) Take(ctx context.Context, key string, cost int64) (Decision, error) {
	return l.quick.TakeOne(ctx, key, l.limit, cost)
}

// TakeUpTo takes as many units as there are, at most n, and returns how many it took. If
// that is 0, the decision says when there will be one.
//
// Others who take at the same time can make it ask again, with less each time. A limit
// that counts denials counts such an attempt.
func (l *Limiter) TakeUpTo(ctx context.Context, key string, n int64) (int64, Decision, error) {
	if l.limit.limit.CountDenied {
		d, err := l.Peek(ctx, key, n)
		if err != nil {
			return 0, d, err
		}
		n = max(1, min(n, d.Remaining))
	}
	for {
		d, err := l.Take(ctx, key, n)
		switch {
		case err != nil:
			return 0, d, err
		case d.Allowed:
			return n, d, nil
		case n == 1:
			return 0, d, nil
		}
		n = max(1, min(n-1, d.Remaining))
	}
}

// Peek answers what Take would, and charges nothing; see [Store]. A cost of 0
// only looks.
func (l *Limiter) Peek(ctx context.Context, key string, cost int64) (Decision, error) {
	return first(l.store.Peek(ctx, nil, Op{Key: key, Limit: l.limit, Cost: cost}))
}

// Refund gives back cost units that Take charged in the decision with this
// receipt, for a request that came to nothing.
func (l *Limiter) Refund(ctx context.Context, key string, cost int64, receipt Micros) error {
	err := l.store.Refund(ctx, Op{Key: key, Limit: l.limit, Cost: cost, Receipt: receipt})
	l.turns.Wake(key)
	return err
}

// Reset forgets what the key has used.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	err := l.store.Reset(ctx, Op{Key: key, Limit: l.limit})
	l.turns.Wake(key)
	return err
}

// Wait is WaitN for one unit.
func (l *Limiter) Wait(ctx context.Context, key string) error { return l.WaitN(ctx, key, 1) }

// WaitN blocks until n units are taken at once and, with a shaping limit, until their
// turn has come. It returns ErrDeadline at once, and takes nothing, when the context's
// deadline is known to come first; a limit that counts denials counts that as one. More
// than the limit ever allows at once is an *InvalidError.
//
// Those who wait for the same key of a limiter are served in the order in which they
// came, and ask the store one at a time. So whoever wants many units keeps those behind
// waiting. The order among processes is left to chance, except with a shaping limit.
//
// A request that gives up while it is delayed by a shaping limit gives its turn back if
// it is the last in the queue; otherwise the turn passes unused.
func (l *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	op := Op{Key: key, Limit: l.limit, Cost: n}
	if err := op.Validate(); err != nil {
		return err
	}
	if n > l.limit.capacity {
		return invalid("cost", "%d units never fit into this limit; ask for at most %d at once", n, l.limit.capacity)
	}
	d, err := l.inTurn(ctx, op)
	if err != nil || d.Delay == 0 {
		return err
	}
	if err := pause(ctx, d.Delay, nil); err != nil {
		// If that fails, the turn passes unused.
		l.Refund(context.WithoutCancel(ctx), key, n, d.Receipt)
		return err
	}
	return nil
}

// inTurn takes the op when those who came before have had their turn and there is room.
func (l *Limiter) inTurn(ctx context.Context, op Op) (Decision, error) {
	if _, ok := ctx.Deadline(); ok && l.turns.Taken(op.Key) {
		// Those in front need what there is; who cannot even wait for that need not join.
		d, err := first(l.store.Peek(ctx, nil, op))
		if err != nil {
			return d, err
		}
		if outlasts(ctx, max(d.Delay, d.RetryAfter)) {
			return d, ErrDeadline
		}
	}
	turn, err := l.turns.Join(ctx, op.Key)
	if err != nil {
		return Decision{}, err
	}
	defer turn.End()
	for {
		d, err := l.reserve(ctx, op)
		switch {
		case err != nil || d.Allowed:
			return d, err
		case d.RetryAfter <= 0:
			return d, errors.New("weir: the store denied and did not say when to come back")
		}
		if err := pause(ctx, d.RetryAfter, turn.Woken()); err != nil {
			return d, err
		}
	}
}

// reserve takes the op, but no turn that comes after the deadline.
func (l *Limiter) reserve(ctx context.Context, op Op) (Decision, error) {
	if _, ok := ctx.Deadline(); ok && l.limit.limit.Shape {
		d, err := first(l.store.Peek(ctx, nil, op))
		if err != nil || !d.Allowed {
			return d, err
		}
		if outlasts(ctx, d.Delay) {
			return d, ErrDeadline
		}
		// Others may queue up in the meantime: then this denies, rather than
		// take a turn that was not judged, and inTurn looks again.
		op.MaxDelay = max(d.Delay, time.Microsecond)
	}
	return first(l.store.Take(ctx, nil, op))
}

// TakeAll takes what all ops ask for, or nothing, and reports whether it did. It is
// [Store.Take] for whoever has no slice to use again.
func TakeAll(ctx context.Context, store Store, ops ...Op) (bool, []Decision, error) {
	decisions, err := store.Take(ctx, make([]Decision, 0, len(ops)), ops...)
	return err == nil && Allowed(decisions), decisions, err
}

// first is the answer of a store that was asked one thing.
func first(d []Decision, err error) (Decision, error) {
	if err != nil {
		return Decision{}, err
	}
	return d[0], nil
}

// pause sleeps for d or until it is woken, or returns why it cannot.
func pause(ctx context.Context, d time.Duration, woken <-chan struct{}) error {
	if outlasts(ctx, d) {
		return ErrDeadline
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-woken:
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
