package memory

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"io"

	"github.com/weirhq/weir"
)

// A snapshot is, all numbers little-endian:
//
//	magic, version, seed
//	for each key: the word 1, id, state, length of the tail, its words
//	the word 0, the number of keys
//	CRC-64 of all that
//
// The seed makes the ids meaningful to the next process. The checksum is
// against accidents, not against whoever may write the file.
const (
	snapshotMagic   = "weirsnap"
	snapshotVersion = 2 // in 1, a log had a word for each unit
)

var crcTable = crc64.MakeTable(crc64.ECMA)

// Snapshot writes what is remembered to w, so that quotas survive a restart.
// The store stays in use meanwhile; each shard is written as of one instant.
func (s *Store) Snapshot(w io.Writer) error {
	c, now := s.core.Load(), s.now()
	sum := crc64.New(crcTable)
	buffered := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	out := &encoder{w: buffered}
	out.bytes([]byte(snapshotMagic))
	out.word(snapshotVersion)
	out.bytes(c.seed[:])
	var keys uint64
	var copied []word
	for i := range c.shards {
		sh := &c.shards[i]
		var n uint64
		copied, n = sh.copyEntries(copied[:0], now)
		keys += n
		for _, x := range copied {
			out.word(x)
		}
	}
	out.word(0)
	out.word(keys)
	if out.err == nil {
		out.err = buffered.Flush()
	}
	if out.err == nil {
		// Not through the buffer, which would sum the sum.
		_, out.err = w.Write(binary.LittleEndian.AppendUint64(nil, sum.Sum64()))
	}
	if out.err != nil {
		return fmt.Errorf("memory: writing the snapshot: %w", out.err)
	}
	return nil
}

type word = uint64

// copyEntries appends the keys that still count. It holds the lock for a copy
// in memory, never for the writer.
func (sh *shard) copyEntries(to []word, now weir.Micros) ([]word, uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var keys uint64
	for slot := range sh.table.entries {
		e := &sh.table.entries[slot]
		if e.free() || e.state.Fresh <= now {
			continue
		}
		keys++
		tail := sh.tail(slot)
		to = append(to, 1, e.id.hi, e.id.lo, word(e.state.Fresh), word(e.state.A), word(e.state.B), word(len(tail)))
		for _, x := range tail {
			to = append(to, word(x))
		}
	}
	return to, keys
}

// encoder writes words until the first error.
type encoder struct {
	w   *bufio.Writer
	err error
}

func (e *encoder) bytes(p []byte) {
	if e.err == nil {
		_, e.err = e.w.Write(p)
	}
}

func (e *encoder) word(x word) {
	var p [8]byte
	binary.LittleEndian.PutUint64(p[:], x)
	e.bytes(p[:])
}
