package memory

import (
	"fmt"
	"math/bits"
	"runtime"

	"github.com/weirhq/weir"
)

const (
	// maxRemembered bounds the holds that are open or remembered, in keys of the store.
	// Those that have ended are forgotten for those to come: a repeated call then gets no
	// answer, but what has no hold cannot be settled at all.
	maxRemembered = 4

	// Shards are many enough to keep goroutines apart, and few, so that what each of them
	// writes to stays in the processor's cache. A full shard has 4096 to 131,072 holds.
	fewHolds           = 4096
	shardsPerProcessor = 8
	enoughShards       = 64
	manyHolds          = 1 << 17
	bytesPerEnded      = 256 // on average, at most

	// share is the part of the free places that one key may have, so that a few keys with
	// many holds cannot take all places: the more are taken, the fewer can one key have.
	share = 4

	passed  = 2  // holds that a reservation looks at, whether their time has come
	crowded = 16 // if there is no room
	swept   = 63 // others of its key that then end with a hold
)

var errTooManyHolds = fmt.Errorf("memory: too many holds are open; settle them sooner, or raise MaxKeys: %w", weir.ErrHoldsFull)

func (c *core) makeHoldShards(maxKeys int) {
	most := maxKeys / maxRemembered
	enough := min(enoughShards, shardsPerProcessor*runtime.GOMAXPROCS(0))
	log := bits.Len(uint(max(1, min(most/fewHolds, enough), most/manyHolds) - 1))
	c.holds, c.holdShift = make([]holdShard, 1<<log), uint(64-log)
	c.maxHolds, c.maxParts, c.maxOfKey = most>>log, maxKeys/2>>log, weir.MaxHolds
	directories := min(bits.Len(uint(c.maxHolds/fewSlots)), 16-log)
	for i := range c.holds {
		c.holds[i].directories, c.holds[i].shift = make([]directory, 1<<directories), c.holdShift-uint(directories)
	}
}

// holdsOfKeyLocked is how many holds a key may have for one more to be opened.
func (c *core) holdsOfKeyLocked(sh *holdShard) int {
	free := (c.maxHolds - sh.open.count) * len(c.holds)
	return min(c.maxOfKey, max(1, free/share))
}

// hasHoldRoomLocked reports whether there is room for one more, with so many parts.
func (c *core) hasHoldRoomLocked(sh *holdShard, parts int) bool {
	return sh.open.count < c.maxHolds && sh.open.records+parts <= c.maxParts
}

// makeHoldRoomLocked reports whether there is room for one more, with so many parts. A key
// with an open hold cannot make room, so these may be only a part of the store.
func (c *core) makeHoldRoomLocked(sh *holdShard, now weir.Micros, parts int) bool {
	for i := 0; i < crowded && !c.hasHoldRoomLocked(sh, parts); i++ {
		c.passOpenLocked(sh, now)
	}
	for sh.ended.count > 0 && (sh.open.count+sh.ended.count >= c.maxHolds || sh.ended.bytes > c.maxHolds*bytesPerEnded) {
		sh.forgetLocked()
	}
	return c.hasHoldRoomLocked(sh, parts)
}

// passLocked looks at a few holds, so that all have their turn: those that nobody asks for
// must not stay. A call that names a hold or a key finds it as it is now, anyway.
func (c *core) passLocked(sh *holdShard, now weir.Micros) {
	for i := 0; i < passed && sh.open.count > 0; i++ {
		c.passOpenLocked(sh, now)
	}
	for range passed {
		e := sh.ended.oldest()
		if e == nil {
			return
		}
		switch until := e.until(); {
		case until <= now || e.isForgotten():
			sh.forgetLocked()
		case until.Sub(now) > weir.HoldMemory: // it must not keep others from their turn
			id := e.id()
			sh.findLocked(&id).set(sh.ended.again())
		default:
			return
		}
	}
}

// passOpenLocked looks at the next of the open holds.
func (c *core) passOpenLocked(sh *holdShard, now weir.Micros) {
	if h := sh.open.pass(); h != nil && h.expires <= now {
		c.expireLocked(sh, sh.findLocked(&h.id), h, swept)
	}
}

// forgetLocked is the end of the hold that ended first.
func (sh *holdShard) forgetLocked() {
	if e := sh.ended.oldest(); !e.isForgotten() {
		id := e.id()
		sh.removeLocked(&id)
	}
	sh.ended.drop()
}
