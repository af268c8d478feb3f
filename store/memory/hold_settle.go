package memory

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/weirhq/weir"
)

// Settle implements weir.HoldStore.
func (s *Store) Settle(ctx context.Context, settlement weir.Settlement) (answer weir.Settled, err error) {
	if err := cmp.Or(ctx.Err(), settlement.Validate()); err != nil {
		return answer, err
	}
	c, now := s.core.Load(), s.now()
	sh := c.holdShard(&settlement.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock() // even if Used panics
	at, h, done := c.lookLocked(sh, &settlement.ID, now)
	switch {
	case done != nil:
		answer = done.answer()
	case h == nil && (settlement.Ops == nil || settlement.Used == nil):
	case h == nil:
		if at, h, err = c.lateLocked(sh, now, &settlement); err == nil {
			s.finishLocked(c, sh, at, h, settlement.Used, now, true, &answer)
		}
	case settlement.Used != nil:
		s.finishLocked(c, sh, at, h, settlement.Used, now, false, &answer)
	default:
		until := h.expires
		if !c.extendLocked(h, &settlement, now) {
			answer.State = weir.HoldExpired
			c.expireLocked(sh, at, h, math.MaxInt)
			break
		}
		answer.State, answer.Expires, answer.Until, answer.Parts = weir.HoldOpen, h.expires, until, h.answer(nil)
	}
	return answer, err
}

// finishLocked settles an open hold. If it comes late, nothing was charged on it before. The
// answer has room for parts, or none; it has a place because copies of it would be felt.
func (s *Store) finishLocked(c *core, sh *holdShard, at *holdSlot, h *hold, used func(string, int64) int64, now weir.Micros, late bool, answer *weir.Settled) {
	parts := h.answer(answer.Parts)
	for i := range parts {
		p := &parts[i]
		p.Used = (&weir.Settlement{Used: used}).Units(p.Tag, p.Cost)
	}
	answer.Parts = nil
	if (len(parts) > 1 || !c.settleOneLocked(&h.parts[0], &parts[0], now)) && !s.settleAllLocked(c, h, parts, now, late) { // it expired for somebody whose clock was ahead, and so for all
		answer.State = weir.HoldExpired
		c.expireLocked(sh, at, h, math.MaxInt)
		return
	}
	if answer.State, answer.Parts = weir.HoldSettled, parts; !late {
		answer.Until = h.expires
	}
	c.endLocked(sh, at, h, weir.HoldSettled, now, parts)
}

// answer returns what a caller is told of the parts of a hold as long as nothing is used, in dst if
// that has room.
func (h *hold) answer(dst []weir.SettledPart) []weir.SettledPart {
	parts := h.parts
	if cap(dst) < len(parts) {
		dst = make([]weir.SettledPart, len(parts))
	}
	dst = dst[:len(parts)]
	for i := range dst {
		p, told := &parts[i], &dst[i]
		told.Tag, told.Cost, told.Used, told.Excess = p.tag, p.Cost, 0, 0
	}
	return dst
}

// lateLocked opens a hold on which nothing was charged yet.
func (c *core) lateLocked(sh *holdShard, now weir.Micros, settlement *weir.Settlement) (*holdSlot, *hold, error) {
	h, err := c.openLocked(sh, &settlement.ID, now, 0, len(settlement.Ops))
	if err != nil {
		return nil, nil, err
	}
	for i := range settlement.Ops {
		op := &settlement.Ops[i]
		p := h.add(settlement.Tag(i), op.Limit)
		p.id, _ = c.identify(op)
		p.Cost = op.Cost
	}
	sh.addLocked(h)
	return sh.findLocked(&h.id), h, nil
}

// lockOrder appends the numbers of the shards of the parts, as takeMany locks them.
func (h *hold) lockOrder(c *core, order []int) []int {
	for i := range h.parts {
		order = append(order, int(h.parts[i].id.lo>>c.shift))
	}
	slices.Sort(order)
	return slices.Compact(order)
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
		if s.Limit(p.limit); p.isListed() && s.Renews(p.limit) {
			c.shardOf(p.id).renewLocked(p, now)
		}
	}
	h.expires = now.Add(s.TTL)
	for i := range h.parts {
		if p := &h.parts[i]; p.isListed() {
			p.expireAt(h.expires)
			if at := c.shardOf(p.id); p.releases() { // it may be sooner than before
				at.releases = min(at.releases, h.expires)
			}
		}
	}
	return true
}

