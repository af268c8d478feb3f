package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir"
)

// Settle implements weir.HoldStore.
func (s *Store) Settle(ctx context.Context, settlement weir.Settlement) (weir.Settled, error) {
	if err := cmp.Or(ctx.Err(), settlement.Validate()); err != nil {
		return weir.Settled{}, err
	}
	var late *weir.Settlement
	if settlement.Ops != nil && settlement.Used != nil {
		late = &settlement
	}
	return s.end(nil, settlement.ID, settlement.Used, settlement.TTL, late)
}

// SettleOne settles a hold with the same number of units for each part. If it is this call
// that ends the hold, the parts of its answer are in dst, as far as that has room.
func (s *Store) SettleOne(ctx context.Context, dst []weir.SettledPart, id weir.HoldID, used int64) (weir.Settled, error) {
	if err := ctx.Err(); err != nil {
		return weir.Settled{}, err
	}
	return s.end(dst, id, func(string, int64) int64 { return used }, 0, nil)
}

// end settles a hold, or extends it if used is nil. If there is none, it settles what comes
// late. The parameters are apart so that used does not escape.
func (s *Store) end(dst []weir.SettledPart, id weir.HoldID, used func(string, int64) int64, ttl time.Duration, late *weir.Settlement) (weir.Settled, error) {
	c, now := s.core.Load(), s.now()
	sh := c.holdShard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	at, h, done := c.lookLocked(sh, id, now)
	isLate := h == nil && done == nil && late != nil
	if isLate {
		var err error
		if at, h, err = c.lateLocked(sh, now, late); err != nil {
			return weir.Settled{}, err
		}
	}
	switch {
	case done != nil:
		return done.answer(), nil
	case h == nil:
		return weir.Settled{}, nil
	case used == nil:
		return c.extendLocked(sh, at, h, now, now.Add(ttl)), nil
	}
	for i := range h.parts {
		p := &h.parts[i]
		p.used = (&weir.Settlement{Used: used}).Units(p.tag, p.Cost)
	}
	return s.settleLocked(dst, c, sh, at, h, now, isLate), nil
}

// answer appends what a caller is told of the parts of a hold.
func (h *hold) answer(dst []weir.SettledPart) []weir.SettledPart {
	dst = slices.Grow(dst, len(h.parts))
	for i := range h.parts {
		p := &h.parts[i]
		dst = append(dst, weir.SettledPart{Tag: p.tag, Cost: p.Cost, Used: p.used, Excess: p.excess})
	}
	return dst
}

// lateLocked opens a hold on which nothing was charged yet.
func (c *core) lateLocked(sh *holdShard, now weir.Micros, settlement *weir.Settlement) (int, *hold, error) {
	h, err := c.openLocked(sh, settlement.ID, now, len(settlement.Ops))
	if err != nil {
		return -1, nil, err
	}
	h.expires = now
	for i := range settlement.Ops {
		op := &settlement.Ops[i]
		p := h.add(settlement.Tag(i), op.Limit)
		p.id, _ = c.identify(op)
		p.Cost = op.Cost
	}
	return sh.addLocked(h), h, nil
}

// lockOrder appends the numbers of the shards of the parts, as takeMany locks them.
func (h *hold) lockOrder(c *core, order []int) []int {
	for i := range h.parts {
		order = append(order, int(h.parts[i].id.lo>>c.shift))
	}
	if len(order) > 1 {
		slices.Sort(order)
		order = slices.Compact(order)
	}
	return order
}

// hasLapsedLocked reports whether the hold expired for somebody whose clock was ahead. It
// then has expired for all.
func (h *hold) hasLapsedLocked() bool {
	for i := range h.parts {
		if h.parts[i].lapsed {
			return true
		}
	}
	return false
}

// lapseLocked ends a hold that has lapsed.
func (c *core) lapseLocked(sh *holdShard, at int, h *hold, now weir.Micros) weir.Settled {
	c.expireLocked(sh, at, h, now)
	return weir.Settled{State: weir.HoldExpired}
}

func (c *core) extendLocked(sh *holdShard, place int, h *hold, now, expires weir.Micros) weir.Settled {
	var buf [8]int
	order := h.lockOrder(c, buf[:0])
	c.lock(order)
	lapsed := h.hasLapsedLocked()
	if !lapsed {
		h.expires = expires
		for i := range h.parts {
			if p := &h.parts[i]; p.listed && p.releases() { // it may be sooner than before
				at := c.shardOf(p.id)
				at.releaseByLocked(at.heldLocked(p.id), expires)
			}
		}
	}
	c.unlock(order)
	if lapsed {
		return c.lapseLocked(sh, place, h, now)
	}
	return weir.Settled{State: weir.HoldOpen, Expires: expires, Parts: h.answer(nil)}
}

// settleLocked makes the cost of each part what was used. All parts are settled at the same
// time for everyone to see. If the hold comes late, nothing was charged before.
func (s *Store) settleLocked(dst []weir.SettledPart, c *core, sh *holdShard, place int, h *hold, now weir.Micros, late bool) weir.Settled {
	var buf [8]int
	order, room := h.lockOrder(c, buf[:0]), int64(0)
	for {
		c.lock(order)
		if h.hasLapsedLocked() {
			c.unlock(order)
			c.keys.Add(-room)
			return c.lapseLocked(sh, place, h, now)
		}
		missing := c.missingLocked(h, now, late)
		if missing <= room || c.reserve(missing-room, s.maxKeys) {
			room = max(room, missing)
			break
		}
		c.unlock(order)
		c.keys.Add(-room)
		c.makeRoom(now, missing, s.maxKeys)
		room = missing
	}
	for i := range h.parts {
		p := &h.parts[i]
		at, charged := c.shardOf(p.id), p.Cost
		if late {
			charged = 0
		}
		holds := p.listed
		at.letGoLocked(p)
		switch {
		case p.used < charged && holds:
			c.releaseLocked(at, p, charged-p.used)
		case p.used > charged:
			op := weir.Op{Limit: p.limit, Cost: p.used - charged, Always: true}
			p.excess = at.chargeLocked(p.id, &op, now, &room)
		default:
			at.leaveLocked(p.id)
		}
	}
	c.unlock(order)
	if room > 0 { // more than was needed
		c.keys.Add(-room)
	}
	answer := weir.Settled{State: weir.HoldSettled, Parts: h.answer(dst)}
	c.endLocked(sh, place, h, weir.HoldSettled, now)
	return answer
}

// missingLocked gives back what is due on the keys of a hold, and returns how many of the
// keys have to be made to charge what was used beyond the estimate.
func (c *core) missingLocked(h *hold, now weir.Micros, late bool) (missing int64) {
	for i := range h.parts {
		p := &h.parts[i]
		at := c.shardOf(p.id)
		c.releaseDueLocked(at, p.id, now)
		if p.used > p.Cost || late && p.used > 0 {
			if _, found := at.table.find(p.id); !found {
				missing++
			}
		}
	}
	return missing
}

// chargeLocked charges an op, and returns what of it was too much. Room is for keys that
// have to be made.
func (sh *shard) chargeLocked(k id, op *weir.Op, now weir.Micros, room *int64) int64 {
	slot, found := sh.table.find(k)
	charge := weir.Pending{Op: op}
	if found {
		charge.Prev, charge.Tail = sh.table.entries[slot].state, sh.tail(slot)
	}
	var d weir.Decision
	charge.Decide(&d, now)
	if sh.keepLocked(k, slot, found, &charge, d.Allowed) {
		*room--
	}
	return d.Excess
}
