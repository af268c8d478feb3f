package redis

import (
	"slices"
	"sync"

	"github.com/weirhq/weir"
)

// maxKnown bounds the holds that a store remembers.
const maxKnown = 8192

// known are the directories of the holds that this store has opened last. Who settles one of
// them need not read it. They may be out of date: the record of the hold decides.
type known struct {
	mu    sync.Mutex
	byID  map[weir.HoldID]*directory
	order []weir.HoldID // a ring
	next  int
	open  map[heldKey]int // how many of them are on a key
}

// heldKey is a key under a kind of limit.
type heldKey struct {
	key  string
	kind uint64
}

func (k *known) add(id weir.HoldID, d *directory) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byID == nil {
		k.byID, k.open = make(map[weir.HoldID]*directory), make(map[heldKey]int)
	}
	if len(k.order) < maxKnown {
		k.order = append(k.order, id)
	} else {
		k.dropLocked(k.order[k.next])
		k.order[k.next] = id
		k.next = (k.next + 1) % maxKnown
	}
	k.dropLocked(id)
	k.byID[id] = d
	for i := range d.ops {
		k.open[heldKey{d.ops[i].Key, d.ops[i].Limit.Kind()}]++
	}
}

func (k *known) find(id weir.HoldID) *directory {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byID[id]
}

// extend notes when a hold expires that it knows.
func (k *known) extend(id weir.HoldID, expires weir.Micros) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d := k.byID[id]; d != nil {
		later := *d // others may read it
		later.expires = expires
		k.byID[id] = &later
	}
}

func (k *known) forget(id weir.HoldID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropLocked(id)
}

func (k *known) dropLocked(id weir.HoldID) {
	d := k.byID[id]
	if d == nil {
		return
	}
	delete(k.byID, id)
	for i := range d.ops {
		at := heldKey{d.ops[i].Key, d.ops[i].Limit.Kind()}
		if k.open[at]--; k.open[at] == 0 {
			delete(k.open, at)
		}
	}
}

// holdsOn reports whether it knows a hold on the key of any op. The hold may have expired.
func (k *known) holdsOn(ops []weir.Op) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.open) > 0 && slices.ContainsFunc(ops, func(op weir.Op) bool { return k.open[heldKey{op.Key, op.Limit.Kind()}] > 0 })
}
