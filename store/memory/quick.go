package memory

import (
	"context"
	"time"

	"github.com/weirhq/weir"
)

// quick is a Store with the calls that package weir and the engine make instead of those of
// weir.Store, because they cost less.
type quick Store

// Quick is for package weir and the engine: it returns what they call instead of the methods of
// weir.Store. It is nil if store is not this Store itself, but a wrapper with its own Take.
func (s *Store) Quick(store weir.Store) any {
	if self, ok := store.(*Store); ok && self == s {
		return (*quick)(s)
	}
	return nil
}

// Elapsed returns the time by the store's clock since an instant of the store's choice.
func (q *quick) Elapsed() time.Duration {
	s := (*Store)(q)
	if s.own != nil {
		return time.Duration(s.own()) * time.Microsecond
	}
	return s.clock.Since()
}

// TakeAt does what Take does, for a caller who has just called Elapsed, and knows what it
// returned.
func (q *quick) TakeAt(ctx context.Context, read time.Duration, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	s := (*Store)(q)
	if err := ctx.Err(); err != nil {
		return dst, err
	}
	if err := weir.ValidateTake(ops); err != nil {
		return dst, err
	}
	if len(ops) == 1 {
		dst = append(dst, weir.Decision{})
		s.take(s.core.Load(), s.at(read), &ops[0], &dst[len(dst)-1], nil)
		return dst, nil
	}
	return s.takeMany(s.core.Load(), s.at(read), dst, ops, nil), nil
}

// TakeOne does what Take does for one op, without slices for the op and the decision.
func (q *quick) TakeOne(ctx context.Context, key string, limit *weir.Compiled, cost int64) (d weir.Decision, err error) {
	s := (*Store)(q)
	if err := ctx.Err(); err != nil {
		return d, err
	}
	op := weir.Op{Key: key, Limit: limit, Cost: cost}
	if err := op.Validate(); err != nil {
		return d, err
	}
	s.take(s.core.Load(), s.now(), &op, &d, nil)
	return d, nil
}

// AllowOne does what TakeOne does, but returns only whether the request is allowed.
func (q *quick) AllowOne(ctx context.Context, key string, limit *weir.Compiled) (bool, error) {
	s := (*Store)(q)
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if uint(len(key)-1) < weir.MaxKeyLen && limit != nil && limit.Simple() {
		if allowed, ok := s.allowKnown(key, limit); ok {
			return allowed, nil
		}
	}
	d, err := q.TakeOne(ctx, key, limit, 1)
	return d.Allowed, err
}

// ReserveOne does what Reserve does for one op without a tag, without slices for the op and
// the decision.
func (q *quick) ReserveOne(ctx context.Context, id weir.HoldID, ttl time.Duration, key string, limit *weir.Compiled, cost int64) (d weir.Decision, err error) {
	s := (*Store)(q)
	if err := ctx.Err(); err != nil {
		return d, err
	}
	var r weir.Reservation // not a literal, which would be built elsewhere and copied here
	r.ID, r.TTL = id, ttl
	var op weir.Op
	op.Key, op.Limit, op.Cost = key, limit, cost
	if err := r.ValidateTTL(); err != nil {
		return d, err
	}
	if err := op.Validate(); err != nil {
		return d, err
	}
	c, now := s.core.Load(), s.now()
	sh := c.holdShard(&r.ID)
	sh.mu.Lock()
	o := opening{shard: sh, reservation: &r, expires: now.Add(r.TTL)}
	err = c.openLocked(&o, now, 1)
	if err == nil {
		if s.take(c, now, &op, &d, &o); d.Allowed {
			o.concludeLocked()
		}
	}
	sh.mu.Unlock()
	return d, err
}

// SettleOne settles a hold with the same number of units for each part. If it is this call
// that ends the hold, the parts of its answer are in dst, as far as that has room.
func (q *quick) SettleOne(ctx context.Context, dst []weir.SettledPart, id weir.HoldID, used int64) (answer weir.Settled, err error) {
	s := (*Store)(q)
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	c, now := s.core.Load(), s.now()
	sh := c.holdShard(&id)
	sh.mu.Lock()
	switch at, h, done := c.lookLocked(sh, &id, now); {
	case h != nil:
		answer.Parts = dst
		s.finishLocked(c, sh, at, h, func(string, int64) int64 { return used }, now, false, &answer)
	case done != nil:
		answer = done.answer()
	}
	sh.mu.Unlock()
	return answer, nil
}
