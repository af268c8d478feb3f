package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir"
)

// Settle implements weir.HoldStore.
func (s *Store) Settle(ctx context.Context, settlement weir.Settlement) (answer weir.Settled, err error) {
	if err := cmp.Or(ctx.Err(), settlement.Validate()); err != nil {
		return answer, err
	}
	var late *weir.Settlement
	if settlement.Ops != nil && settlement.Used != nil {
		late = &settlement
	}
	err = s.end(&answer, settlement.ID, settlement.Used, settlement.TTL, settlement.Renew, late)
	return answer, err
}

// SettleOne settles a hold with the same number of units for each part. If it is this call
// that ends the hold, the parts of its answer are in dst, as far as that has room.
func (s *Store) SettleOne(ctx context.Context, dst []weir.SettledPart, id weir.HoldID, used int64) (answer weir.Settled, err error) {
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	answer.Parts = dst
	err = s.end(&answer, id, func(string, int64) int64 { return used }, 0, false, nil)
	return answer, err
}

// end settles a hold, or extends it if used is nil. If there is none, it settles what comes
// late. The parameters are apart so that used does not escape. The answer has room for parts,
// or none; it has a place because copies of it would be felt.
func (s *Store) end(answer *weir.Settled, id weir.HoldID, used func(string, int64) int64, ttl time.Duration, renew bool, late *weir.Settlement) error {
	dst := answer.Parts
	answer.Parts = nil
	c, now := s.core.Load(), s.now()
	sh := c.holdShard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	at, h, done := c.lookLocked(sh, id, now)
	isLate := h == nil && done == nil && late != nil
	if isLate {
		var err error
		if at, h, err = c.lateLocked(sh, now, late); err != nil {
			return err
		}
	}
	var until weir.Micros
	if h != nil && !isLate {
		until = h.expires
	}
	switch {
	case done != nil:
		*answer = done.answer()
		return nil
	case h == nil:
		return nil
	case used == nil && c.extendLocked(h, &weir.Settlement{TTL: ttl, Renew: renew}, now):
		answer.State, answer.Expires, answer.Until, answer.Parts = weir.HoldOpen, h.expires, until, h.answer(nil)
	case used != nil && s.settleLocked(c, h, used, now, isLate):
		answer.State, answer.Until, answer.Parts = weir.HoldSettled, until, h.answer(dst)
		c.endLocked(sh, at, h, weir.HoldSettled, now)
	default: // it expired for somebody whose clock was ahead, and so for all
		answer.State = weir.HoldExpired
		c.expireLocked(sh, at, h, now)
	}
	return nil
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
		return 0, nil, err
	}
	h.expires = now
	for i := range settlement.Ops {
		op := &settlement.Ops[i]
		p := h.add(settlement.Tag(i), op.Limit)
		p.id, _ = c.identify(op)
		p.Cost = op.Cost
	}
	sh.addLocked(h)
	at, _ := sh.findLocked(h.id)
	return at, h, nil
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

// hasLapsedLocked reports whether the hold expired for somebody whose clock was ahead.
func (h *hold) hasLapsedLocked() bool {
	for i := range h.parts {
		if h.parts[i].lapsed {
			return true
		}
	}
	return false
}

// extendLocked changes when a hold expires, and renews its places if that is wanted. It returns
// false if the hold has lapsed.
func (c *core) extendLocked(h *hold, s *weir.Settlement, now weir.Micros) bool {
	var buf [8]int
	order := h.lockOrder(c, buf[:0])
	c.lock(order)
	defer c.unlock(order)
	if h.hasLapsedLocked() {
		return false
	}
	for i := range h.parts {
		p := &h.parts[i]
		if s.Limit(p.limit); p.listed && s.Renews(p.limit) {
			c.shardOf(p.id).renewLocked(p, now)
		}
	}
	h.expires = now.Add(s.TTL)
	for i := range h.parts {
		if p := &h.parts[i]; p.listed && p.releases() { // it may be sooner than before
			at := c.shardOf(p.id)
			at.releaseByLocked(at.heldLocked(p.id), h.expires)
		}
	}
	return true
}

// renewLocked gives back the place of a hold and takes another one. The key is there, because
// the hold is on its list.
func (sh *shard) renewLocked(p *heldPart, now weir.Micros) {
	slot, _ := sh.table.find(p.id)
	e := &sh.table.entries[slot]
	e.state = p.limit.Refund(e.state, sh.tail(slot), p.Receipt, p.Cost)
	charge := weir.Pending{Op: &weir.Op{Limit: p.limit, Cost: p.Cost, Always: true}, Prev: e.state, Tail: sh.tail(slot)}
	var d weir.Decision
	charge.Decide(&d, now)
	sh.keepLocked(p.id, slot, true, &charge, d.Allowed)
	p.Receipt = d.Receipt
}

// settleLocked makes the cost of each part what was used. All parts are settled at the same
// time for everyone to see. If the hold comes late, nothing was charged before. It returns
// false if the hold has lapsed.
func (s *Store) settleLocked(c *core, h *hold, used func(string, int64) int64, now weir.Micros, late bool) bool {
	for i := range h.parts {
		p := &h.parts[i]
		p.used = (&weir.Settlement{Used: used}).Units(p.tag, p.Cost)
	}
	var buf [8]int
	order, room := h.lockOrder(c, buf[:0]), int64(0)
	for {
		c.lock(order)
		if h.hasLapsedLocked() {
			c.unlock(order)
			c.keys.Add(-room)
			return false
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
		slot, found := at.table.find(p.id)
		at.letGoLocked(slot, p)
		switch {
		case p.used > charged:
			op := weir.Op{Limit: p.limit, Cost: p.used - charged, Always: true}
			p.excess = at.chargeLocked(p.id, slot, found, &op, now, &room)
		case p.used < charged && holds:
			c.releaseLocked(at, slot, p, charged-p.used)
		}
	}
	c.unlock(order)
	if room > 0 { // more than was needed
		c.keys.Add(-room)
	}
	return true
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
func (sh *shard) chargeLocked(k id, slot int, found bool, op *weir.Op, now weir.Micros, room *int64) int64 {
	charge := weir.Pending{Op: op}
	if found {
		charge.Prev, charge.Tail = sh.table.entries[slot].state, sh.tail(slot)
	}
	var d weir.Decision
	charge.Decide(&d, now)
	if _, made := sh.keepLocked(k, slot, found, &charge, d.Allowed); made {
		*room--
	}
	return d.Excess
}
