package memory

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/weirhq/weir"
)

// heldPart is a hold's charge on one key. While the hold is open, the lock of the key's
// shard guards it.
type heldPart struct {
	weir.Held
	hold         *hold
	limit        *weir.Compiled
	tag          string
	id           id
	prev, next   *heldPart // of the same key
	used, excess int64     // when the hold ends
	listed       bool      // it has something to give back
	lapsed       bool      // its time has come

	// Of the first one of a key's list, for all of them: how many there are, and a time
	// not later than when the first of them gives its units back because it expires.
	count   int
	soonest weir.Micros
}

// releases reports whether the units come back if the hold expires.
func (p *heldPart) releases() bool { return p.limit.ReturnsExpired() }

// heldLocked returns the newest open hold of a key, and so the list of all of them; nil if
// there is none.
func (sh *shard) heldLocked(k id) *heldPart {
	if sh.table.held == nil {
		return nil
	}
	slot, found := sh.table.find(k)
	if !found {
		return nil
	}
	return sh.table.held[slot]
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
	p.count, p.soonest = 1, math.MaxInt64
	if next := sh.table.held[slot]; next != nil {
		p.next, next.prev = next, p
		p.count, p.soonest = next.count+1, next.soonest
	}
	sh.table.held[slot] = p
	if p.releases() {
		sh.releaseByLocked(p, p.hold.expires)
	}
}

// releaseByLocked notes when a hold gives its units back, on the first one of its key.
func (sh *shard) releaseByLocked(first *heldPart, at weir.Micros) {
	first.soonest = min(first.soonest, at)
	sh.releases = min(sh.releases, at)
}

// letGoLocked is the end of what holdLocked noted, unless the key was reset.
func (sh *shard) letGoLocked(slot int, p *heldPart) {
	if !p.listed {
		return
	}
	p.listed = false
	if p.next != nil {
		p.next.prev = p.prev
	}
	if p.prev != nil {
		p.prev.next = p.next
		sh.table.held[slot].count--
	} else {
		if p.next != nil {
			p.next.count, p.next.soonest = p.count-1, p.soonest
		}
		sh.table.held[slot] = p.next
	}
	p.prev, p.next = nil, nil
	sh.resetsAtLocked(sh.table.entries[slot].state.Fresh)
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
	if first := sh.heldLocked(k); first != nil && first.soonest <= now {
		c.endDueLocked(sh, k, now)
	}
}

// endDueLocked ends the holds of a key whose time has come, one after the other. A key has
// at most weir.MaxHolds of them.
func (c *core) endDueLocked(sh *shard, k id, now weir.Micros) {
	var due, open []*heldPart
	soonest := weir.Micros(math.MaxInt64)
	for p := sh.heldLocked(k); p != nil; p = p.next {
		switch {
		case p.hold.expires <= now:
			due = append(due, p)
		default:
			open = append(open, p)
			if p.releases() {
				soonest = min(soonest, p.hold.expires)
			}
		}
	}
	slices.SortFunc(due, func(a, b *heldPart) int {
		return cmp.Or(cmp.Compare(a.hold.expires, b.hold.expires), bytes.Compare(a.hold.id[:], b.hold.id[:]))
	})
	left := make([]*weir.Held, 0, len(due)+len(open))
	for _, p := range append(due, open...) {
		left = append(left, &p.Held)
	}
	slot, _ := sh.table.find(k) // which the key leaves only with its last hold
	for i, p := range due {
		sh.letGoLocked(slot, p)
		if p.lapsed = true; p.releases() {
			c.giveBackLocked(sh, slot, p, p.Cost, left[i+1:])
		}
	}
	if len(open) > 0 {
		open[0].soonest = soonest
	}
}

// nextReleaseLocked finds when the next hold of the shard gives its units back.
func (sh *shard) nextReleaseLocked() {
	if sh.releases == math.MaxInt64 {
		return
	}
	sh.releases = math.MaxInt64
	for _, first := range sh.table.held {
		if first != nil {
			sh.releases = min(sh.releases, first.soonest)
		}
	}
}

// releaseLocked gives back units of a part, which is on the key's list no more.
func (c *core) releaseLocked(sh *shard, slot int, p *heldPart, units int64) {
	if first := sh.table.held[slot]; first != nil && p.leaks() {
		var buf [64]*weir.Held
		c.giveBackLocked(sh, slot, p, units, first.all(buf[:0]))
		return
	}
	c.giveBackLocked(sh, slot, p, units, nil)
}

// all appends a list of open holds.
func (p *heldPart) all(dst []*weir.Held) []*weir.Held {
	for ; p != nil; p = p.next {
		dst = append(dst, &p.Held)
	}
	return dst
}

// leaks reports whether other holds of the key must be known to give something back.
func (p *heldPart) leaks() bool {
	a := p.limit.Algorithm()
	return a == weir.TokenBucket || a == weir.LeakyBucket
}

func (c *core) giveBackLocked(sh *shard, slot int, p *heldPart, units int64, open []*weir.Held) {
	e := &sh.table.entries[slot]
	if e.state = p.limit.Release(e.state, sh.tail(slot), p.Held, units, open); e.state == (weir.State{}) && !sh.isHeldLocked(slot) {
		sh.removeLocked(slot)
		c.keys.Add(-1)
		return
	}
	sh.resetsAtLocked(e.state.Fresh)
}

// isFullLocked reports whether one more hold would be too many for a key.
func (c *core) isFullLocked(h *hold, sh *shard, k id, now weir.Micros) bool {
	first := sh.heldLocked(k)
	if first == nil {
		return false
	}
	most := c.holdsOfKeyLocked(c.holdShard(&h.id))
	if first.count < most {
		return false
	}
	c.endDueLocked(sh, k, now) // what would give units back has done so already
	first = sh.heldLocked(k)
	return first != nil && first.count >= most
}

// denyFullLocked says when a key can have one more hold.
func (sh *shard) denyFullLocked(d *weir.Decision, k id, now weir.Micros) {
	first := weir.Micros(math.MaxInt64)
	for p := sh.heldLocked(k); p != nil; p = p.next {
		first = min(first, p.hold.expires)
	}
	d.Allowed, d.RetryAfter, d.Delay = false, first.Sub(now), 0
}

// denyAnyFullLocked denies what would be one hold too many for a key, and so all.
func (c *core) denyAnyFullLocked(h *hold, decisions []weir.Decision, now weir.Micros, parts []part, charges []weir.Pending) bool {
	var full [weir.MaxOps]bool
	any := false
	for i, p := range parts {
		full[i] = charges[i].Op.IsHeld() && c.isFullLocked(h, p.shard, p.id, now)
		any = any || full[i]
	}
	if !any {
		return false
	}
	weir.PeekAll(decisions[:0], now, charges)
	for i, p := range parts {
		if full[i] {
			p.shard.denyFullLocked(&decisions[i], p.id, now)
		}
	}
	return true
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
	for p := sh.table.held[slot]; p != nil; {
		next := p.next
		p.listed, p.prev, p.next = false, nil, nil
		p = next
	}
	sh.table.held[slot] = nil
}
