package redis

import (
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
}

func (k *known) add(id weir.HoldID, d *directory) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byID == nil {
		k.byID = make(map[weir.HoldID]*directory)
	}
	if len(k.order) < maxKnown {
		k.order = append(k.order, id)
	} else {
		delete(k.byID, k.order[k.next])
		k.order[k.next] = id
		k.next = (k.next + 1) % maxKnown
	}
	k.byID[id] = d
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
	delete(k.byID, id)
}
