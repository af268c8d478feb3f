package lease

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/weirhq/weir"
)

// hold is a hold on leased units. It is in no store.
type hold struct {
	parts []part

	// Of the reservation, while it is decided.
	reservation weir.Reservation
	final       []bool // by op: it is spent

	// Of a settlement that the store has to complete: what it answers, and what is charged for it.
	settled []weir.SettledPart
	rest    []weir.Op
	of      []int // the part of each op
	waits   bool
}

// part is what a hold has of a lease.
type part struct {
	e    *entry
	of   *batch
	cost int64
	tag  string
}

// batch is what holds of about the same age have of a lease. A hold that is short reserves its units until it is settled. Those of one
// that lasts are spent like any others, because what is reserved ages in no window and drains from no bucket. What it
// has not used is given back by the receipt with which they were charged.
type batch struct {
	units   int64
	spent   bool // also if the lease has ended
	receipt weir.Receipt
}

// reserve reserves units that are held.
func (e *entry) reserve(units int64) *batch {
	if e.young == nil {
		e.young = new(batch)
	}
	e.reserved += units
	e.young.units += units
	return e.young
}

// ageHolds spends the units of holds that are old, and returns these if it is known with which receipt they will be charged. Holds are old
// after one to two times as long as units are leased ahead, or as there was no message.
func (e *entry) ageHolds(now time.Duration) (spent *batch) {
	if e.reserved == 0 || e.flight || e.unsure || now-e.aged < e.ahead {
		return nil
	}
	if spent = e.old; spent != nil {
		e.spend(spent.units)
		e.reserved -= spent.units
		spent.spent = true
	}
	e.old, e.young, e.aged = e.young, nil, now
	return spent
}

// endHolds takes what holds have from the lease, because it has ended.
func (e *entry) endHolds() {
	for _, b := range []*batch{e.young, e.old} {
		if b != nil {
			b.spent = true
		}
	}
	e.reserved, e.young, e.old = 0, nil, nil
}

// maxWaiting bounds the holds whose settlement the store has to complete, and has not. Of others, what was used beyond the
// reservation is lost.
const maxWaiting = 10_000

// Reserve implements weir.HoldStore. It reserves units that are leased here if the hold is settled in this process.
func (s *Store) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	decisions, _, err := s.reserve(ctx, dst, r, ops, func() ([]weir.Decision, []error, error) {
		decisions, err := s.holds.Reserve(ctx, dst, r, ops...)
		return decisions, nil, err
	})
	return decisions, err
}

// ReservePartial implements weir.PartialStore.
func (s *Store) ReservePartial(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, []error, error) {
	if s.partial == nil {
		decisions, err := s.Reserve(ctx, dst, r, ops...)
		return decisions, nil, err
	}
	return s.reserve(ctx, dst, r, ops, func() ([]weir.Decision, []error, error) {
		return s.partial.ReservePartial(ctx, dst, r, ops...)
	})
}

func (s *Store) reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops []weir.Op, call func() ([]weir.Decision, []error, error)) ([]weir.Decision, []error, error) {
	if s.holds == nil {
		return dst, nil, errNoHolds
	}
	if !r.InProcess || slices.ContainsFunc(ops, func(op weir.Op) bool { return op.Limit == nil || s.termOf(op.Limit) == 0 }) {
		return call()
	}
	if err := cmp.Or(ctx.Err(), weir.ValidateReserve(&r, ops)); err != nil {
		return dst, nil, err
	}
	h := &hold{reservation: r, final: make([]bool, len(ops))}
	charged := slices.Clone(ops)
	for i := range charged {
		h.final[i], charged[i].Final = ops[i].Final, false
	}
	decisions, decided := s.decideMany(unread, dst, charged, h)
	if !decided {
		first := len(dst)
		all, failed, err := s.askApart(dst, charged, true, call)
		if err == nil && failed == nil && !weir.Allowed(all[first:]) && s.giveUp(ctx, charged, all[first:]) {
			return s.askApart(all[:first], charged, true, call)
		}
		return all, failed, err
	}
	if len(h.parts) > 0 { // it is allowed
		h.reservation, h.final = weir.Reservation{}, nil // whose tags the caller may use again
		sh := s.shardOfHold(r.ID)
		sh.mu.Lock()
		sh.holds[r.ID] = h
		sh.mu.Unlock()
	}
	return decisions, nil, nil
}

