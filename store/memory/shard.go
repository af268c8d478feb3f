package memory

import (
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weirhq/weir"
)

// shard is a part of the keys with a lock of its own. It fills cache lines of its
// own too, so that goroutines at two shards do not disturb each other.
type shard struct {
	_ [shardSize - unsafe.Sizeof(shardFields{})]byte
	shardFields
}

const shardSize = 128

type shardFields struct {
	mu    sync.Mutex
	sweep weir.Micros // when to look for keys that are fully reset

	// earliest is not later than the first instant at which any key of the
	// shard is fully reset and has no open hold; after a sweep, it is that
	// instant, or when to look again. Others read it without the lock.
	earliest atomic.Int64

	// releases is not later than when the first open hold gives its units back because it
	// expires.
	releases weir.Micros

	table table
	arena *arena // nil until a key has a tail
}

const (
	// sweepEvery is how often, in microseconds, a shard that is in use looks
	// for keys that have recovered.
	sweepEvery = 1_000_000

	// grace is how long those are kept without need, so that a clock that is
	// set back a little does not find them forgotten.
	grace = 10_000_000
)

// tail is the tail of the entry at slot, nil if it has none.
func (sh *shard) tail(slot int) []int64 {
	if sh.table.tails == nil {
		return nil
	}
	return sh.arena.words(sh.table.tails[slot])
}

// commitLocked commits next to an entry that is there.
func (sh *shard) commitLocked(slot int, limit *weir.Compiled, next weir.State) {
	e := &sh.table.entries[slot]
	if need := limit.TailLen(next); need > 0 {
		prev, tail := e.state, sh.tail(slot)
		if !limit.Readable(prev, tail) {
			prev = weir.State{}
		}
		if need > len(tail) {
			tail = sh.lengthenLocked(slot, limit, prev, need)
		}
		limit.Commit(tail, prev, next)
	}
	e.state = next
	sh.resetsAtLocked(next.Fresh)
}

// resetsAtLocked notes when a key is fully reset that may then go.
func (sh *shard) resetsAtLocked(at weir.Micros) {
	if int64(at) < sh.earliest.Load() {
		sh.earliest.Store(int64(at))
	}
}

// refundLocked gives back what the op's receipt stands for, and reports whether
// that was all, so that the key is gone.
func (sh *shard) refundLocked(slot int, op *weir.Op) bool {
	sh.giveBackFirstLocked(slot, op)
	e := &sh.table.entries[slot]
	if e.state == (weir.State{}) && !sh.isHeldLocked(slot) {
		sh.removeLocked(slot)
		return true
	}
	sh.resetsAtLocked(e.state.Fresh)
	return false
}

// giveBackFirstLocked gives back the place that an op renews. The key stays, because the op
// takes another one.
func (sh *shard) giveBackFirstLocked(slot int, op *weir.Op) {
	e := &sh.table.entries[slot]
	e.state = op.Limit.Refund(e.state, sh.tail(slot), op.Receipt, op.Cost)
}

// needTailsLocked lets keys have tails.
func (sh *shard) needTailsLocked() {
	if sh.table.tails == nil {
		sh.table.tails = make([]block, len(sh.table.entries))
	}
	if sh.arena == nil {
		sh.arena = new(arena)
	}
}

// lengthenLocked moves the tail of an entry to a larger block.
func (sh *shard) lengthenLocked(slot int, limit *weir.Compiled, s weir.State, need int) []int64 {
	sh.needTailsLocked()
	old := sh.table.tails[slot]
	b := sh.arena.takeBlock(need)
	limit.MoveTail(sh.arena.words(b), sh.arena.words(old), s)
	sh.arena.give(old)
	sh.table.tails[slot] = b
	return sh.arena.words(b)
}

func (sh *shard) removeLocked(slot int) {
	if sh.table.tails != nil {
		sh.arena.give(sh.table.tails[slot])
	}
	sh.table.remove(slot)
	if sh.table.keys == 0 {
		sh.earliest.Store(math.MaxInt64)
	}
}

// isDueLocked reports whether a shard in use has to be swept, or a hold may give its units
// back.
func (sh *shard) isDueLocked(now weir.Micros) bool {
	// The second condition is a clock that was ahead, and was set right.
	return now >= sh.sweep || now < sh.sweep-sweepEvery || now >= sh.releases
}

// tidyLocked sweeps a shard that is in use now and then.
func (c *core) tidyLocked(sh *shard, now weir.Micros) {
	if now >= sh.sweep || now < sh.sweep-sweepEvery {
		sh.sweep = now + sweepEvery
		sh.nextReleaseLocked()
		c.forget(sh.sweepLocked(now - grace))
	}
}

// sweepLocked removes every key that is fully reset and has no open hold, and returns how
// many.
func (sh *shard) sweepLocked(now weir.Micros) int {
	if sh.earliest.Load() > int64(now) {
		return 0
	}
	before, earliest := sh.table.keys, int64(math.MaxInt64)
	for slot := 0; slot < len(sh.table.entries); {
		e := &sh.table.entries[slot]
		switch recovered := !e.free() && e.state.Fresh <= now; {
		case recovered && sh.isHeldLocked(slot):
			earliest = min(earliest, int64(now+sweepEvery)) // or when it is let go
		case recovered:
			sh.removeLocked(slot) // another entry may have moved to this slot
			continue
		case !e.free():
			earliest = min(earliest, int64(e.state.Fresh))
		}
		slot++
	}
	sh.earliest.Store(earliest)
	sh.table.shrink()
	return before - sh.table.keys
}
