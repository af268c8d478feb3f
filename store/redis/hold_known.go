package redis

import (
	"strings"
	"sync"

	"github.com/weirhq/weir"
)

// maxKnown bounds the holds that a store remembers.
const maxKnown = 8192

// known are the directories of the holds that this store has opened last. Who settles one of
// them need not read it. They may be out of date: the record of the hold decides.
type known struct {
	mu    sync.Mutex
	byID  map[weir.HoldID]*knownHold
	order []weir.HoldID // a ring
	next  int
}

type knownHold struct {
	*directory
	ops []weir.Op
}

// add remembers a hold. The caller may use the bytes of the keys for others.
func (k *known) add(id weir.HoldID, d *directory, ops []weir.Op) {
	h := &knownHold{directory: d}
	for _, op := range ops {
		if !op.Look {
			h.ops = append(h.ops, weir.Op{Key: strings.Clone(op.Key), Limit: op.Limit, Cost: op.Cost})
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byID == nil {
		k.byID = make(map[weir.HoldID]*knownHold)
	}
	if len(k.order) < maxKnown {
		k.order = append(k.order, id)
	} else {
		delete(k.byID, k.order[k.next])
		k.order[k.next] = id
		k.next = (k.next + 1) % maxKnown
	}
	k.byID[id] = h
}

func (k *known) find(id weir.HoldID) *knownHold {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byID[id]
}

func (k *known) forget(id weir.HoldID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byID, id)
}