// giveUp gives what is held to the store, which has denied ops, if they may fit with that. It reports whether it did.
func (s *Store) giveUp(ctx context.Context, ops []weir.Op, denied []weir.Decision) bool {
	if s.isApart(ops) {
		return false
	}
	now := s.now()
	var all []asked
	var messages []weir.LeaseOp
	for i := range ops {
		hash := maphash.String(s.seed, ops[i].Key)
		sh := s.shardOf(hash)
		sh.mu.Lock()
		e, held := sh.findLocked(hash, &ops[i]), int64(0)
		if e != nil && !e.flight {
			held = e.held(now)
		}
		if held > 0 && !denied[i].Allowed && ops[i].Cost <= denied[i].Remaining+held {
			a := asked{e: e}
			m := s.messageLocked(&a, held-min(held, ops[i].Cost), 0, now)
			a.want, m.Want = 0, 0
			all, messages = append(all, a), append(messages, m)
		}
		sh.mu.Unlock()
	}
	if messages == nil {
		return false
	}
	_, err := s.call(ctx, all, messages, now)
	return err == nil
}

func (s *Store) shardOfHold(id weir.HoldID) *shard { return &s.shards[int(id[0])%shardCount] }

// Settle implements weir.HoldStore.
func (s *Store) Settle(ctx context.Context, settlement weir.Settlement) (weir.Settled, error) {
	if s.holds == nil {
		return weir.Settled{}, errNoHolds
	}
	if err := cmp.Or(ctx.Err(), settlement.Validate()); err != nil {
		return weir.Settled{}, err
	}
	sh := s.shardOfHold(settlement.ID)
	sh.mu.Lock()
	h := sh.holds[settlement.ID]
	if h != nil && settlement.Used != nil {
		delete(sh.holds, settlement.ID)
	}
	sh.mu.Unlock()
	switch {
	case h == nil:
		return s.holds.Settle(ctx, settlement)
	case settlement.Used == nil:
		return h.open(s.now(), settlement.TTL), nil
	}
	if h.settled == nil {
		if back := s.settle(h, &settlement); len(back) > 0 {
			_ = s.store.Refund(ctx, back...) // not again, because it may have arrived
		}
	}
	err := s.chargeRest(ctx, settlement.ID, h)
	if h.waits {
		s.waiting.Add(-1)
	}
	if h.waits = err != nil; h.waits && s.waiting.Add(1) > maxWaiting {
		s.waiting.Add(-1)
		h.waits = false
	}
	if h.waits { // for the next attempt
		sh.mu.Lock()
		sh.holds[settlement.ID] = h
		sh.mu.Unlock()
	}
	if err != nil {
		return weir.Settled{}, err
	}
	return weir.Settled{State: weir.HoldSettled, Parts: h.settled}, nil
}

// open describes a hold that is not settled yet.
func (h *hold) open(now instant, ttl time.Duration) weir.Settled {
	open := weir.Settled{State: weir.HoldOpen, Expires: weir.MicrosOf(time.Unix(0, now.wall).Add(ttl))}
	for i := range h.parts {
		open.Parts = append(open.Parts, weir.SettledPart{Tag: h.parts[i].tag, Cost: h.parts[i].cost})
	}
	return open
}

// settle spends what was used, and lets go of the rest. What is more than was reserved is spent, too, if so much is held here;
// otherwise the store is to charge it. If what was reserved is spent already, it returns what the store is to give back.
func (s *Store) settle(h *hold, settlement *weir.Settlement) (back []weir.Op) {
	now := s.now()
	for i := range h.parts {
		p := &h.parts[i]
		used := settlement.Units(p.tag, p.cost)
		more := max(0, used-p.cost)
		e, sh := p.e, s.shardOf(p.e.hash)
		sh.mu.Lock()
		switch {
		case !p.of.spent:
			p.of.units -= p.cost
			e.reserved -= p.cost
			if more <= e.held(now) {
				more = 0
			}
			e.spend(used - more)
		case used < p.cost && p.of.receipt != 0:
			back = append(back, weir.Op{Key: e.key, Limit: e.limit, Cost: p.cost - used, Receipt: p.of.receipt})
		}
		if more > 0 {
			h.rest, h.of = append(h.rest, weir.Op{Key: e.key, Limit: e.limit, Cost: more}), append(h.of, i)
		}
		sh.mu.Unlock()
		h.settled = append(h.settled, weir.SettledPart{Tag: p.tag, Cost: p.cost, Used: used})
	}
	return back
}

// chargeRest has the store charge what the lease does not cover: once, however often this is repeated.
func (s *Store) chargeRest(ctx context.Context, id weir.HoldID, h *hold) error {
	if len(h.rest) == 0 {
		return nil
	}
	id[0] ^= 0xff // a hold of its own, so that who settles this one again is not told of the rest
	charged, err := s.holds.Settle(ctx, weir.Settlement{
		ID: id, Ops: h.rest, Used: func(_ string, cost int64) int64 { return cost },
	})
	if err != nil {
		return err
	}
	for i, part := range charged.Parts {
		if i < len(h.of) {
			h.settled[h.of[i]].Excess = part.Excess
		}
	}
	return nil
}
