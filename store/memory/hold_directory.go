package memory

import (
	"encoding/binary"
	"math/bits"

	"github.com/weirhq/weir"
)

// holdRef says where a hold is: one that is open by its place in the list, one that has
// ended by its position in the log.
type holdRef uint32

const openBit holdRef = 1 << 31

func openRef(place int) holdRef { return holdRef(place) | openBit }
func (r holdRef) isOpen() bool  { return r&openBit != 0 }
func (r holdRef) place() int    { return int(r &^ openBit) }

// directory finds some of a shard's holds by the hashes of their ids. It is a hash table with
// linear probing, whose slots have a hash and where the hold is, so that it grows without a
// look at the holds, and the garbage collector does not see them.
//
// A shard has many of them. Ids that were made together are in the same one, so a processor
// that reserves and settles has its slots in the cache, and a directory that grows is small.
type directory struct {
	slots []holdSlot
	count int
}

// holdSlot has a hash and a reference. 0 is an empty one.
type holdSlot uint64

func (s holdSlot) hash() uint32     { return uint32(s >> 32) }
func (s holdSlot) ref() holdRef     { return holdRef(s) }
func (s *holdSlot) set(ref holdRef) { *s = *s>>32<<32 | holdSlot(ref) }

const (
	holdsPerDirectory = 64 // of a full store, on average
	fewSlots          = 2 * holdsPerDirectory
)

// directoryHash returns a hash of an id, which is never 0. Ids are random, but those of tests are not.
func directoryHash(id *weir.HoldID) uint32 {
	high, low := bits.Mul64(binary.LittleEndian.Uint64(id[:8])^0x9e3779b97f4a7c15, binary.LittleEndian.Uint64(id[8:])^0xc2b2ae3d27d4eb4f)
	return uint32(high^low) | 1
}

// family returns bits of an id, the highest first, that choose its shard and directory. They depend only on the
// last two bytes, which ids have in common that were made together.
func family(id *weir.HoldID) uint64 {
	return uint64(binary.LittleEndian.Uint16(id[14:])) * 0x9e3779b97f4a7c15
}

// holdShard returns the shard of an id. Functions that are called for each hold have a pointer to
// the id, because arrays are not passed in registers.
func (c *core) holdShard(id *weir.HoldID) *holdShard { return &c.holds[family(id)>>c.holdShift] }

// directory returns the directory of an id of this shard.
func (sh *holdShard) directory(id *weir.HoldID) *directory {
	return &sh.directories[family(id)>>sh.shift&uint64(len(sh.directories)-1)]
}

func (d *directory) home(hash uint32) int { return int(uint64(hash) * uint64(len(d.slots)) >> 32) }
func (d *directory) next(at int) int      { return (at + 1) & (len(d.slots) - 1) }

// findLocked returns the slot of a hold in its directory; nil if it has none.
func (sh *holdShard) findLocked(id *weir.HoldID) *holdSlot {
	d, hash := sh.directory(id), directoryHash(id)
	if len(d.slots) == 0 {
		return nil
	}
	for at := d.home(hash); ; at = d.next(at) {
		switch s := &d.slots[at]; {
		case *s == 0:
			return nil
		case s.hash() == hash && sh.isLocked(s.ref(), id):
			return s
		}
	}
}

// isLocked reports whether a hold has this id.
func (sh *holdShard) isLocked(ref holdRef, id *weir.HoldID) bool {
	if ref.isOpen() {
		return sh.open.at(ref.place()).id == *id
	}
	return sh.ended.record(ref).id() == *id
}

// putLocked adds a hold, which is not there, to its directory.
func (sh *holdShard) putLocked(id *weir.HoldID, ref holdRef) {
	d := sh.directory(id)
	if d.count*4 >= len(d.slots)*3 {
		d.grow()
	}
	d.count++
	d.put(holdSlot(directoryHash(id))<<32 | holdSlot(ref))
}

// grow makes room for more.
func (d *directory) grow() {
	old := d.slots
	d.slots = make([]holdSlot, max(fewSlots, 2*len(old)))
	for _, s := range old {
		if s != 0 {
			d.put(s)
		}
	}
}

// put fills the first empty slot from the home of a hash on.
func (d *directory) put(s holdSlot) {
	at := d.home(s.hash())
	for d.slots[at] != 0 {
		at = d.next(at)
	}
	d.slots[at] = s
}

// removeLocked empties the slot of a hold, and moves those up that it has kept from their homes.
func (sh *holdShard) removeLocked(id *weir.HoldID) {
	d, s := sh.directory(id), sh.findLocked(id)
	at := d.home(s.hash())
	for &d.slots[at] != s {
		at = d.next(at)
	}
	d.count--
	for next := d.next(at); d.slots[next] != 0; next = d.next(next) {
		home := d.home(d.slots[next].hash())
		if (next-home)&(len(d.slots)-1) >= (next-at)&(len(d.slots)-1) {
			d.slots[at] = d.slots[next]
			at = next
		}
	}
	d.slots[at] = 0
	if d.count == 0 && len(d.slots) > fewSlots {
		d.slots = nil
	}
}
