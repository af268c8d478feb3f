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
		if !c.extendLocked(sh, h, &settlement, now) {
			answer.State = weir.HoldExpired
			c.expireLocked(sh, at, h, math.MaxInt)
			break
		}
		answer.State, answer.Expires, answer.Until, answer.Parts = weir.HoldOpen, h.expires, until, sh.open.answer(h, nil)
	}
	return answer, err
}

// finishLocked settles an open hold. If it comes late, nothing was charged on it before. The
// answer has room for parts, or none; it has a place because copies of it would be felt.
func (s *Store) finishLocked(c *core, sh *holdShard, at *holdSlot, h *hold, used func(string, int64) int64, now weir.Micros, late bool, answer *weir.Settled) {
	parts := sh.open.answer(h, answer.Parts)
	for i := range parts {
		p := &parts[i]
		p.Used = (&weir.Settlement{Used: used}).Units(p.Tag, p.Cost)
	}
	answer.Parts = nil
	if (len(parts) != 1 || !c.settleOneLocked(h, &parts[0], now)) && !s.settleAllLocked(c, sh, h, parts, now, late) { // it expired for somebody whose clock was ahead, and so for all
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
func (o *openHolds) answer(h *hold, dst []weir.SettledPart) []weir.SettledPart {
	dst = dst[:0]
	for _, p := range o.parts(h) {
		dst = append(dst, weir.SettledPart{Tag: p.under.tag, Cost: p.cost})
	}
	return dst
}

// lateLocked opens a hold on which nothing was charged yet.
func (c *core) lateLocked(sh *holdShard, now weir.Micros, settlement *weir.Settlement) (*holdSlot, *hold, error) {
	o := opening{shard: sh, reservation: &weir.Reservation{ID: settlement.ID, Tags: settlement.Tags}, expires: now}
	if err := c.openLocked(&o, now, len(settlement.Ops)); err != nil {
		return nil, nil, err
	}
	for i := range settlement.Ops {
		p, op := o.add(), &settlement.Ops[i]
		k, _ := c.identify(op)
		p.cost = op.Cost
		p.underGone(terms{limit: op.Limit, tag: settlement.Tag(i)}, k)
	}
	h := o.concludeLocked()
	return sh.findLocked(&h.id), h, nil
}

// lockOrderOf appends the numbers of the shards of the parts, as takeMany locks them.
func (c *core) lockOrderOf(sh *holdShard, h *hold, order []int) []int {
	for _, p := range sh.open.parts(h) {
		order = append(order, int(p.key().lo>>c.shift))
	}
	slices.Sort(order)
	return slices.Compact(order)
}

// hasLapsedLocked reports whether the hold expired for somebody whose clock was ahead.
func (sh *holdShard) hasLapsedLocked(h *hold) bool {
	for _, p := range sh.open.parts(h) {
		if p.part == hasLapsed {
			return true
		}
	}
	return false
}

// extendLocked changes when a hold expires, and renews its places if that is wanted. It returns
// false if the hold has lapsed.
func (c *core) extendLocked(sh *holdShard, h *hold, s *weir.Settlement, now weir.Micros) bool {
	var buf [8]int
	order := c.lockOrderOf(sh, h, buf[:0])
	c.lock(order)
	defer c.unlock(order)
	if sh.hasLapsedLocked(h) {
		return false
	}
	for _, p := range sh.open.parts(h) {
		limit := p.under.limit
		if s.Limit(limit); p.isListed() && s.Renews(limit) {
			c.shardOf(p.key()).renewLocked(p, now)
		}
	}
	for _, p := range sh.open.parts(h) {
		p.expires = now.Add(s.TTL)
		if p.isListed() {
			p.under.among.expireAt(p, p.expires)
			if at := c.shardOf(p.key()); p.releases() { // it may be sooner than before
				at.releases = min(at.releases, p.expires)
			}
		}
	}
	return true
}

// renewLocked gives back the place of a hold and takes another one. The key is there, because
// the hold is on its list.
func (sh *shard) renewLocked(p *hold, now weir.Micros) {
	slot, _ := sh.table.find(p.key())
	op := &weir.Op{Limit: p.under.limit, Cost: p.cost, Always: true, Receipt: weir.Receipt(p.time)}
	sh.giveBackFirstLocked(slot, op)
	d, _ := sh.chargeLocked(p.key(), slot, true, op, now)
	p.time = weir.Micros(d.Receipt)
}

// settleOneLocked settles the only part of a hold, the usual case. If its key is not sure to be
// there, it does nothing and returns false.
func (c *core) settleOneLocked(p *hold, done *weir.SettledPart, now weir.Micros) bool {
	k := p.key()
	at := c.shardOf(k)
	at.mu.Lock()
	listed := p.isListed()
	if listed {
		c.releaseDueLocked(at, k, now)
		slot, _ := at.table.find(k)
		c.settlePartLocked(at, k, slot, true, p, done, p.cost, now)
	}
	at.mu.Unlock()
	return listed
}

// settleAllLocked makes the cost of each part what was used. All parts are settled at the same
// time for everyone to see. If the hold comes late, nothing was charged before. It returns
// false if the hold has lapsed.
func (s *Store) settleAllLocked(c *core, sh *holdShard, h *hold, done []weir.SettledPart, now weir.Micros, late bool) bool {
	var buf [8]int
	order, room := c.lockOrderOf(sh, h, buf[:0]), int64(0)
	for {
		c.lock(order)
		if sh.hasLapsedLocked(h) {
			c.unlock(order)
			c.keys.Add(-room)
			return false
		}
		missing := c.missingLocked(sh, h, done, now, late)
		if missing <= room || c.reserve(missing-room, s.maxKeys) {
			room = max(room, missing)
			break
		}
		c.unlock(order)
		c.keys.Add(-room)
		c.makeRoom(now, missing, s.maxKeys)
		room = missing
	}
	for i, p := range sh.open.parts(h) {
		k, charged := p.key(), p.cost
		if late {
			charged = 0
		}
		at := c.shardOf(k)
		slot, found := at.table.find(k)
		if c.settlePartLocked(at, k, slot, found, p, &done[i], charged, now) {
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
func (c *core) settlePartLocked(at *shard, k id, slot int, found bool, p *hold, done *weir.SettledPart, charged int64, now weir.Micros) (made bool) {
	limit := p.under.limit
	if p.isListed() {
		c.letGoLocked(at, slot, p, max(0, charged-done.Used))
	}
	if done.Used > charged {
		d, isNew := at.chargeLocked(k, slot, found, &weir.Op{Limit: limit, Cost: done.Used - charged, Always: true}, now)
		done.Excess, made = d.Excess, isNew
	}
	return made
}

// missingLocked gives back what is due on the keys of a hold, and returns how many of the
// keys have to be made to charge what was used beyond the estimate.
func (c *core) missingLocked(sh *holdShard, h *hold, done []weir.SettledPart, now weir.Micros, late bool) (missing int64) {
	for i, p := range sh.open.parts(h) {
		k := p.key()
		at := c.shardOf(k)
		c.releaseDueLocked(at, k, now)
		if used := done[i].Used; used > p.cost || late && used > 0 {
			if _, found := at.table.find(k); !found {
				missing++
			}
		}
	}
	return missing
}

// chargeLocked charges an op, and reports whether it had to make the key.
func (sh *shard) chargeLocked(k id, slot int, found bool, op *weir.Op, now weir.Micros) (d weir.Decision, made bool) {
	charge := weir.Pending{Op: op}
	if found {
		sh.loadLocked(&charge, slot)
	}
	charge.Decide(&d, now)
	_, made = sh.keepLocked(k, slot, found, &charge, d.Allowed)
	return d, made
}
