package memory

import (
	"slices"

	"github.com/weirhq/weir"
)

// take is Take for one op, the usual case.
func (s *Store) take(op *weir.Op) weir.Decision {
	c := s.core.Load()
	k, sh := c.identify(op)
	now := s.now()
	room := false
	for {
		sh.mu.Lock()
		d, done := c.takeLocked(sh, k, op, now, s.maxKeys, &room)
		sh.mu.Unlock()
		if done {
			if room { // somebody else made the key meanwhile
				c.keys.Add(-1)
			}
			return d
		}
		c.makeRoom(now, 1, s.maxKeys)
		room = true
	}
}

// takeLocked decides and keeps, unless the key is new and there is no room. It
// uses up the room that was made, if it needs it.
func (c *core) takeLocked(sh *shard, k id, op *weir.Op, now weir.Micros, maxKeys int64, room *bool) (weir.Decision, bool) {
	c.tidyLocked(sh, now)
	slot, found := sh.table.find(k)
	var prev weir.State
	var tail []int64
	if found {
		prev, tail = sh.table.entries[slot].state, sh.tail(slot)
	}
	next, d := op.Decide(prev, tail, now)
	if next != prev {
		if !found {
			if !*room && !c.reserve(1, maxKeys) {
				return d, false
			}
			*room = false
			slot, found = sh.table.insert(k), true
		}
		sh.keepLocked(slot, op.Limit, next)
	}
	if found {
		sh.table.entries[slot].setRefused(!d.Allowed)
	}
	return d, true
}

// part is one op of several on its way.
type part struct {
	id    id
	shard *shard
}

// takeMany holds the locks of all the shards that the ops need, in the order of
// their addresses, and so charges all or none for everyone to see.
func (s *Store) takeMany(dst []weir.Decision, ops []weir.Op) []weir.Decision {
	c := s.core.Load()
	var partsBuf [8]part
	parts := partsBuf[:0]
	var chargesBuf [8]weir.Charge
	charges := chargesBuf[:0]
	for i := range ops {
		k, sh := c.identify(&ops[i])
		parts = append(parts, part{k, sh})
		charges = append(charges, weir.Charge{Op: &ops[i]})
	}
	var lockBuf [8]int
	order := c.lockOrder(lockBuf[:0], parts)
	now := s.now()
	first, room := len(dst), int64(0)
	for {
		c.lock(order)
		for _, at := range order {
			c.tidyLocked(&c.shards[at], now)
		}
		for i, p := range parts {
			charges[i].Prev, charges[i].Tail = p.shard.load(p.id)
		}
		dst = weir.Settle(dst[:first], now, charges)
		missing := newKeys(parts, charges)
		if missing <= room || c.reserve(missing-room, s.maxKeys) {
			room = max(room, missing)
			for i := range parts {
				parts[i].keepLocked(&charges[i], dst[first+i].Allowed)
			}
			c.unlock(order)
			c.keys.Add(missing - room)
			return dst
		}
		c.unlock(order)
		c.makeRoom(now, missing-room, s.maxKeys)
		room = missing
	}
}

// keepLocked puts one charge into effect.
func (p part) keepLocked(charge *weir.Charge, allowed bool) {
	slot, found := p.shard.table.find(p.id)
	if charge.Next != charge.Prev {
		if !found {
			slot, found = p.shard.table.insert(p.id), true
		}
		p.shard.keepLocked(slot, charge.Op.Limit, charge.Next)
	}
	if found {
		p.shard.table.entries[slot].setRefused(!allowed)
	}
}

// newKeys counts the keys that the charges would add, each once.
func newKeys(parts []part, charges []weir.Charge) int64 {
	n := int64(0)
	for i, p := range parts {
		_, found := p.shard.table.find(p.id)
		if !found && charges[i].Next != charges[i].Prev && !slices.ContainsFunc(parts[:i], p.same) {
			n++
		}
	}
	return n
}

func (p part) same(other part) bool { return p.id == other.id }

// lockOrder appends the numbers of the shards of the parts, each once, in the
// order in which everybody locks them.
func (c *core) lockOrder(order []int, parts []part) []int {
	for _, p := range parts {
		order = append(order, int(p.id.lo>>c.shift))
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
	charges := make([]weir.Charge, len(ops))
	for i := range ops {
		parts[i].id, parts[i].shard = c.identify(&ops[i])
		charges[i].Op = &ops[i]
	}
	order := c.lockOrder(nil, parts)
	now := s.now()
	c.lock(order)
	defer c.unlock(order)
	for i, p := range parts {
		charges[i].Prev, charges[i].Tail = p.shard.load(p.id)
	}
	return weir.Survey(dst, now, charges)
}
