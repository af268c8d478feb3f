package replay

import (
	"cmp"
	"container/heap"
	"context"
	"slices"

	"github.com/weirhq/weir/internal/replay/accesslog"
)

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
	entry *accesslog.Entry
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

func (h *head) entry() *accesslog.Entry { return &h.batch.entries[h.next] }

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
