package memory

import (
	"slices"

	"github.com/weirhq/weir"
)

// take is Take for one op, the usual case. If there is to be a hold on what is charged,
// that takes effect at the same time.
func (s *Store) take(c *core, now weir.Micros, op *weir.Op, d *weir.Decision, o *opening) {
	k, sh := c.identify(op)
	for reserved := false; ; reserved = true {
		sh.mu.Lock()
		if sh.isDueLocked(now) {
			c.tidyLocked(sh, now)
			c.releaseDueLocked(sh, k, now)
		}
		slot, found := sh.table.find(k)
		held := o != nil && found && sh.isHeldLocked(slot)
		client := uint16(0)
		var charge weir.Pending
		charge.Op = op
		if found {
			if op.Renews() {
				sh.giveBackFirstLocked(slot, op)
			}
			sh.loadLocked(&charge, slot)
		}
		charge.Decide(d, now)
		if !d.Allowed && found && sh.isHeldLocked(slot) {
			charge.TellReserved(d, now, sh.table.held[slot].open(now))
		}
		if d.Allowed && held {
			var is room
			if is, client = c.roomLocked(o, sh, k, now); is != hasRoom {
				*d = op.Peek(charge.Prev, charge.Tail, now)
				sh.denyLocked(d, is, k, now)
				sh.mu.Unlock()
				if reserved {
					c.keys.Add(-1)
				}
				return
			}
		}
		if !found && charge.Next != charge.Prev && !reserved && !c.reserve(1, s.maxKeys) {
			sh.mu.Unlock()
			c.makeRoom(now, 1, s.maxKeys)
			continue
		}
		slot, made := sh.keepLocked(k, slot, found, &charge, d.Allowed)
		if o != nil && d.Allowed {
			sh.holdLocked(o.add(), terms{limit: op.Limit, tag: o.reservation.Tag(0)}, k, slot, found || made, op.Held(charge.Next), client)
		}
		sh.mu.Unlock()
		if reserved && !made { // somebody else made the key meanwhile
			c.keys.Add(-1)
		}
		return
	}
}

// allowKnown takes one unit in the least time. If the key is not known yet, or there is more
// to do than to decide, it does nothing, and ok is false.
func (s *Store) allowKnown(key string, limit *weir.Compiled) (allowed, ok bool) {
	c, now := s.core.Load(), s.now()
	k := c.idOf(key, limit)
	sh := c.shardOf(k)
	sh.mu.Lock()
	if !sh.isDueLocked(now) {
		if slot, found := sh.table.find(k); found {
			e := &sh.table.entries[slot]
			var next weir.State
			if next, allowed, ok = limit.Allow(e.state, now); ok {
				if allowed { // a denial leaves the memory alone, which another core may have in its cache
					e.state = next
					sh.resetsAtLocked(next.Fresh)
				}
				e.setDenied(!allowed)
			}
		}
	}
	sh.mu.Unlock()
	return allowed, ok
}

// part is one op of several on its way.
type part struct {
	id    id
	shard *shard

	// Under the locks, where the key is. What is inserted or removed may move others.
	slot  int
	found bool

	client uint16 // whose share of the key's holds its hold counts for; 0 for nobody's
}

func (p *part) findLocked() { p.slot, p.found = p.shard.table.find(p.id) }

// loadLocked lets a charge begin with what is remembered of a key.
func (sh *shard) loadLocked(charge *weir.Pending, slot int) {
	t := &sh.table
	if charge.Prev = t.entries[slot].state; t.tails != nil {
		charge.Tail = sh.arena.words(t.tails[slot])
	}
}

