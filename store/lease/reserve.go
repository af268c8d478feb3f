package lease

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/weirhq/weir"
)

// hold is a hold on leased units. It is in no store, so it lasts until it is settled here.
type hold struct {
	parts []part

	// Of the reservation, while it is decided.
	final []bool // by op: it is spent
	tags  []string

	// Of a settlement that the store has to complete: what it answers, and what is charged for it.
	settled []weir.SettledPart
	rest    []weir.Op
	of      []int // the part of each op
	waits   bool
}

// maxWaiting bounds the holds whose settlement the store has to complete, and has not. Of others, what was used beyond the
// reservation is lost.
const maxWaiting = 10_000

// part is what a hold has of a lease.
type part struct {
	e     *entry
	epoch uint32
	cost  int64
	tag   string
}

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
	if err := weir.ValidateReserve(&r, ops); err != nil {
		return dst, nil, err
	}
	h := &hold{final: make([]bool, len(ops)), tags: r.Tags}
	charged := slices.Clone(ops)
	for i := range charged {
		h.final[i], charged[i].Final = ops[i].Final, false
	}
	decisions, decided := s.decideMany(unread, dst, charged, h)
	if !decided {
		s.giveUp(ctx, charged)
		return s.askApart(dst, charged, call)
	}
	if len(h.parts) > 0 { // it is allowed
		h.final, h.tags = nil, nil // which the caller may use again
		sh := s.shardOfHold(r.ID)
		sh.mu.Lock()
		sh.holds[r.ID] = h
		sh.mu.Unlock()
	}
	return decisions, nil, nil
}

// giveUp gives to the store what is held for ops that it is to take, and is too little here, so that it counts for them.
func (s *Store) giveUp(ctx context.Context, ops []weir.Op) {
	if s.isApart(ops) {
		return
	}
	now := s.now()
	var all []asked
	var messages []weir.LeaseOp
	for i := range ops {
		hash := maphash.String(s.seed, ops[i].Key)
		sh := s.shardOf(hash)
		sh.mu.Lock()
		if e := sh.findLocked(hash, &ops[i]); e != nil && !e.flight && e.held(now) > 0 {
			a := asked{e: e}
			held := e.held(now)
			m := s.messageLocked(&a, held-min(held, ops[i].Cost), 0, now)
			a.want, m.Want = 0, 0
			all, messages = append(all, a), append(messages, m)
		}
		sh.mu.Unlock()
	}
	if messages != nil {
		_, _ = s.call(ctx, all, messages, now) // if it fails, so will what is asked for next
	}
}

func (h *hold) tag(op int) string {
	if h.tags == nil {
		return ""
	}
	return h.tags[op]
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
		s.settle(h, &settlement)
	}
	err := s.chargeRest(ctx, settlement.ID, h)
	if h.waits {
		s.waiting.Add(-1)
	}
	if h.waits = err != nil && s.waiting.Add(1) <= maxWaiting; h.waits { // for the next attempt
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

// settle spends what was used, and lets go of the rest. What is more than was reserved is spent, too, if so much is held here.
// Otherwise, or if the lease has ended and the store has charged what was reserved, the store is to charge it.
func (s *Store) settle(h *hold, settlement *weir.Settlement) {
	now := s.now()
	for i := range h.parts {
		p := &h.parts[i]
		used := settlement.Units(p.tag, p.cost)
		more := max(0, used-p.cost)
		e, sh := p.e, s.shardOf(p.e.hash)
		sh.mu.Lock()
		if e.epoch == p.epoch {
			e.reserved -= p.cost
			if more <= e.held(now) {
				more = 0
			}
			e.spend(used - more)
		}
		if more > 0 {
			h.rest, h.of = append(h.rest, weir.Op{Key: e.key, Limit: e.limit, Cost: more}), append(h.of, i)
		}
		sh.mu.Unlock()
		h.settled = append(h.settled, weir.SettledPart{Tag: p.tag, Cost: p.cost, Used: used})
	}
}

// chargeRest has the store charge what the lease does not cover: once, however often this is repeated.
func (s *Store) chargeRest(ctx context.Context, id weir.HoldID, h *hold) error {
	if len(h.rest) == 0 {
		return nil
	}
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
