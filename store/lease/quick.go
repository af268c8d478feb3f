package lease

import (
	"context"
	"time"

	"github.com/weirhq/weir"
)

// quick is a Store with calls that cost less.
type quick Store

// Quick is for package weir: it returns what it calls instead of the methods of weir.Store. It is nil if store is not this
// Store itself, but a wrapper with its own Take.
func (s *Store) Quick(store weir.Store) any {
	if self, ok := store.(*Store); ok && self == s {
		return (*quick)(s)
	}
	return nil
}

// tolerance is how far two readings of both clocks may differ by themselves.
const tolerance = 500 * time.Microsecond

// unread is instead of what Elapsed has returned.
const unread = -1

// Elapsed returns the time since the start by the clock that is never set. It looks at the time of day, too, so that who has just called
// it knows both.
func (q *quick) Elapsed() time.Duration {
	s := (*Store)(q)
	for {
		was, now := s.offset.Load(), s.now() // in this order, so that what another one has found out since is not replaced
		offset := now.wall - int64(now.elapsed)
		if time.Duration(offset-was).Abs() <= tolerance || s.offset.CompareAndSwap(was, offset) {
			return now.elapsed
		}
	}
}

// at returns both clocks as of an Elapsed.
func (s *Store) at(read time.Duration) instant {
	if read == unread {
		return s.now()
	}
	return instant{int64(read) + s.offset.Load(), read}
}

// TakePartialAt does what TakePartial does, for a caller who has just called Elapsed, and knows what it returned.
func (q *quick) TakePartialAt(ctx context.Context, read time.Duration, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	return (*Store)(q).takePartial(ctx, read, dst, ops)
}

// TakeOne does what Take does for one op, without slices for the op and the decision.
func (q *quick) TakeOne(ctx context.Context, key string, limit *weir.Compiled, cost int64) (d weir.Decision, err error) {
	if _, err = q.takeOne(ctx, weir.Op{Key: key, Limit: limit, Cost: cost}, &d); err != nil {
		return weir.Decision{}, err
	}
	return d, nil
}

// AllowOne does what TakeOne does, but returns only whether the request is allowed.
func (q *quick) AllowOne(ctx context.Context, key string, limit *weir.Compiled) (bool, error) {
	return q.takeOne(ctx, weir.Op{Key: key, Limit: limit, Cost: 1}, nil)
}

func (q *quick) takeOne(ctx context.Context, op weir.Op, d *weir.Decision) (bool, error) {
	s := (*Store)(q)
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := op.Validate(); err != nil {
		return false, err
	}
	if allowed, ok := s.decideOne(unread, &op, d); ok {
		return allowed, nil
	}
	return s.askOne(ctx, op.Key, op.Limit, op.Cost, d)
}

// askOne is apart so that only ops that ask are on the heap.
func (s *Store) askOne(ctx context.Context, key string, limit *weir.Compiled, cost int64, d *weir.Decision) (bool, error) {
	decisions, err := s.ask(ctx, nil, []weir.Op{{Key: key, Limit: limit, Cost: cost}})
	if err != nil {
		return false, err
	}
	if d != nil {
		*d = decisions[0]
	}
	return decisions[0].Allowed, nil
}