// renewLocked gives back the place of a hold and takes another one. The key is there, because
// the hold is on its list.
func (sh *shard) renewLocked(p *heldPart, now weir.Micros) {
	slot, _ := sh.table.find(p.id)
	op := &weir.Op{Limit: p.limit, Cost: p.Cost, Always: true, Receipt: p.Receipt}
	sh.giveBackFirstLocked(slot, op)
	charge := weir.Pending{Op: op}
	sh.loadLocked(&charge, slot)
	var d weir.Decision
	charge.Decide(&d, now)
	sh.keepLocked(p.id, slot, true, &charge, d.Allowed)
	p.Receipt = d.Receipt
}

// settleOneLocked settles the only part of a hold, the usual case. If its key is not sure to be
// there, it does nothing and returns false.
func (c *core) settleOneLocked(p *heldPart, done *weir.SettledPart, now weir.Micros) bool {
	at := c.shardOf(p.id)
	at.mu.Lock()
	listed := p.isListed()
	if listed {
		c.releaseDueLocked(at, p.id, now)
		slot, _ := at.table.find(p.id)
		c.settlePartLocked(at, slot, true, p, done, p.Cost, now)
	}
	at.mu.Unlock()
	return listed
}

// settleAllLocked makes the cost of each part what was used. All parts are settled at the same
// time for everyone to see. If the hold comes late, nothing was charged before. It returns
// false if the hold has lapsed.
func (s *Store) settleAllLocked(c *core, h *hold, done []weir.SettledPart, now weir.Micros, late bool) bool {
	var buf [8]int
	order, room := h.lockOrder(c, buf[:0]), int64(0)
	for {
		c.lock(order)
		if h.hasLapsedLocked() {
			c.unlock(order)
			c.keys.Add(-room)
			return false
		}
		missing := c.missingLocked(h, done, now, late)
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
		slot, found := at.table.find(p.id)
		if c.settlePartLocked(at, slot, found, p, &done[i], charged, now) {
			room--
		}
	}
	c.unlock(order)
	if room > 0 { // more than was needed
		c.keys.Add(-room)
	}
	return true
}

// settlePartLocked makes what is charged of a part what was used. It reports whether it had to
// make the key.
func (c *core) settlePartLocked(at *shard, slot int, found bool, p *heldPart, done *weir.SettledPart, charged int64, now weir.Micros) (made bool) {
	holds := p.isListed()
	at.letGoLocked(slot, p)
	switch {
	case done.Used > charged:
		op := weir.Op{Limit: p.limit, Cost: done.Used - charged, Always: true}
		done.Excess, made = at.chargeLocked(p.id, slot, found, &op, now)
	case done.Used < charged && holds:
		c.giveBackLocked(at, slot, p, charged-done.Used)
	}
	return made
}

// missingLocked gives back what is due on the keys of a hold, and returns how many of the
// keys have to be made to charge what was used beyond the estimate.
func (c *core) missingLocked(h *hold, done []weir.SettledPart, now weir.Micros, late bool) (missing int64) {
	for i := range h.parts {
		p := &h.parts[i]
		at := c.shardOf(p.id)
		c.releaseDueLocked(at, p.id, now)
		if used := done[i].Used; used > p.Cost || late && used > 0 {
			if _, found := at.table.find(p.id); !found {
				missing++
			}
		}
	}
	return missing
}

// chargeLocked charges an op, and returns what of it was too much, and whether it had to make
// the key.
func (sh *shard) chargeLocked(k id, slot int, found bool, op *weir.Op, now weir.Micros) (excess int64, made bool) {
	charge := weir.Pending{Op: op}
	if found {
		charge.Prev, charge.Tail = sh.table.entries[slot].state, sh.tail(slot)
	}
	var d weir.Decision
	charge.Decide(&d, now)
	_, made = sh.keepLocked(k, slot, found, &charge, d.Allowed)
	return d.Excess, made
}
