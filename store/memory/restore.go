package memory

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc64"
	"io"

	"github.com/weirhq/weir"
)

// maxExact bounds every number of a state, as the arithmetic does.
const maxExact = 1 << 53

func exact(x int64) bool { return 0 <= x && x < maxExact }

// Restore fills an empty store from a snapshot; keys that have recovered since
// stay away. When the snapshot is torn, foreign or damaged, it returns an error
// that says so and the store is left as it was, empty and usable.
func (s *Store) Restore(r io.Reader) error {
	old := s.core.Load()
	if n := old.keys.Load(); n != 0 {
		return fmt.Errorf("memory: the store has %d keys already; restore a snapshot before the first request", n)
	}
	c, err := readCore(r, int(s.maxKeys), s.now())
	if err != nil {
		return fmt.Errorf("memory: the snapshot cannot be used: %w", err)
	}
	if old.keys.Load() != 0 || !s.core.CompareAndSwap(old, c) {
		return errors.New("memory: the store was used while it was being restored; restore a snapshot before the first request")
	}
	return nil
}

var errOutOfRange = errors.New("it is damaged, a number is out of range")

func readCore(r io.Reader, maxKeys int, now weir.Micros) (*core, error) {
	in := &decoder{r: bufio.NewReaderSize(r, 1<<16), sum: crc64.New(crcTable)}
	var magic [len(snapshotMagic)]byte
	in.read(magic[:])
	if in.err != nil || string(magic[:]) != snapshotMagic {
		return nil, errors.New("it is not a snapshot of weir's memory store")
	}
	if version := in.word(); in.err == nil && version != snapshotVersion {
		return nil, fmt.Errorf("it is of version %d, this weir reads version %d", version, snapshotVersion)
	}
	empty := core{}
	in.read(empty.seed[:])
	c := newCore(empty.seed, maxKeys)
	var keys word
	for in.word() == 1 {
		keys++
		if err := in.entry(c, now, int64(maxKeys)); err != nil {
			return nil, err
		}
	}
	count := in.word()
	sum := in.sum.Sum64()
	switch checksum := in.word(); {
	case in.err != nil:
		return nil, fmt.Errorf("it ends in the middle: %w", in.err)
	case count != keys || checksum != sum:
		return nil, errors.New("it is damaged, the checksum does not fit")
	}
	if _, err := in.r.ReadByte(); err != io.EOF {
		return nil, errors.New("it is damaged, something follows its end")
	}
	return c, nil
}

// decoder reads words until the first error, which makes all further ones 0.
type decoder struct {
	r   *bufio.Reader
	sum hash.Hash64
	err error
}

func (d *decoder) read(p []byte) {
	if d.err != nil {
		return
	}
	if _, d.err = io.ReadFull(d.r, p); d.err == io.EOF {
		d.err = io.ErrUnexpectedEOF
	}
	d.sum.Write(p)
}

func (d *decoder) word() word {
	var p [8]byte
	d.read(p[:])
	if d.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(p[:])
}

// entry reads one key into the core.
func (d *decoder) entry(c *core, now weir.Micros, maxKeys int64) error {
	k := id{d.word(), d.word()}
	state := weir.State{Fresh: weir.Micros(d.word()), A: int64(d.word()), B: int64(d.word())}
	tail, err := d.tail()
	if err != nil {
		return err
	}
	if d.err != nil {
		return fmt.Errorf("it ends in the middle: %w", d.err)
	}
	if !exact(int64(state.Fresh)) || !exact(state.A) || !exact(state.B) {
		return errOutOfRange
	}
	if k.lo&1 == 0 {
		return errors.New("it is damaged, a key is missing")
	}
	if state.Fresh > now {
		c.put(k, state, tail, now, maxKeys)
	}
	return nil
}

// tail reads as many words as are announced and really there, so that a short
// file cannot ask for much memory.
func (d *decoder) tail() ([]int64, error) {
	n := d.word()
	if n > weir.MaxLogUnits || n&(n-1) != 0 {
		return nil, errors.New("it is damaged, a tail has an impossible length")
	}
	var tail []int64
	for i := word(0); i < n && d.err == nil; i++ {
		tail = append(tail, int64(d.word()))
	}
	return tail, nil
}

// put adds an entry as it was, through the same door as everyone.
func (c *core) put(k id, state weir.State, tail []int64, now weir.Micros, maxKeys int64) {
	if !c.reserve(1, maxKeys) {
		c.makeRoom(now, 1, maxKeys)
	}
	sh := &c.shards[k.lo>>c.shift]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if _, found := sh.table.find(id{k.hi, k.lo &^ refusedBit}); found {
		c.keys.Add(-1) // no snapshot has a key twice; of a forged one, the first counts
		return
	}
	slot := sh.table.insert(k)
	sh.table.entries[slot].state = state
	sh.earliest.Store(min(sh.earliest.Load(), int64(state.Fresh)))
	if len(tail) > 0 {
		if sh.table.tails == nil {
			sh.table.tails = make([]block, len(sh.table.entries))
		}
		b := sh.arena.take(len(tail))
		sh.table.tails[slot] = b
		copy(sh.arena.words(b), tail)
	}
}
