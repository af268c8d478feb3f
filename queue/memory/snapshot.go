package memory

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"io"
	"maps"
	"slices"

	"github.com/weirhq/weir/internal/snapshot"
	"github.com/weirhq/weir/queue"
)

// A snapshot is, all numbers being little-endian words and all texts having their length
// before them:
//
//	magic, version
//	for each queue: the word 1, name, last number, pace, dropped
//		for each item: the word 1 and its fields
//		the word 0
//		for each ID that is remembered: the word 1, the ID, until when
//		the word 0
//	the word 0
//	CRC-64 of all that
//
// The checksum is against accidents, not against whoever may write the file.
const (
	snapshotMagic   = "weirqueu"
	snapshotVersion = 1
)

// states are the words that stand for them in a snapshot. Their order is part of the format.
var states = []queue.State{queue.Ready, queue.Delayed, queue.Leased, queue.Dead}

// Snapshot writes all work to w, so that it survives a restart: leases, backoffs and dead
// letters, too, and queues that nobody has declared but an earlier snapshot had. It is as of
// one instant, and holds nobody up while it writes.
func (s *Store) Snapshot(w io.Writer) error {
	copies := s.copyLines()
	sum := crc64.New(snapshot.Table)
	buffered := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	out := &encoder{w: buffered}
	out.bytes([]byte(snapshotMagic))
	out.word(snapshotVersion)
	for _, c := range copies {
		out.word(1)
		out.line(c)
	}
	out.word(0)
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

// lineCopy is a queue as of one instant. Payloads are shared: nobody changes them.
type lineCopy struct {
	name  string
	line  line // without what it points to
	items []item
	done  []remembered
}

func (s *Store) copyLines() []lineCopy {
	s.mu.Lock()
	defer s.mu.Unlock()
	var copies []lineCopy
	for _, name := range slices.Sorted(maps.Keys(s.lines)) {
		l := s.lines[name]
		c := lineCopy{name: name, line: line{last: l.last, pace: l.pace, dropped: l.dropped}}
		for _, i := range l.items {
			c.items = append(c.items, *i)
		}
		for _, r := range l.done.first {
			c.done = append(c.done, *r)
		}
		slices.SortFunc(c.items, func(a, b item) int { return cmp.Compare(a.number, b.number) })
		slices.SortFunc(c.done, func(a, b remembered) int { return cmp.Compare(a.id, b.id) })
		copies = append(copies, c)
	}
	return copies
}

// encoder writes until the first error.
type encoder struct {
	w   *bufio.Writer
	err error
}

func (e *encoder) bytes(p []byte) {
	if e.err == nil {
		_, e.err = e.w.Write(p)
	}
}

func (e *encoder) word(x int64) {
	var p [8]byte
	binary.LittleEndian.PutUint64(p[:], uint64(x))
	e.bytes(p[:])
}

func (e *encoder) text(s string) {
	e.word(int64(len(s)))
	e.bytes([]byte(s))
}

func (e *encoder) pace(p queue.Pace) {
	e.word(int64(p.Next))
	e.word(p.Part)
	e.word(p.Rate)
}

func (e *encoder) line(c lineCopy) {
	e.text(c.name)
	e.word(c.line.last)
	e.pace(c.line.pace)
	e.word(c.line.dropped)
	for i := range c.items {
		e.word(1)
		e.item(&c.items[i])
	}
	e.word(0)
	for _, r := range c.done {
		e.word(1)
		e.text(r.id)
		e.word(int64(r.until))
	}
	e.word(0)
}

func (e *encoder) item(i *item) {
	e.word(i.number)
	e.word(int64(slices.Index(states, i.state)))
	e.word(int64(i.tries))
	e.word(int64(i.pushed))
	e.word(int64(i.due))
	e.word(int64(i.died))
	e.pace(i.slot)
	e.text(i.id)
	e.text(i.secret)
	e.text(i.reason)
	e.word(int64(len(i.payload)))
	e.bytes(i.payload)
}
