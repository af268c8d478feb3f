package engine

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/weirhq/weir"
)

// issued remembers the holds that this engine has made lately. While the store is unavailable,
// no other part can tell the id of a hold from an invented one, and what waits for the store has
// little room.
//
// It is a table of fixed size, made with the first hold, in which each id has one place. A
// newer id replaces an older one.
type issued struct {
	table atomic.Pointer[[issuedPlaces]atomic.Uint64]
}

const issuedPlaces = 1 << 16

// place returns where in the table an id is, and what is there. Ids are random throughout.
func (*issued) place(id weir.HoldID) (int, uint64) {
	return int(binary.LittleEndian.Uint16(id[8:])), binary.LittleEndian.Uint64(id[:8])
}

func (i *issued) add(id weir.HoldID) {
	table := i.table.Load()
	if table == nil {
		i.table.CompareAndSwap(nil, new([issuedPlaces]atomic.Uint64))
		table = i.table.Load()
	}
	at, what := i.place(id)
	table[at].Store(what)
}

func (i *issued) has(id weir.HoldID) bool {
	table := i.table.Load()
	if table == nil {
		return false
	}
	at, what := i.place(id)
	return table[at].Load() == what
}
