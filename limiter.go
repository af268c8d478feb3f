package weir

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir/internal/order"
)

// Limiter applies one limit to every key of a store. It is safe for concurrent use.
//
// Three methods take units, and differ if there are not enough. Most callers should use Allow.
// Allow says no. Take says no, too, and also how many units remain and when to retry; a request
// can cost more than one. Wait and WaitN block until there are enough.
//
// The others are for special needs:
//
//   - TakeUpTo takes what remains, for work that can be done in part.
//   - Peek looks and charges nothing. Reset clears the usage of a key.
//   - Refund gives back what Take charged, for a request that failed.
//   - Reserve charges an estimate, if the cost is known only afterwards; [Hold.Settle] corrects it.
//     Charge is for work that is done already and was not reserved.
//   - Renew keeps a place of an InFlight limit, for a request that takes longer than its Period.
type Limiter struct {
	store      Store
	limit      *Compiled
	quick      quickStore          // nil if the store is not one
	holds      HoldStore           // nil if the store has none
	quickHolds quickHoldStore      // nil if the store is not one
	turns      order.Turns[string] // of those who wait
}

// quickStore is what a store may have besides [Store]: its calls for a single op. The
// arguments travel in registers, where a slice of ops would escape to the heap,
// so that a check in memory allocates nothing.
type quickStore interface {
	TakeOne(ctx context.Context, key string, limit *Compiled, cost int64) (Decision, error)
	AllowOne(ctx context.Context, key string, limit *Compiled) (bool, error)
}

// quickHoldStore is the same beside [HoldStore].
type quickHoldStore interface {
	ReserveOne(ctx context.Context, id HoldID, ttl time.Duration, key string, limit *Compiled, cost int64) (Decision, error)

	// SettleOne settles a hold. If it is this call that ends the hold, the parts of its
	// answer are in dst, as far as that has room.
	SettleOne(ctx context.Context, dst []SettledPart, id HoldID, used int64) (Settled, error)
}

// NewLimiter returns a Limiter. Limiters on the same store share the usage of a key,
// unless their limits have different names (Limit.Name).
func NewLimiter(store Store, limit Limit) (*Limiter, error) {
	if store == nil {
		return nil, errors.New("weir: NewLimiter requires a store; create one with memory.New")
	}
	c, err := limit.Compile()
	if err != nil {
		return nil, err
	}
	l := &Limiter{store: store, limit: c}
	l.holds, _ = store.(HoldStore)
	if own, ok := store.(interface{ Quick(Store) any }); ok { // nil if the store is only embedded in this one
		quick := own.Quick(store)
		l.quick, _ = quick.(quickStore)
		l.quickHolds, _ = quick.(quickHoldStore)
	}
	return l, nil
}

// Allow takes one unit and reports whether the request is allowed. Shaping limits need
// Take or Wait instead, because their decisions include a delay.
func (l *Limiter) Allow(ctx context.Context, key string) (bool, error) {
	if l.limit.limit.Shape {
		return false, errShape
	}
	if l.quick != nil {
		return l.quick.AllowOne(ctx, key, l.limit)
	}
	d, err := l.Take(ctx, key, 1)
	return d.Allowed, err
}

// Take takes cost units, all or none.
func (l *Limiter) Take(ctx context.Context, key string, cost int64) (Decision, error) {
	if l.quick != nil {
		return l.quick.TakeOne(ctx, key, l.limit, cost)
	}
	return onlyDecision(l.store.Take(ctx, nil, Op{Key: key, Limit: l.limit, Cost: cost}))
}

// Charge takes cost units whether or not they fit, for work that is done already; see
// [Op.Always].
func (l *Limiter) Charge(ctx context.Context, key string, cost int64) (Decision, error) {
	return onlyDecision(l.store.Take(ctx, nil, Op{Key: key, Limit: l.limit, Cost: cost, Always: true}))
}

// TakeUpTo takes up to n units, as many as remain, and returns how many it took. If it
// took none, the decision tells when the next unit is free.
//
// Concurrent calls for the same key can make it retry, with fewer units each time. A
// limit with CountDenied counts such an attempt.
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

