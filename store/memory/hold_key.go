package memory

import (
	"math"

	"github.com/weirhq/weir"
)

// terms are what holds of a key have in common: what they were charged under.
type terms struct {
	limit *weir.Compiled
	tag   string
	among *keyHolds
}

// key is the key of a part.
func (h *hold) key() id { return h.under.among.id }

// releases reports whether the units come back if the hold expires.
func (h *hold) releases() bool { return h.under.limit.ReturnsExpired() }

// isListed reports whether the part has something to give back.
func (h *hold) isListed() bool { return h.part == isListed && !h.under.among.gone }

// heldLocked returns the open holds of a key; nil if there are none.
func (sh *shard) heldLocked(k id) (slot int, held *keyHolds) {
	if sh.table.held == nil {
		return 0, nil
	}
	slot, found := sh.table.find(k)
	if !found {
		return 0, nil
	}
	return slot, sh.table.held[slot]
}

// holdLocked notes that a key has a hold, which has nothing to give back if the key has
// gone.
func (sh *shard) holdLocked(h *hold, under terms, k id, slot int, found bool, held weir.Held, client uint16) {
	if !found {
		h.cost = held.Cost
		h.underGone(under, k)
		return
	}
	if sh.table.held == nil {
		sh.table.held = make([]*keyHolds, len(sh.table.entries))
	}
	among := sh.table.held[slot]
	if among == nil {
		among = spareKeyHolds.Get().(*keyHolds)
		among.id, sh.table.held[slot] = k, among
	}
	h.under = among.termsOf(under)
	h.cost, h.time, h.client, h.part = held.Cost, weir.Micros(held.Receipt), client, isListed
	if h.leaksEvenly() {
		h.time = held.At
	}
	if among.add(h, held.Level); h.releases() {
		sh.releases = min(sh.releases, h.expires)
	}
}

// underGone lets a hold have nothing to give back.
func (h *hold) underGone(under terms, k id) {
	h.under = (&keyHolds{id: k, gone: true}).termsOf(under)
}

// letGoLocked is the end of what holdLocked noted. It gives units back to the key, which may then go.
func (c *core) letGoLocked(sh *shard, slot int, h *hold, units int64) {
	k, e := h.under.among, &sh.table.entries[slot]
	if units > 0 {
		held, back := k.held(h), int64(0)
		e.state, back = h.under.limit.Release(e.state, sh.tail(slot), held, units)
		k.moveUp(h, back)
	}
	if k.remove(h) {
		sh.table.held[slot] = nil
	}
	if units > 0 {
		c.releasedLocked(sh, slot)
	} else {
		sh.resetsAtLocked(e.state.Fresh)
	}
}

// lapseLocked is letGoLocked for a part whose time has come.
func (c *core) lapseLocked(sh *shard, slot int, h *hold, units int64) {
	h.under.among.lapsed = true
	c.letGoLocked(sh, slot, h, units)
	h.part = hasLapsed
}

// isHeldLocked reports whether a key has an open hold, and so has to stay.
func (sh *shard) isHeldLocked(slot int) bool {
	return sh.table.held != nil && sh.table.held[slot] != nil
}

// releaseDueLocked gives back to a key what its holds have that have expired.
func (c *core) releaseDueLocked(sh *shard, k id, now weir.Micros) {
	if now < sh.releases {
		return
	}
	slot, held := sh.heldLocked(k)
	if held == nil || held.nextRelease() > now {
		return
	}
	for c.endManyLocked(sh, slot, held, now); held.nextRelease() <= now; {
		c.endFirstLocked(sh, slot, held)
	}
}

// endFirstLocked ends the hold of a key that expires first. If it was the only one, the key may have gone.
func (c *core) endFirstLocked(sh *shard, slot int, k *keyHolds) {
	h, units := k.due[0].hold, int64(0)
	if h.releases() {
		units = h.cost
	}
	c.lapseLocked(sh, slot, h, units)
}