// takeMany holds the locks of all the shards that the ops need, in the order of
// their numbers, and so charges all or none for everyone to see.
func (s *Store) takeMany(c *core, now weir.Micros, dst []weir.Decision, ops []weir.Op, o *opening) []weir.Decision {
	var partsBuf [8]part
	var chargesBuf [8]weir.Pending
	parts, charges := partsBuf[:], chargesBuf[:]
	if len(ops) > len(partsBuf) {
		parts, charges = make([]part, len(ops)), make([]weir.Pending, len(ops))
	}
	parts, charges = parts[:len(ops)], charges[:len(ops)]
	for i := range ops {
		parts[i].id, parts[i].shard = c.identify(&ops[i])
		charges[i].Op = &ops[i]
	}
	var lockBuf [8]int
	order := c.lockOrder(lockBuf[:0], parts)
	first, room := len(dst), int64(0)
	for {
		c.lock(order)
		if c.isDueLocked(order, now) {
			c.updateLocked(order, parts, now)
		}
		if len(ops) > 0 && ops[0].Renews() { // and then all do
			giveBackFirstLocked(parts, ops)
		}
		missing := int64(0)
		for i := range parts {
			p, charge := &parts[i], &charges[i]
			charge.Prev, charge.Tail = weir.State{}, nil
			if p.findLocked(); p.found {
				p.shard.loadLocked(charge, p.slot)
			} else {
				missing++
			}
		}
		dst = weir.DecideAll(dst[:first], now, charges)
		holds := o != nil && weir.Allowed(dst[first:])
		tellReservedLocked(dst[first:], parts, charges, now)
		if holds && c.denyAnyFullLocked(o, dst[first:], now, parts, charges) {
			c.unlock(order)
			c.keys.Add(-room)
			return dst
		}
		if missing > 0 {
			missing = newKeys(parts, charges)
		}
		if missing <= room || c.reserve(missing-room, s.maxKeys) {
			room = max(room, missing)
			for i := range parts {
				p := &parts[i]
				if missing > 0 { // one before may have moved it
					p.findLocked()
				}
				p.shard.keepLocked(p.id, p.slot, p.found, &charges[i], dst[first+i].Allowed)
			}
			if holds {
				o.keepLocked(parts, charges)
			}
			c.unlock(order)
			if room > missing { // all cores share the number, so it is left alone if it can be
				c.keys.Add(missing - room)
			}
			return dst
		}
		c.unlock(order)
		// A call that needs more gives back what it has; otherwise two calls could wait for
		// each other forever.
		c.keys.Add(-room)
		c.makeRoom(now, missing, s.maxKeys)
		room = missing
	}
}

// isDueLocked is that of any of some shards.
func (c *core) isDueLocked(order []int, now weir.Micros) bool {
	for _, at := range order {
		if c.shards[at].isDueLocked(now) {
			return true
		}
	}
	return false
}

// updateLocked lets go what is due now, which can move keys.
func (c *core) updateLocked(order []int, parts []part, now weir.Micros) {
	for _, at := range order {
		c.tidyLocked(&c.shards[at], now)
	}
	for i := range parts {
		c.releaseDueLocked(parts[i].shard, parts[i].id, now)
	}
}

// giveBackFirstLocked gives back the places that ops renew, all before any is taken.
func giveBackFirstLocked(parts []part, ops []weir.Op) {
	for i := range parts {
		p := &parts[i]
		if p.findLocked(); p.found {
			p.shard.giveBackFirstLocked(p.slot, &ops[i])
		}
	}
}

// keepLocked puts a charge into effect. It returns the slot of the key, and whether it made
// one for it.
func (sh *shard) keepLocked(k id, slot int, found bool, charge *weir.Pending, allowed bool) (at int, made bool) {
	if charge.Next != charge.Prev {
		if !found {
			slot, made = sh.table.insert(k), true
		}
		sh.commitLocked(slot, charge.Op.Limit, charge.Next)
	}
	if found || made {
		sh.table.entries[slot].setDenied(!allowed)
	}
	return slot, made
}

// newKeys counts the keys that the charges would add, each once.
func newKeys(parts []part, charges []weir.Pending) int64 {
	n := int64(0)
	for i := range parts {
		p := &parts[i]
		if p.found || charges[i].Next == charges[i].Prev {
			continue
		}
		known := false
		for j := 0; j < i && !known; j++ {
			known = parts[j].id == p.id && charges[j].Next != charges[j].Prev
		}
		if !known {
			n++
		}
	}
	return n
}

// lockOrder appends the numbers of the shards of the parts, each once, in the
// order in which everybody locks them.
func (c *core) lockOrder(order []int, parts []part) []int {
	for i := range parts {
		order = append(order, int(parts[i].id.lo>>c.shift))
	}
	slices.Sort(order)
	return slices.Compact(order)
}

func (c *core) lock(order []int) {
	for _, i := range order {
		c.shards[i].mu.Lock()
	}
}

func (c *core) unlock(order []int) {
	for _, i := range order {
		c.shards[i].mu.Unlock()
	}
}

// peekMany answers without charging. It holds the same locks as takeMany, so
// that tails do not change while they are read.
func (s *Store) peekMany(dst []weir.Decision, ops []weir.Op) []weir.Decision {
	c := s.core.Load()
	parts := make([]part, len(ops))
	charges := make([]weir.Pending, len(ops))
	for i := range ops {
		parts[i].id, parts[i].shard = c.identify(&ops[i])
		charges[i].Op = &ops[i]
	}
	order := c.lockOrder(nil, parts)
	now := s.now()
	c.lock(order)
	defer c.unlock(order)
	for i := range parts {
		c.releaseDueLocked(parts[i].shard, parts[i].id, now)
	}
	for i := range parts {
		p := &parts[i]
		if p.findLocked(); p.found {
			p.shard.loadLocked(&charges[i], p.slot)
		}
	}
	first := len(dst)
	dst = weir.PeekAll(dst, now, charges)
	tellReservedLocked(dst[first:], parts, charges, now)
	return dst
}
