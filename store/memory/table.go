package memory

import (
	"math/bits"

	"github.com/weirhq/weir"
)

// id identifies a key and its kind of limit. The lowest bit of lo is always set, so that
// the zero id means none.
type id struct{ hi, lo uint64 }

// entry is what is remembered of a key. It has no pointers.
type entry struct {
	id    id
	state weir.State
}

// deniedBit marks, in the second lowest bit of id.lo, a key that was denied
// when it last asked: who is being limited is the last to go.
const deniedBit = 2

func (e *entry) free() bool   { return e.id.lo == 0 }
func (e *entry) is(k id) bool { return e.id.hi == k.hi && e.id.lo&^deniedBit == k.lo }
func (e *entry) denied() bool { return e.id.lo&deniedBit != 0 }

func (e *entry) setDenied(denied bool) {
	if denied != e.denied() {
		e.id.lo ^= deniedBit
	}
}

// table is a hash table with linear probing whose entries are in the order of
// their hashes throughout: an entry's home is its hash scaled to the table, so
// the order of homes is the order of hashes. A search ends at the first greater
// hash, whether or not it finds anything; a full table stays quick.
type table struct {
	entries []entry
	homes   uint64 // entries beyond are room for what the last homes push on
	keys    int

	// Of the same slots, nil until a key needs one: the tail, and the open holds.
	tails []block
	held  []*keyHolds
}

// A table grows by a fifth when it is 85 % full, so it is 71 to 85 % full and a
// key costs 47 to 56 bytes. spill is room behind the last home.
const (
	minHomes = 8
	spill    = 24
)

func (t *table) full() bool { return uint64(t.keys)*20 >= t.homes*17 }

func (t *table) home(k id) int {
	high, _ := bits.Mul64(k.hi, t.homes)
	return int(high)
}

// find returns the slot of k, or the slot where it belongs.
func (t *table) find(k id) (slot int, found bool) {
	if t.homes == 0 {
		return 0, false
	}
	return t.findFrom(t.home(k), k)
}

// findAfter is find for keys that come in order: it begins at the slot of the one before, unless
// that is no longer there or greater.
func (t *table) findAfter(last int, k id) (slot int, found bool) {
	from := t.home(k)
	if last > from && last < len(t.entries) && !t.entries[last].free() && t.entries[last].id.hi < k.hi {
		from = last
	}
	return t.findFrom(from, k)
}

func (t *table) findFrom(i int, k id) (slot int, found bool) {
	for ; i < len(t.entries); i++ {
		e := &t.entries[i]
		if e.is(k) {
			return i, true
		}
		if e.free() || e.id.hi > k.hi {
			return i, false
		}
	}
	return len(t.entries), false
}

// insert makes an entry for k, which is not there, and returns its slot.
func (t *table) insert(k id) int {
	t.makeRoom()
	slot, _ := t.find(k)
	t.insertAt(slot, k)
	return slot
}

// makeRoom grows the table if it has no room for another key.
func (t *table) makeRoom() {
	if t.full() {
		t.resize(t.homes + max(minHomes, t.homes/5))
	}
}

// insertAt makes an entry for k at the slot that a search has found.
func (t *table) insertAt(slot int, k id) {
	end := slot
	for end < len(t.entries) && !t.entries[end].free() {
		end++
	}
	if end >= len(t.entries) {
		t.extend()
	}
	copy(t.entries[slot+1:end+1], t.entries[slot:end])
	t.entries[slot] = entry{id: k}
	if t.tails != nil {
		copy(t.tails[slot+1:end+1], t.tails[slot:end])
		t.tails[slot] = 0
	}
	if t.held != nil {
		copy(t.held[slot+1:end+1], t.held[slot:end])
		t.held[slot] = nil
	}
	t.keys++
}

// extend gives the last homes more room to spill, which chance alone almost
// never asks for.
func (t *table) extend() {
	t.entries = append(t.entries, make([]entry, spill)...)
	if t.tails != nil {
		t.tails = append(t.tails, make([]block, spill)...)
	}
	if t.held != nil {
		t.held = append(t.held, make([]*keyHolds, spill)...)
	}
}

// move copies what is known of the key at slot to another one.
func (t *table) move(to int, from *table, slot int) {
	t.entries[to] = from.entries[slot]
	if t.tails != nil {
		t.tails[to] = from.tails[slot]
	}
	if t.held != nil {
		t.held[to] = from.held[slot]
	}
}

// remove takes the entry at slot out and closes the gap.
func (t *table) remove(slot int) {
	for next := slot + 1; next < len(t.entries); slot, next = next, next+1 {
		e := &t.entries[next]
		if e.free() || t.home(e.id) == next {
			break
		}
		t.move(slot, t, next)
	}
	t.entries[slot] = entry{}
	if t.tails != nil {
		t.tails[slot] = 0
	}
	if t.held != nil {
		t.held[slot] = nil
	}
	t.keys--
}

// resize moves all entries to a table with so many homes, in order.
func (t *table) resize(homes uint64) {
	old := *t
	t.homes = homes
	t.entries = make([]entry, homes+spill)
	if old.tails != nil {
		t.tails = make([]block, len(t.entries))
	}
	if old.held != nil {
		t.held = make([]*keyHolds, len(t.entries))
	}
	at := 0
	for i := range old.entries {
		e := &old.entries[i]
		if e.free() {
			continue
		}
		at = max(at, t.home(e.id))
		for at >= len(t.entries) {
			t.extend()
		}
		t.move(at, &old, i)
		at++
	}
}

// shrink gives memory back when most of it is unused.
func (t *table) shrink() {
	switch {
	case t.keys == 0:
		*t = table{}
	case t.homes > 4*minHomes && uint64(t.keys)*4 < t.homes:
		t.resize(uint64(t.keys)*4/3 + minHomes)
	}
}
