package replay

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/order"
)

// Bounds of what is read at once.
const (
	maxLine  = 64 << 10 // bytes; a longer line is left out
	chunk    = 2 * maxLine
	maxShown = 5 // lines that were not understood, and are shown
)

// batch is a piece of a log, and the entries in it, whose strings are part of it.
type batch struct {
	data    []byte
	entries []Entry
	live    int // entries that are still in use

	lines    int64
	badLines int64
	bad      []BadLine // the first of them
	err      error     // why nothing comes after it
}

// BadLine is a line that was not understood.
type BadLine struct {
	Log    string `json:"log"`
	Line   int64  `json:"line"`
	Reason string `json:"reason"`
	Text   string `json:"text"` // the beginning of it, quoted
}

// feed reads a log in a goroutine of its own, and takes it apart.
type feed struct {
	log    *Log
	parser *Parser
	full   chan *batch // to be checked
	free   chan *batch // to be filled again

	rest     []byte // the beginning of a line whose end was not read yet
	skipping bool   // the line is too long: wait for its end
	line     int64
	shown    int
}

// run reads until the end, or until the context ends.
func (f *feed) run(ctx context.Context) {
	defer close(f.full)
	for {
		b := f.empty()
		b.err = f.fill(b)
		select {
		case f.full <- b:
		case <-ctx.Done():
			return
		}
		if b.err != nil {
			return
		}
	}
}

// empty returns a batch to fill: one that was in use before, if one has come back.
func (f *feed) empty() *batch {
	select {
	case b := <-f.free:
		b.entries, b.bad = b.entries[:0], b.bad[:0]
		b.live, b.lines, b.badLines, b.err = 0, 0, 0, nil
		return b
	default:
		return &batch{data: make([]byte, chunk)}
	}
}

// giveBack returns a batch of which nothing is in use any more.
func (f *feed) giveBack(b *batch) {
	select {
	case f.free <- b:
	default: // there are enough of them
	}
}

// fill reads the next piece, and takes its lines apart.
func (f *feed) fill(b *batch) error {
	n := copy(b.data, f.rest)
	f.rest = f.rest[:0]
	more, err := readAll(f.log.from, b.data[n:])
	piece := b.data[:n+more]
	for {
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			break
		}
		f.parseLine(b, piece[:end])
		piece = piece[end+1:]
	}
	switch {
	case err != nil:
		if len(piece) > 0 || f.skipping {
			f.parseLine(b, piece)
		}
	case f.skipping || len(piece) > maxLine:
		f.skipping = true
	default:
		f.rest = append(f.rest, piece...)
	}
	return err
}

// readAll reads until there is no more room. Unlike io.ReadFull it tells the end of
// a log from a compressed one that is cut off.
func readAll(r io.Reader, room []byte) (n int, err error) {
	for idle := 0; n < len(room) && err == nil; {
		var more int
		more, err = r.Read(room[n:])
		n += more
		if idle++; more > 0 {
			idle = 0
		}
		if idle > 100 && err == nil {
			err = io.ErrNoProgress
		}
	}
	return n, err
}

// parseLine takes one line apart.
func (f *feed) parseLine(b *batch, line []byte) {
	f.line++
	b.lines++
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if f.skipping || len(line) > maxLine {
		f.skipping = false
		f.wrong(b, fmt.Sprintf("longer than %d bytes", maxLine), "")
		return
	}
	if len(line) == 0 {
		return
	}
	if len(b.entries) == cap(b.entries) {
		b.entries = append(b.entries, Entry{})
	} else {
		b.entries = b.entries[:len(b.entries)+1] // with the room for extras that it had
	}
	last := len(b.entries) - 1
	if err := f.parser.Parse(line, &b.entries[last]); err != nil {
		b.entries = b.entries[:last]
		f.wrong(b, err.Error(), string(line[:min(len(line), 60)]))
	}
}

// wrong counts a line that was not understood.
func (f *feed) wrong(b *batch, reason, text string) {
	b.badLines++
	if f.shown < maxShown {
		f.shown++
		text = strings.ToValidUTF8(text, "?")
		b.bad = append(b.bad, BadLine{f.log.name, f.line, reason, strconv.QuoteToGraphic(text)})
	}
}

// merger takes entries from several feeds, the earliest first. Within a feed they
// stay as they are.
type merger struct {
	ctx   context.Context
	heads []head
	begun func(*feed, *batch) // told of every batch once
	live  int                 // batches that are in use
}

