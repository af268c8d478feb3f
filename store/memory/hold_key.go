package memory

import (
	"math"

	"github.com/weirhq/weir"
)

// heldPart is a hold's charge on one key. While the hold is open, the lock of the key's
// shard guards it.
type heldPart struct {
	weir.Held // its Level is as reserved; level has what it is now
	hold      *hold
	limit     *weir.Compiled
	tag       string
	id        id
	among     *keyHolds // the open holds of the key; nil as long as there was no other
	place     int       // in their order by expiry
	number    int32     // in their order of reservation
	client    uint16    // whose share of the key's holds it counts for; 0 for nobody's
	listed    bool      // it has something to give back, unless the key was reset
	lapsed    bool      // its time has come
}

// releases reports whether the units come back if the hold expires.
func (p *heldPart) releases() bool { return p.limit.ReturnsExpired() }

// isListed reports whether the part has something to give back.
func (p *heldPart) isListed() bool { return p.listed && (p.among == nil || !p.among.reset) }

// heldLocked returns an open hold of a key, which leads to the others; nil if there is
// none.
func (sh *shard) heldLocked(k id) (slot int, p *heldPart) {
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
func (sh *shard) holdLocked(p *heldPart, k id, slot int, found bool, held weir.Held) {
	if p.id, p.Held, p.listed = k, held, found; !found {
		return
	}
	if sh.table.held == nil {
		sh.table.held = make([]*heldPart, len(sh.table.entries))
	}
	if other := sh.table.held[slot]; other == nil {
		sh.table.held[slot], p.client = p, 0
	} else {
		if other.among == nil {
			spareKeyHolds.Get().(*keyHolds).add(other)
		}
		other.among.add(p)
	}
	if p.releases() {
		sh.releases = min(sh.releases, p.hold.expires)
	}
}

// letGoLocked is the end of what holdLocked noted, unless the key was reset. It returns
// another open hold of the key.
func (sh *shard) letGoLocked(slot int, p *heldPart) (other *heldPart) {
	if !p.isListed() {
		return nil
	}
	if p.listed = false; p.among != nil {
		other = p.among.remove(p)
	}
	sh.table.held[slot] = other
	sh.resetsAtLocked(sh.table.entries[slot].state.Fresh)
	return other
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
	slot, p := sh.heldLocked(k)
	if p != nil && p.nextRelease() <= now {
		c.endManyLocked(sh, slot, now)
		_, p = sh.heldLocked(k) // which may have gone
	}
	for p != nil && p.nextRelease() <= now {
		p = c.endFirstLocked(sh, slot)
	}
}

// endFirstLocked ends the hold of a key that expires first. It returns another one; if there is
// none, the key may have gone.
func (c *core) endFirstLocked(sh *shard, slot int) (other *heldPart) {
	p := sh.table.held[slot].soonest()
	other = sh.letGoLocked(slot, p)
	if p.lapsed = true; p.releases() {
		c.giveBackLocked(sh, slot, p, p.Cost)
	}
	return other
}

// nextReleaseLocked finds when the next hold of the shard gives its units back.
func (sh *shard) nextReleaseLocked() {
	if sh.releases == math.MaxInt64 {
		return
	}
	sh.releases = math.MaxInt64
	for _, p := range sh.table.held {
		if p != nil {
			sh.releases = min(sh.releases, p.nextRelease())
		}
	}
}

// giveBackLocked gives back units of a part that was let go.
func (c *core) giveBackLocked(sh *shard, slot int, p *heldPart, units int64) {
	e, other, back := &sh.table.entries[slot], sh.table.held[slot], int64(0)
	e.state, back = p.limit.Release(e.state, sh.tail(slot), p.Held, units)
	if back > 0 && other != nil {
		other.among.moveUp(p.number, back)
	}
	c.releasedLocked(sh, slot)
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

// roomLocked is whether a key can have the hold of one more part. What would give units back by now has done so
// already.
func (c *core) roomLocked(more *heldPart, sh *shard, k id, now weir.Micros) room {
	most := c.holdsOfKeyLocked(c.holdShard(&more.hold.id))
	slot, p := sh.heldLocked(k)
	for ; p != nil; p = c.endFirstLocked(sh, slot) {
		is := hasRoom
		if share, counts := weir.HoldShare(p.count(), most); share <= 0 {
			is = isFull
		} else if !counts {
			more.client = 0
		} else if p.ofClient(more.client) >= share {
			is = isAtShare
		}
		if is == hasRoom || p.soonest().hold.expires > now {
			return is
		}
	}
	return hasRoom
}

// denyLocked says when a key can have one more hold.
func (sh *shard) denyLocked(d *weir.Decision, is room, k id, now weir.Micros) {
	_, p := sh.heldLocked(k)
	d.Allowed, d.RetryAfter, d.Delay, d.AtShare = false, p.soonest().hold.expires.Sub(now), 0, is == isAtShare
}

// denyAnyFullLocked denies what would be one hold too many for a key, and so all.
func (c *core) denyAnyFullLocked(h *hold, decisions []weir.Decision, now weir.Micros, parts []part, charges []weir.Pending) bool {
	var rooms [weir.MaxOps]room
	any, next := false, 0
	for i, p := range parts {
		if charges[i].Op.IsHeld() {
			rooms[i] = c.roomLocked(&h.parts[next], p.shard, p.id, now)
			next++
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
func (h *hold) keepLocked(parts []part, charges []weir.Pending) {
	next := 0
	for i := range charges {
		if !charges[i].Op.IsHeld() {
			continue
		}
		slot, found := parts[i].shard.table.find(parts[i].id)
		parts[i].shard.holdLocked(&h.parts[next], parts[i].id, slot, found, charges[i].Op.Held(charges[i].Next))
		next++
	}
}

// resetLocked lets holds of a key have nothing to give back.
func (sh *shard) resetLocked(slot int) {
	if !sh.isHeldLocked(slot) {
		return
	}
	if p := sh.table.held[slot]; p.among != nil {
		*p.among = keyHolds{reset: true}
	} else {
		p.listed = false
	}
	sh.table.held[slot] = nil
}
