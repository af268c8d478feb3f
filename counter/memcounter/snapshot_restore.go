package memcounter

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc64"
	"io"

	"github.com/weirhq/weir"
)

// Restore fills an empty store from a snapshot. What has expired meanwhile does not come
// back. If the store has less room than that which wrote it, what was changed the longest
// time ago is left out, and so are the lowest members of lists. When the snapshot is torn,
// foreign or damaged, it returns an error that says so, and the store is left as it was,
// empty and usable.
func (s *Store) Restore(r io.Reader) error {
	s.snapshot.Lock()
	defer s.snapshot.Unlock()
	restored, err := s.readRoom(r)
	if err != nil {
		return fmt.Errorf("memcounter: the snapshot cannot be used: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.room.entries) > 0 {
		return errors.New("memcounter: the store has been used already; restore a snapshot before anything is counted")
	}
	s.room = *restored
	return nil
}

// readRoom reads a snapshot. However long it is, no more is kept than there is room for.
func (s *Store) readRoom(r io.Reader) (*room, error) {
	now := s.clock()
	restored := &room{most: s.room.most, entries: map[ident]*entry{}}
	in := &decoder{r: bufio.NewReaderSize(r, 1<<16), sum: crc64.New(crcTable)}
	var magic [len(snapshotMagic)]byte
	in.read(magic[:])
	if in.err != nil || string(magic[:]) != snapshotMagic {
		return nil, errors.New("it is not a snapshot of weir's counters")
	}
	if version := in.word(); in.err == nil && version != snapshotVersion {
		return nil, fmt.Errorf("it is of version %d, this weir reads version %d", version, snapshotVersion)
	}
	for in.more() {
		e := in.entry()
		if in.err == nil && restored.entries[e.id] != nil {
			in.err = errDamaged
		}
		if in.err == nil && now < e.expires {
			s.fit(e.body)
			restored.put(e)
		}
	}
	sum := in.sum.Sum64()
	checksum := uint64(in.word())
	switch {
	case errors.Is(in.err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("it ends in the middle: %w", in.err)
	case in.err != nil:
		return nil, in.err
	case checksum != sum:
		return nil, errors.New("it is damaged, the checksum does not fit")
	}
	if _, err := in.r.ReadByte(); err != io.EOF {
		return nil, errors.New("it is damaged, something follows its end")
	}
	return restored, nil
}

// fit drops the members that are too many for this store.
func (s *Store) fit(b body) {
	switch x := b.(type) {
	case *board:
		for i := range x.ring {
			if w := &x.ring[i]; len(w.table) > s.maxMembers {
				w.dropped += int64(len(w.table.trim(s.roomFor())))
			}
		}
	case *sliding:
		x.trim(s.maxMembers, s.roomFor())
	case *hot:
		if x.trim(s.maxMembers, s.roomFor()) {
			// Some that were hot may be gone. No list has this threshold, so that whoever
			// asks next looks at all of them.
			x.threshold, x.cool = 0, 0
		}
	}
}

// put adds an entry as the newest. Older ones go if there is no room.
func (r *room) put(e *entry) {
	r.entries[e.id] = e
	heap.Push(&r.byExpiry, e)
	r.link(e)
	r.weigh(e)
	for r.weight > r.most {
		r.remove(r.oldest)
	}
}

var errDamaged = errors.New("it is damaged, something in it makes no sense")

// decoder reads until the first error, which makes all further words 0.
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

func (d *decoder) word() int64 {
	var p [8]byte
	d.read(p[:])
	if d.err != nil {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(p[:]))
}

// between reads a word in a range, and else fails. After a failure it is least.
func (d *decoder) between(least, most int64) int64 {
	x := d.word()
	d.must(x >= least && x <= most)
	if d.err != nil {
		return least
	}
	return x
}

// more reads whether another follows.
func (d *decoder) more() bool { return d.between(0, 1) == 1 && d.err == nil }

// exact is the largest number that is exact in a script.
const exact = 1<<53 - 1

// count reads a number that is not negative.
func (d *decoder) count() int64 { return d.between(0, exact) }

// time reads an instant. When something expires may be far in the future.
func (d *decoder) time() weir.Micros { return weir.Micros(d.between(0, 1<<62)) }

func (d *decoder) text(least, most int64) string {
	p := make([]byte, d.between(least, most))
	d.read(p)
	if d.err != nil {
		return ""
	}
	return string(p)
}

// must fails unless something is as it has to be.
func (d *decoder) must(ok bool) {
	if d.err == nil && !ok {
		d.err = errDamaged
	}
}
