package memory

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc64"
	"io"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/queue"
)

// Restore fills an empty store from a snapshot. All work comes back, also what is more than
// a capacity that was lowered since, and that of queues which are declared no more: it is
// kept for the next snapshot. When the snapshot is torn, foreign or damaged, it returns an
// error that says so, and the store is left as it was, empty and usable.
func (s *Store) Restore(r io.Reader) error {
	lines, err := readLines(r)
	if err != nil {
		return fmt.Errorf("memory: the snapshot cannot be used: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, l := range s.lines {
		if l.last != 0 {
			return fmt.Errorf("memory: the queue %s has been used already; restore a snapshot before the first push", name)
		}
	}
	for name, l := range lines {
		l.terms = s.terms[name]
		if old := s.lines[name]; old != nil {
			l.watchers = old.watchers
		}
		s.lines[name] = l
	}
	return nil
}

func readLines(r io.Reader) (map[string]*line, error) {
	in := &decoder{r: bufio.NewReaderSize(r, 1<<16), sum: crc64.New(crcTable)}
	var magic [len(snapshotMagic)]byte
	in.read(magic[:])
	if in.err != nil || string(magic[:]) != snapshotMagic {
		return nil, errors.New("it is not a snapshot of weir's queues")
	}
	if version := in.word(); in.err == nil && version != snapshotVersion {
		return nil, fmt.Errorf("it is of version %d, this weir reads version %d", version, snapshotVersion)
	}
	lines := map[string]*line{}
	for in.more() {
		name := in.text(queue.MaxNameLen)
		l := in.line()
		if in.err == nil && (name == "" || lines[name] != nil) {
			in.err = errDamaged
		}
		lines[name] = l
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
	return lines, nil
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

// more reads whether another follows.
func (d *decoder) more() bool {
	more := d.within(1)
	return d.err == nil && more == 1
}

// within reads a word from 0 to most.
func (d *decoder) within(most int64) int64 {
	x := d.word()
	if d.err == nil && (x < 0 || x > most) {
		d.err = errDamaged
	}
	if d.err != nil {
		return 0
	}
	return x
}

// exact reads a word that a script could count with, as all are.
func (d *decoder) exact() int64 { return d.within(1<<53 - 1) }

func (d *decoder) text(most int64) string { return string(d.payload(most)) }

func (d *decoder) payload(most int64) []byte {
	p := make([]byte, d.within(most))
	d.read(p)
	return p
}

func (d *decoder) pace() queue.Pace {
	p := queue.Pace{Next: weir.Micros(d.exact()), Part: d.exact(), Rate: d.exact()}
	if p.Part > 0 && p.Part >= p.Rate && d.err == nil {
		d.err = errDamaged
	}
	return p
}

func (d *decoder) line() *line {
	l := newLine(nil)
	l.last, l.pace, l.dropped = d.within(1<<52), d.pace(), d.exact()
	before := int64(0)
	for d.more() {
		i := d.item()
		if d.err == nil && (i.number <= before || i.number > l.last || i.id != "" && l.ids[i.id] != nil) {
			d.err = errDamaged
		}
		if d.err != nil {
			return l
		}
		before = i.number
		l.put(i)
	}
	for d.more() {
		id, until := d.text(queue.MaxIDLen), weir.Micros(d.exact())
		if d.err == nil && (id == "" || l.done.byID[id] != nil) {
			d.err = errDamaged
		}
		if d.err == nil {
			l.done.add(id, until, queue.MaxCapacity)
		}
	}
	return l
}

// put adds an item where it was.
func (l *line) put(i *item) {
	l.items[i.number] = i
	if i.id != "" {
		l.ids[i.id] = i
	}
	if i.state == queue.Dead {
		l.dead = append(l.dead, i) // the numbers rise
		return
	}
	heap.Push(l.pileOf(i.state), i)
}

func (d *decoder) item() *item {
	i := &item{
		number: d.exact(), state: states[d.within(int64(len(states)-1))], tries: int(d.within(queue.MaxTries + 1)),
		pushed: weir.Micros(d.exact()), due: weir.Micros(d.exact()), died: weir.Micros(d.exact()), slot: d.pace(),
		id: d.text(queue.MaxIDLen), secret: d.text(32), reason: d.text(queue.MaxReasonLen), payload: d.payload(queue.MaxPayload),
	}
	waits := slices.Contains([]queue.State{queue.Delayed, queue.Leased}, i.state)
	if d.err == nil && (waits != (i.due > 0) || i.state == queue.Leased && (i.secret == "" || i.tries == 0)) {
		d.err = errDamaged
	}
	return i
}
