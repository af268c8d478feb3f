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
	slots []uint64 // 0 is empty
	count int
}

const (
	holdsPerDirectory = 64 // of a full store, on average
	fewSlots          = 2 * holdsPerDirectory
)

// directoryHash returns a hash of an id, which is never 0. Ids are random, but those of tests are not.
func directoryHash(id weir.HoldID) uint32 {
	high, low := bits.Mul64(binary.LittleEndian.Uint64(id[:8])^0x9e3779b97f4a7c15, binary.LittleEndian.Uint64(id[8:])^0xc2b2ae3d27d4eb4f)
	return uint32(high^low) | 1
}

// family returns bits of an id, the highest first, that choose its shard and directory. They depend only on the
// last two bytes, which ids have in common that were made together.
func family(id weir.HoldID) uint64 {
	return uint64(binary.LittleEndian.Uint16(id[14:])) * 0x9e3779b97f4a7c15
}

// holdShard returns the shard of an id.
func (c *core) holdShard(id weir.HoldID) *holdShard { return &c.holds[family(id)>>c.holdShift] }

// directory returns the directory of an id of this shard.
func (sh *holdShard) directory(id weir.HoldID) *directory {
	return &sh.directories[family(id)>>sh.shift&uint64(len(sh.directories)-1)]
}

func (d *directory) home(hash uint32) int { return int(uint64(hash) * uint64(len(d.slots)) >> 32) }
func (d *directory) next(at int) int      { return (at + 1) & (len(d.slots) - 1) }
func (d *directory) ref(at int) holdRef   { return holdRef(d.slots[at]) }

func (d *directory) set(at int, ref holdRef) {
	d.slots[at] = d.slots[at]>>32<<32 | uint64(ref)
}

// findLocked returns the slot of a hold in its directory.
func (sh *holdShard) findLocked(id weir.HoldID) (at int, found bool) {
	d, hash := sh.directory(id), directoryHash(id)
	if len(d.slots) == 0 {
		return 0, false
	}
	for at = d.home(hash); d.slots[at] != 0; at = d.next(at) {
		if uint32(d.slots[at]>>32) == hash && sh.isLocked(d.ref(at), id) {
			return at, true
		}
	}
	return 0, false
}

// isLocked reports whether a hold has this id.
func (sh *holdShard) isLocked(ref holdRef, id weir.HoldID) bool {
	if ref.isOpen() {
		return sh.open.records[ref.place()].id == id
	}
	return sh.ended.record(ref).id() == id
}

// putLocked adds a hold, which is not there, to its directory.
func (sh *holdShard) putLocked(id weir.HoldID, ref holdRef) {
	d := sh.directory(id)
	if d.count*4 >= len(d.slots)*3 {
		d.grow()
	}
	d.count++
	d.put(uint64(directoryHash(id))<<32 | uint64(ref))
}

// grow makes room for more.
func (d *directory) grow() {
	old := d.slots
	d.slots = make([]uint64, max(fewSlots, 2*len(old)))
	for _, slot := range old {
		if slot != 0 {
			d.put(slot)
		}
	}
}

// put fills the first empty slot from the home of a hash on.
func (d *directory) put(slot uint64) {
	at := d.home(uint32(slot >> 32))
	for d.slots[at] != 0 {
		at = d.next(at)
	}
	d.slots[at] = slot
}

// remove empties a slot, and moves those up that it has kept from their homes.
func (d *directory) remove(at int) {
	d.count--
	for next := d.next(at); d.slots[next] != 0; next = d.next(next) {
		home := d.home(uint32(d.slots[next] >> 32))
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
