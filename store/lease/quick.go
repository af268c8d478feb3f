package lease

import (
	"context"
	"time"

	"github.com/weirhq/weir"
)

// quickStore is what package weir calls instead of the methods of weir.Store; see weir.Limiter.
type quickStore interface {
	ReserveOne(ctx context.Context, id weir.HoldID, ttl time.Duration, key string, limit *weir.Compiled, cost int64) (weir.Decision, error)
	SettleOne(ctx context.Context, dst []weir.SettledPart, id weir.HoldID, used int64) (weir.Settled, error)
}

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
	if allowed, ok := s.decideOne(&op, d); ok {
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

// ReserveOne does what Reserve does for one op.
func (q *quick) ReserveOne(ctx context.Context, id weir.HoldID, ttl time.Duration, key string, limit *weir.Compiled, cost int64) (weir.Decision, error) {
	s := (*Store)(q)
	if s.quick != nil {
		return s.quick.ReserveOne(ctx, id, ttl, key, limit, cost)
	}
	decisions, err := s.Reserve(ctx, nil, weir.Reservation{ID: id, TTL: ttl}, weir.Op{Key: key, Limit: limit, Cost: cost})
	if err != nil {
		return weir.Decision{}, err
	}
	return decisions[0], nil
}

// SettleOne settles a hold.
func (q *quick) SettleOne(ctx context.Context, dst []weir.SettledPart, id weir.HoldID, used int64) (weir.Settled, error) {
	s := (*Store)(q)
	if s.quick != nil {
		return s.quick.SettleOne(ctx, dst, id, used)
	}
	return s.Settle(ctx, weir.Settlement{ID: id, Used: func(string, int64) int64 { return used }})
}
