package memory

import (
	"encoding/binary"
	"testing"

	"github.com/weirhq/weir"
)

// familyID returns the n-th id of those that were made together.
func familyID(family uint16, n int) (id weir.HoldID) {
	binary.LittleEndian.PutUint32(id[:], uint32(n)+1)
	binary.LittleEndian.PutUint16(id[14:], family)
	return id
}

// Ids that were made together share a small directory. Those of a full store are spread evenly.
func TestDirectoriesByFamily(t *testing.T) {
	s, _ := open(1 << 20)
	c := s.core.Load()
	most := 0
	for f := range 1 << 12 {
		first := familyID(uint16(f*16), 0)
		sh := c.holdShard(&first)
		d := sh.directory(&first)
		for n := range 64 {
			id := familyID(uint16(f*16), n)
			if c.holdShard(&id) != sh || sh.directory(&id) != d {
				t.Fatalf("%v and %v are apart", first, id)
			}
			sh.putLocked(&id, openRef(n))
		}
		most = max(most, len(d.slots))
	}
	total := 0
	for i := range c.holds {
		if n := c.holds[i].found(); n < c.maxHolds/2 || n > c.maxHolds*2 {
			t.Errorf("of %d holds, %d are in one of %d shards", 64<<12, n, len(c.holds))
		}
		total += c.holds[i].found()
	}
	if total != 64<<12 || most > 4*fewSlots {
		t.Errorf("%d holds are in directories with up to %d slots", total, most)
	}
}

// A directory finds what it has, whatever was put in and removed before. When it is empty, it is small.
func TestDirectoryGrowsAndShrinks(t *testing.T) {
	s, _ := open(1 << 20)
	c := s.core.Load()
	var ids [20 * fewSlots]weir.HoldID
	for i := range ids {
		ids[i] = familyID(7, i)
	}
	sh := c.holdShard(&ids[0])
	for i := range ids {
		h, place := sh.open.add()
		h.id = ids[i]
		sh.putLocked(&ids[i], openRef(int(place)))
	}
	for i := range ids {
		for j := max(0, i-2); j < min(len(ids), i+3); j++ {
			if at := sh.findLocked(&ids[j]); (at != nil) != (j >= i) || at != nil && at.ref() != openRef(j) {
				t.Fatalf("with %d removed, hold %d is at %v", i, j, at)
			}
		}
		sh.removeLocked(&ids[i])
	}
	if d := sh.directory(&ids[0]); d.count != 0 || len(d.slots) > fewSlots {
		t.Errorf("an empty directory has %d slots", len(d.slots))
	}
}
