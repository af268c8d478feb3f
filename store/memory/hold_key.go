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
}

// releases reports whether the units come back if the hold expires.
func (p *heldPart) releases() bool { return p.limit.Limit().Release }

// heldKey is the list of a key's open holds. Release is not later than when the first of
// them gives its units back because it expires.
type heldKey struct {
	first    *heldPart
	n        int
	releases weir.Micros
}

// holdLocked notes that a key has a hold.
func (sh *shard) holdLocked(p *heldPart, k id, held weir.Held) {
	if sh.held == nil {
		sh.held = make(map[id]heldKey)
	}
	list, found := sh.held[k]
	if !found {
		list.releases = math.MaxInt64
	}
	p.id, p.Held, p.listed, p.next = k, held, true, list.first
	if list.first != nil {
		list.first.prev = p
	}
	list.first = p
	list.n++
	if p.releases() {
		list.releases = min(list.releases, p.hold.expires)
		sh.releases = min(sh.releases, list.releases)
	}
	sh.held[k] = list
}

// letGoLocked is its end.
func (sh *shard) letGoLocked(p *heldPart) {
	if !p.listed { // the key was reset
		return
	}
	p.listed = false
	if p.prev == nil && p.next == nil { // the only one, as usual
		delete(sh.held, p.id)
		return
	}
	list := sh.held[p.id]
	list.n--
	if p.prev == nil {
		list.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
	sh.held[p.id] = list
}

// leaveLocked lets the next sweep find a key that was let go without a change.
func (sh *shard) leaveLocked(k id) {
	if slot, found := sh.table.find(k); found {
		sh.earliest.Store(min(sh.earliest.Load(), int64(sh.table.entries[slot].state.Fresh)))
	}
}

// isHeldLocked reports whether a key has an open hold, and so has to stay.
func (sh *shard) isHeldLocked(e *entry) bool {
	return len(sh.held) > 0 && sh.held[id{e.id.hi, e.id.lo &^ deniedBit}].n > 0
}

// releaseDueLocked gives back to a key what its holds have that have expired.
func (c *core) releaseDueLocked(sh *shard, k id, now weir.Micros) {
	if now < sh.releases {
		return
	}
	if list, found := sh.held[k]; found && list.releases <= now {
		c.endDueLocked(sh, k, now)
	}
}

// endDueLocked ends the holds of a key whose time has come, one after the other. A key has
// at most weir.MaxHolds of them.
func (c *core) endDueLocked(sh *shard, k id, now weir.Micros) {
	var due, open []*heldPart
	releases := weir.Micros(math.MaxInt64)
	for p := sh.held[k].first; p != nil; p = p.next {
		switch {
		case p.hold.expires <= now:
			due = append(due, p)
		default:
			open = append(open, p)
			if p.releases() {
				releases = min(releases, p.hold.expires)
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
	for i, p := range due {
		sh.letGoLocked(p)
		if p.lapsed = true; p.releases() {
			c.giveBackLocked(sh, p, p.Cost, left[i+1:])
		}
	}
	if list, found := sh.held[k]; found {
		list.releases = releases
		sh.held[k] = list
	} else {
		sh.leaveLocked(k)
	}
}

// nextReleaseLocked finds when the next hold of the shard gives its units back.
func (sh *shard) nextReleaseLocked() {
	sh.releases = math.MaxInt64
	for _, list := range sh.held {
		sh.releases = min(sh.releases, list.releases)
	}
}

// releaseLocked gives back units of a part, which is on the key's list no more.
func (c *core) releaseLocked(sh *shard, p *heldPart, units int64) {
	var buf [8]*weir.Held
	open := buf[:0]
	if p.leaks() {
		for other := sh.held[p.id].first; other != nil; other = other.next {
			open = append(open, &other.Held)
		}
	}
	c.giveBackLocked(sh, p, units, open)
}

// leaks reports whether other holds of the key must be known to give something back.
func (p *heldPart) leaks() bool {
	a := p.limit.Limit().Algorithm
	return a == weir.TokenBucket || a == weir.LeakyBucket
}

func (c *core) giveBackLocked(sh *shard, p *heldPart, units int64, open []*weir.Held) {
	slot, found := sh.table.find(p.id)
	if !found {
		return
	}
	e := &sh.table.entries[slot]
	if e.state = p.limit.Release(e.state, sh.tail(slot), p.Held, units, open); e.state == (weir.State{}) {
		sh.removeLocked(slot)
		c.keys.Add(-1)
		return
	}
	sh.earliest.Store(min(sh.earliest.Load(), int64(e.state.Fresh)))
}

// isFullLocked reports whether one more hold would be too many for a key.
func (c *core) isFullLocked(h *hold, sh *shard, k id, now weir.Micros) bool {
	if len(sh.held) == 0 {
		return false
	}
	most := c.holdsOfKeyLocked(c.holdShard(h.id))
	if sh.held[k].n < most {
		return false
	}
	c.endDueLocked(sh, k, now) // what would give units back has done so already
	return sh.held[k].n >= most
}

// denyFullLocked says when a key can have one more hold.
func (sh *shard) denyFullLocked(d *weir.Decision, k id, now weir.Micros) {
	first := weir.Micros(math.MaxInt64)
	for p := sh.held[k].first; p != nil; p = p.next {
		first = min(first, p.hold.expires)
	}
	d.Allowed, d.RetryAfter, d.Delay = false, first.Sub(now), 0
}

// denyAnyFullLocked denies what would be one hold too many for a key, and so all.
func (c *core) denyAnyFullLocked(h *hold, decisions []weir.Decision, now weir.Micros, parts []part, charges []weir.Pending) bool {
	var full [weir.MaxOps]bool
	any := false
	for i, p := range parts {
		full[i] = !charges[i].Op.Look && c.isFullLocked(h, p.shard, p.id, now)
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
		if charges[i].Op.Look {
			continue
		}
		parts[i].shard.holdLocked(&h.parts[next], parts[i].id, charges[i].Op.Held(charges[i].Next))
		next++
	}
}

// resetLocked lets holds of a key have nothing to give back.
func (sh *shard) resetLocked(k id) {
	for p := sh.held[k].first; p != nil; {
		next := p.next
		p.listed, p.prev, p.next = false, nil, nil
		p = next
	}
	delete(sh.held, k)
}
