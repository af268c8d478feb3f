package replay

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
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

	rest     []byte // the beginning of a line whose end was not read yet
	skipping bool   // the line is too long: wait for its end
	line     int64
	shown    int
	usual    int // entries of a batch
}

// run reads until the end, or until the context ends.
func (f *feed) run(ctx context.Context) {
	defer close(f.full)
	for {
		b := &batch{data: make([]byte, chunk), entries: make([]Entry, 0, f.usual)}
		b.err = f.fill(b)
		f.usual = len(b.entries)
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
		f.one(b, piece[:end])
		piece = piece[end+1:]
	}
	switch {
	case err != nil:
		if len(piece) > 0 || f.skipping {
			f.one(b, piece)
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

// one takes one line apart.
func (f *feed) one(b *batch, line []byte) {
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
	b.entries = append(b.entries, Entry{})
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
		if len(b.entries) > 0 {
			b.live = len(b.entries)
			m.live++
			h.batch, h.next = b, 0
			return true
		}
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
	got := held{earliest, h.batch}
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
	}
}

// Bounds on what is held back until it is clear that nothing earlier comes.
const (
	maxDelayed = 1 << 16 // entries
	maxBatches = 256     // pieces of logs that they are part of
)

// order puts entries into the order of time that are out of it by no more than a
// bound. Servers write a line when a request ends, and many of them the time at
// which it began; so some disorder is usual.
type order struct {
	bound     int64
	newest    int64
	waiting   waitingHeap
	came      uint64
	reordered int64 // how many were put back into order
}

// waiting is an entry before which another may still come.
type waiting struct {
	held
	came uint64 // of two at the same time, the first comes first
}

// waitingHeap has the earliest on top.
type waitingHeap []waiting

func (w waitingHeap) Len() int      { return len(w) }
func (w waitingHeap) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *waitingHeap) Push(x any)   { *w = append(*w, x.(waiting)) }
func (w *waitingHeap) Pop() any     { return cutLast((*[]waiting)(w)) }

func (w waitingHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(w[i].entry.At, w[j].entry.At), cmp.Compare(w[i].came, w[j].came)) < 0
}

// cutLast takes the last item off a list, and keeps nothing of it in its place.
func cutLast[T any](list *[]T) T {
	last := len(*list) - 1
	item := (*list)[last]
	clear((*list)[last:])
	*list = (*list)[:last]
	return item
}

func (o *order) push(h held) {
	if len(o.waiting) > 0 && h.entry.At < o.newest {
		o.reordered++
	}
	o.newest = max(o.newest, h.entry.At)
	o.came++
	heap.Push(&o.waiting, waiting{h, o.came})
}

// pop returns the earliest entry if nothing earlier is to be expected, or at once
// if that is forced.
func (o *order) pop(forced bool) (held, bool) {
	if len(o.waiting) == 0 || !forced && o.waiting[0].entry.At > o.newest-o.bound {
		return held{}, false
	}
	return heap.Pop(&o.waiting).(waiting).held, true
}
