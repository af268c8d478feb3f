package memory

import (
	"runtime"

	"github.com/weirhq/weir"
)

// reserve makes n more keys count, if the bound allows it.
func (c *core) reserve(n, maxKeys int64) bool {
	for {
		keys := c.keys.Load()
		if keys+n > maxKeys {
			return false
		}
		if c.keys.CompareAndSwap(keys, keys+n) {
			return true
		}
	}
}

// forget counts keys that have gone because they were fully reset.
func (c *core) forget(n int) {
	if n > 0 {
		c.keys.Add(int64(-n))
		c.expired.Add(int64(n))
	}
}

// makeRoom reserves n keys when the store is full. No lock may be held. Keys
// that have recovered go first, wherever they are; only when there is none left
// does one go that still counts.
func (c *core) makeRoom(now weir.Micros, n, maxKeys int64) {
	for !c.reserve(n, maxKeys) {
		if !c.dropRecovered(now) && !c.dropLeast() {
			runtime.Gosched() // all the room is promised to others, who are about to use it
		}
	}
}

// dropRecovered sweeps the first shard that has a recovered key.
func (c *core) dropRecovered(now weir.Micros) bool {
	for i := range c.shards {
		sh := &c.shards[i]
		if sh.earliest.Load() > int64(now) {
			continue
		}
		sh.mu.Lock()
		n := sh.sweepLocked(now)
		sh.mu.Unlock()
		c.forget(n)
		if n > 0 {
			return true
		}
	}
	return false
}

const (
	sample  = 64 // keys of a shard that are compared when one that still counts has to go
	sparing = 16 // shards that are searched for one that is not being denied
)

// dropLeast removes the key that will be missed least among a few: not one that
// was denied when it last asked, if there is a choice, and the soonest to
// recover.
func (c *core) dropLeast() bool {
	spared := 0
	for tried := range 2 * len(c.shards) { // the second time round anybody goes
		at := c.cursor.Add(1)
		sh := &c.shards[at%int64(len(c.shards))]
		sh.mu.Lock()
		slot := sh.leastLocked(at / int64(len(c.shards)) * sample)
		drop := slot >= 0 && (spared >= sparing || tried >= len(c.shards) || !sh.table.entries[slot].denied())
		if slot >= 0 {
			spared++
		}
		if drop {
			sh.removeLocked(slot)
			c.keys.Add(-1)
			c.evicted.Add(1)
		}
		sh.mu.Unlock()
		if drop {
			return true
		}
	}
	return false
}

// leastLocked looks at a sample of entries from a slot on, and returns the slot
// of the one to go; -1 if the shard is empty.
func (sh *shard) leastLocked(from int64) int {
	least, entries := -1, sh.table.entries
	for i, seen := 0, 0; i < len(entries) && seen < sample; i++ {
		slot := int((from + int64(i)) % int64(len(entries)))
		e := &entries[slot]
		if e.free() || sh.isHeldLocked(slot) {
			continue
		}
		seen++
		if least < 0 || lessMissed(e, &entries[least]) {
			least = slot
		}
	}
	return least
}

func lessMissed(a, b *entry) bool {
	if a.denied() != b.denied() {
		return !a.denied()
	}
	return a.state.Fresh < b.state.Fresh
}