// Peek returns the decision that Take would return, and charges nothing; see [Store].
// The cost may be 0.
func (l *Limiter) Peek(ctx context.Context, key string, cost int64) (Decision, error) {
	return onlyDecision(l.store.Peek(ctx, nil, Op{Key: key, Limit: l.limit, Cost: cost}))
}

// Refund gives back cost units that Take charged in the decision with this receipt, for
// example if the request failed.
func (l *Limiter) Refund(ctx context.Context, key string, cost int64, receipt Receipt) error {
	err := l.store.Refund(ctx, Op{Key: key, Limit: l.limit, Cost: cost, Receipt: receipt})
	l.turns.Wake(key)
	return err
}

// Renew lets a place of an InFlight limit, which Take or Renew has taken, be taken for
// another Period from now on. The place has a new receipt from now on. If the place was free
// already, Renew takes one even if there is none left, because the request is in flight:
// Allowed then is false.
func (l *Limiter) Renew(ctx context.Context, key string, receipt Receipt) (Decision, error) {
	if receipt <= 0 {
		return Decision{}, invalid("receipt", "%d is not a valid receipt; use that of the decision that took the place", receipt)
	}
	return onlyDecision(l.store.Take(ctx, nil, Op{Key: key, Limit: l.limit, Cost: 1, Always: true, Receipt: receipt}))
}

// Reset clears the usage of the key.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	err := l.store.Reset(ctx, Op{Key: key, Limit: l.limit})
	l.turns.Wake(key)
	return err
}

// Wait takes one unit as WaitN does.
func (l *Limiter) Wait(ctx context.Context, key string) error { return l.WaitN(ctx, key, 1) }

// WaitN blocks until it has taken n units at once and, with a shaping limit, until
// their turn. If the context's deadline comes first, it returns ErrDeadline immediately
// and takes nothing; a limit with CountDenied counts that as a denial. If n is more
// than the limit's capacity, the error is an *InvalidError.
//
// Waiters for the same key of a Limiter are served in order of arrival and ask the
// store one at a time, so a call for many units delays those behind it. Among processes
// the order is undefined, except with a shaping limit.
//
// A request that gives up while a shaping limit delays it frees its turn if it is the
// last in the queue; otherwise the turn passes unused.
func (l *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	op := Op{Key: key, Limit: l.limit, Cost: n}
	if err := op.Validate(); err != nil {
		return err
	}
	if n > l.limit.capacity {
		return invalid("cost", "%d units exceed this limit; request at most %d at once", n, l.limit.capacity)
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
		d, err := onlyDecision(l.store.Peek(ctx, nil, op))
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
		d, err := l.takeInTime(ctx, op)
		switch {
		case err != nil || d.Allowed:
			return d, err
		case d.RetryAfter <= 0:
			return d, errors.New("weir: the store denied without a time to wait")
		}
		if err := pause(ctx, d.RetryAfter, turn.Woken()); err != nil {
			return d, err
		}
	}
}

// takeInTime takes the op, but no turn that comes after the deadline.
func (l *Limiter) takeInTime(ctx context.Context, op Op) (Decision, error) {
	if _, ok := ctx.Deadline(); ok && l.limit.limit.Shape {
		d, err := onlyDecision(l.store.Peek(ctx, nil, op))
		if err != nil || !d.Allowed {
			return d, err
		}
		if outlasts(ctx, d.Delay) {
			return d, ErrDeadline
		}
		// Others may queue up in the meantime. Then this denies, instead of taking a turn
		// that was not checked, and inTurn checks again.
		op.MaxDelay = max(d.Delay, time.Microsecond)
	}
	return onlyDecision(l.store.Take(ctx, nil, op))
}

// TakeAll charges all ops or none, and reports whether it charged them. It is
// [Store.Take] without a slice to reuse.
func TakeAll(ctx context.Context, store Store, ops ...Op) (bool, []Decision, error) {
	decisions, err := store.Take(ctx, make([]Decision, 0, len(ops)), ops...)
	return err == nil && Allowed(decisions), decisions, err
}

// onlyDecision is the answer of a store that was asked one thing.
func onlyDecision(d []Decision, err error) (Decision, error) {
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