// nextReleaseLocked finds when the next hold of the shard gives its units back.
func (sh *shard) nextReleaseLocked() {
	if sh.releases == math.MaxInt64 {
		return
	}
	sh.releases = math.MaxInt64
	for _, k := range sh.table.held {
		if k != nil {
			sh.releases = min(sh.releases, k.nextRelease())
		}
	}
}

// releasedLocked is for a key of which something was given back.
func (c *core) releasedLocked(sh *shard, slot int) {
	s := sh.table.entries[slot].state
	if s == (weir.State{}) && !sh.isHeldLocked(slot) {
		sh.removeLocked(slot)
		c.keys.Add(-1)
		return
	}
	sh.resetsAtLocked(s.Fresh)
}

// room is whether a key can have one more hold.
type room uint8

const (
	hasRoom   room = iota
	isFull         // it has as many as it may have
	isAtShare      // the client has
)

// roomLocked is whether a key can have one more hold, and for whose share of them it would count. What would give
// units back by now has done so already.
func (c *core) roomLocked(o *opening, sh *shard, k id, now weir.Micros) (is room, client uint16) {
	most := c.holdsOfKeyLocked(o.shard)
	slot, held := sh.heldLocked(k)
	if held == nil {
		return hasRoom, 0
	}
	for ; len(held.due) > 0; c.endFirstLocked(sh, slot, held) {
		is, client = hasRoom, o.reservation.ClientNumber()
		if share, counts := weir.HoldShare(len(held.due), most); share <= 0 {
			is = isFull
		} else if !counts {
			client = 0
		} else if held.clients[client] >= share {
			is = isAtShare
		}
		if is == hasRoom || held.due[0].at > now {
			return is, client
		}
	}
	return hasRoom, 0
}

// denyLocked says when a key can have one more hold.
func (sh *shard) denyLocked(d *weir.Decision, is room, k id, now weir.Micros) {
	_, held := sh.heldLocked(k)
	d.Allowed, d.RetryAfter, d.Delay, d.AtShare = false, held.due[0].at.Sub(now), 0, is == isAtShare
}

// denyAnyFullLocked denies what would be one hold too many for a key, and so all.
func (c *core) denyAnyFullLocked(o *opening, decisions []weir.Decision, now weir.Micros, parts []part, charges []weir.Pending) bool {
	var rooms [weir.MaxOps]room
	any := false
	for i := range parts {
		if p := &parts[i]; charges[i].Op.IsHeld() {
			rooms[i], p.client = c.roomLocked(o, p.shard, p.id, now)
		}
		any = any || rooms[i] != hasRoom
	}
	if !any {
		return false
	}
	weir.PeekAll(decisions[:0], now, charges)
	for i, p := range parts {
		if rooms[i] != hasRoom {
			p.shard.denyLocked(&decisions[i], rooms[i], p.id, now)
		}
	}
	return true
}

// tellReservedLocked says of what was denied whether it is only reserved.
func tellReservedLocked(decisions []weir.Decision, parts []part, charges []weir.Pending, now weir.Micros) {
	if weir.Allowed(decisions) {
		return
	}
	weir.TellAllReserved(decisions, charges, now, func(op int) weir.OpenHolds {
		p := &parts[op]
		if !p.found || !p.shard.isHeldLocked(p.slot) {
			return nil
		}
		return p.shard.table.held[p.slot].open(now)
	})
}

// keepLocked takes hold of what was charged.
func (o *opening) keepLocked(parts []part, charges []weir.Pending) {
	for i := range charges {
		if p, op := &parts[i], charges[i].Op; op.IsHeld() {
			slot, found := p.shard.table.find(p.id)
			p.shard.holdLocked(o.add(), terms{limit: op.Limit, tag: o.reservation.Tag(i)}, p.id, slot, found, op.Held(charges[i].Next), p.client)
		}
	}
}

// resetLocked lets holds of a key have nothing to give back.
func (sh *shard) resetLocked(slot int) {
	if sh.isHeldLocked(slot) {
		k := sh.table.held[slot]
		k.gone, k.due, k.levels, k.clients, sh.table.held[slot] = true, nil, nil, nil, nil
	}
}
