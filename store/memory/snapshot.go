package memory

import (
	"io"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/snapshot"
)

// A snapshot is:
//
//	seed
//	for each key: the word 1, id, state, length of the tail, its words
//	the word 0, the number of keys
//
// The seed makes the ids meaningful to the next process.
var format = snapshot.Format{
	Package: "memory", Magic: "weirsnap", Of: "memory store",
	Version: 2, // in 1, a log had a word for each unit
}

// Snapshot writes what is remembered to w, so that quotas survive a restart.
// The store stays in use meanwhile; each shard is written as of one instant.
func (s *Store) Snapshot(w io.Writer) error {
	c, now := s.core.Load(), s.now()
	return format.Write(w, func(out *snapshot.Writer) {
		out.Raw(c.seed[:])
		var all, keys int64
		var copied []int64
		for i := range c.shards {
			copied, keys = c.shards[i].copyEntries(copied[:0], now)
			all += keys
			for _, x := range copied {
				out.Words(x)
			}
		}
		out.Words(0, all)
	})
}

// copyEntries appends the keys that still count. It holds the lock for a copy
// in memory, never for the writer.
func (sh *shard) copyEntries(to []int64, now weir.Micros) ([]int64, int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var keys int64
	for slot := range sh.table.entries {
		e := &sh.table.entries[slot]
		if e.free() || e.state.Fresh <= now {
			continue
		}
		keys++
		tail := sh.tail(slot)
		to = append(to, 1, int64(e.id.hi), int64(e.id.lo), int64(e.state.Fresh), e.state.A, e.state.B, int64(len(tail)))
		to = append(to, tail...)
	}
	return to, keys
}