// head is where a feed is.
type head struct {
	feed  *feed
	batch *batch
	next  int // of its entries
}

// held is an entry, with what it is part of.
type held struct {
	entry *Entry
	batch *batch
	feed  *feed
}

// start waits for the beginning of every feed.
func (m *merger) start(feeds []*feed) {
	for _, f := range feeds {
		h := head{feed: f}
		if m.advance(&h) {
			m.heads = append(m.heads, h)
		}
	}
}

// advance takes the next batch of a feed that has entries, if there is one.
func (m *merger) advance(h *head) bool {
	for {
		var b *batch
		select {
		case b = <-h.feed.full:
		case <-m.ctx.Done():
		}
		if b == nil {
			return false
		}
		m.begun(h.feed, b)
		if len(b.entries) == 0 {
			h.feed.giveBack(b)
			continue
		}
		b.live = len(b.entries)
		m.live++
		h.batch, h.next = b, 0
		return true
	}
}

// next returns the earliest entry of all feeds, of which there are few.
func (m *merger) next() (held, bool) {
	if len(m.heads) == 0 {
		return held{}, false
	}
	first, earliest := 0, m.heads[0].entry()
	for i := 1; i < len(m.heads); i++ {
		if e := m.heads[i].entry(); e.At < earliest.At {
			first, earliest = i, e
		}
	}
	h := &m.heads[first]
	got := held{earliest, h.batch, h.feed}
	h.next++
	if h.next == len(h.batch.entries) && !m.advance(h) {
		m.heads = slices.Delete(m.heads, first, first+1)
	}
	return got, true
}

func (h *head) entry() *Entry { return &h.batch.entries[h.next] }

// done is told when an entry is not in use any more.
func (m *merger) done(h held) {
	h.batch.live--
	if h.batch.live == 0 {
		m.live--
		h.feed.giveBack(h.batch)
	}
}

// Bounds on what is held back until it is clear that nothing earlier comes.
const (
	maxDelayed = 1 << 16 // entries
	maxBatches = 256     // pieces of logs that they are part of
)

// sorter puts entries into the order of time that are out of it by no more than a
// bound. Servers write a line when a request ends, and many of them the time at
// which it began; so some disorder is usual.
type sorter struct {
	bound  int64
	newest int64

	// Most entries come in order. They are a queue; the others a heap.
	queue      []held
	first      int
	stragglers order.Heap[*straggler]

	reordered int64 // how many were put back into order
}

type straggler struct {
	held
	came  int64 // of two at the same time, the first comes first
	place int32 // in the heap
}

func (s *straggler) Before(other *straggler) bool {
	return cmp.Or(cmp.Compare(s.entry.At, other.entry.At), cmp.Compare(s.came, other.came)) < 0
}

func (s *straggler) Index() *int32 { return &s.place }

func (o *sorter) len() int { return len(o.queue) - o.first + len(o.stragglers) }

func (o *sorter) push(h held) {
	at := h.entry.At
	o.newest = max(o.newest, at)
	if o.first == len(o.queue) || at >= o.queue[len(o.queue)-1].entry.At {
		o.shift()
		o.queue = append(o.queue, h)
		return
	}
	o.reordered++
	o.stragglers.Push(&straggler{held: h, came: o.reordered})
}

// shift makes room at the end of the queue when half of it has gone.
func (o *sorter) shift() {
	if o.first > 0 && 2*o.first >= len(o.queue) && len(o.queue) == cap(o.queue) {
		n := copy(o.queue, o.queue[o.first:])
		clear(o.queue[n:])
		o.queue, o.first = o.queue[:n], 0
	}
}

// pop returns the earliest entry if nothing earlier is to be expected, or at once
// if that is forced.
func (o *sorter) pop(forced bool) (held, bool) {
	var h held
	late := len(o.stragglers) > 0 && (o.first == len(o.queue) || o.stragglers[0].entry.At < o.queue[o.first].entry.At)
	switch {
	case late:
		h = o.stragglers[0].held
	case o.first < len(o.queue):
		h = o.queue[o.first]
	default:
		return held{}, false
	}
	if !forced && h.entry.At > o.newest-o.bound {
		return held{}, false
	}
	if late {
		o.stragglers.Remove(o.stragglers[0])
		return h, true
	}
	o.queue[o.first] = held{}
	o.first++
	if o.first == len(o.queue) {
		o.queue, o.first = o.queue[:0], 0
	}
	return h, true
}
