package memory

import (
	"errors"
	"fmt"
	"io"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/disk"
)

// A snapshot is:
//
//	seed
//	for each key: the word 1, id, state, length of the tail, its words
//	the word 0, the number of keys
//	for each hold: the word 1, and what its write writes
//	the word 0, the number of holds
//
// The seed makes the ids meaningful to the next process.
var format = disk.Format{
	Package: "memory", Magic: "weirsnap", Of: "memory store",
	Version: 4, // in 1, a log had a word for each unit; in 2, there were no holds; in 3, no calendar
	Oldest:  2,
}

// Snapshot writes the usage of all keys to w, so that it survives a restart. The store
// stays in use meanwhile; each shard is written as of one instant. One snapshot is written
// after the other.
func (s *Store) Snapshot(w io.Writer) error {
	s.snapshot.Lock()
	defer s.snapshot.Unlock()
	c, now := s.core.Load(), s.now()
	c.beginSnapshot()
	return format.Write(w, func(out *disk.Writer) {
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
		var holds int64
		for i := range c.holds {
			open, ended := c.copyHolds(&c.holds[i])
			for j := range open {
				open[j].write(out)
			}
			holds += int64(len(open))
			for _, chunk := range ended {
				for len(chunk) > 0 {
					e := cut(chunk)
					if chunk = chunk[len(e):]; !e.isForgotten() {
						e.write(out)
						holds++
					}
				}
			}
		}
		out.Words(0, holds)
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

// exact is the largest number that a state may have: the arithmetic goes no further.
const exact = 1<<53 - 1

// Restore fills an empty store from a snapshot. It skips keys that have been fully
// reset since. If the snapshot is truncated, damaged or not a snapshot, Restore returns
// an error that says so, and the store stays empty and usable.
func (s *Store) Restore(r io.Reader) error {
	old := s.core.Load()
	if n := old.keys.Load(); n != 0 {
		return fmt.Errorf("memory: the store has %d keys already; restore a snapshot before the first request", n)
	}
	c, err := readCore(r, int(s.maxKeys), s.now())
	if err != nil {
		return err
	}
	if old.keys.Load() != 0 || !s.core.CompareAndSwap(old, c) {
		return errors.New("memory: the store was used while it was being restored; restore a snapshot before the first request")
	}
	return nil
}

func readCore(r io.Reader, maxKeys int, now weir.Micros) (c *core, err error) {
	err = format.Read(r, func(in *disk.Reader) {
		empty := core{}
		in.Raw(empty.seed[:])
		c = newCore(empty.seed, maxKeys)
		var keys int64
		last := make([]int, len(c.shards))
		for ; in.More(); keys++ {
			k, state, tail := readEntry(in)
			if in.Err == nil && state.Fresh > now {
				c.put(k, state, tail, now, int64(maxKeys), last)
			}
		}
		in.Must(in.Word() == keys)
		if in.Version >= 3 {
			c.readHolds(in, now)
		}
	})
	return c, err
}

func readEntry(in *disk.Reader) (id, weir.State, []int64) {
	k := id{uint64(in.Word()), uint64(in.Word())}
	in.Must(k.lo&1 == 1) // which every key has
	state := weir.State{Fresh: weir.Micros(in.Between(0, exact)), A: in.Between(0, exact), B: in.Between(0, exact)}
	n := in.Between(0, 2*weir.MaxLogUnits) // with debts
	in.Must(n&(n-1) == 0)
	var tail []int64 // grows by what is really there: a short file cannot ask for much memory
	for ; n > 0 && in.Err == nil; n-- {
		tail = append(tail, in.Word())
	}
	return k, state, tail
}

// put adds an entry as it was, through the same door as everyone. Entries come in the order of
// the table that was saved, so each search begins where the last one of its shard ended: a table
// that grows meanwhile has all of them at its beginning.
func (c *core) put(k id, state weir.State, tail []int64, now weir.Micros, maxKeys int64, last []int) {
	if !c.reserve(1, maxKeys) {
		c.makeRoom(now, 1, maxKeys)
	}
	at := k.lo >> c.shift
	sh := &c.shards[at]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.table.makeRoom()
	slot, found := sh.table.findAfter(last[at], id{k.hi, k.lo &^ deniedBit})
	if found {
		c.keys.Add(-1) // no snapshot has a key twice; of a forged one, the first counts
		return
	}
	sh.table.insertAt(slot, k)
	last[at] = slot
	sh.table.entries[slot].state = state
	sh.earliest.Store(min(sh.earliest.Load(), int64(state.Fresh)))
	if len(tail) > 0 {
		sh.needTailsLocked()
		b := sh.arena.takeBlock(len(tail))
		sh.table.tails[slot] = b
		copy(sh.arena.words(b), tail)
	}
}
