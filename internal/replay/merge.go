package replay

import (
	"container/heap"
	"context"

	"github.com/weirhq/weir/internal/replay/accesslog"
)

// merger takes entries from several feeds, the earliest first. Within a feed they
// stay as they are.
type merger struct {
	ctx   context.Context
	heads headHeap
	begun func(*feed, *batch) // told of every batch once
	live  int                 // batches that are in use
}

// head is where a feed is.
type head struct {
	feed  *feed
	batch *batch
	next  int // of its entries
}

func (h *head) at() int64 { return h.batch.entries[h.next].At }

// headHeap has the earliest on top.
type headHeap []head

func (h headHeap) Len() int           { return len(h) }
func (h headHeap) Less(i, j int) bool { return h[i].at() < h[j].at() }
func (h headHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *headHeap) Push(x any)        { *h = append(*h, x.(head)) }
func (h *headHeap) Pop() any          { return cutLast((*[]head)(h)) }

// held is an entry, with what it is part of.
type held struct {
	entry *accesslog.Entry
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
	heap.Init(&m.heads)
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

// next returns the earliest entry of all feeds.
func (m *merger) next() (held, bool) {
	if len(m.heads) == 0 {
		return held{}, false
	}
	h := &m.heads[0]
	got := held{&h.batch.entries[h.next], h.batch, h.feed}
	h.next++
	if h.next == len(h.batch.entries) && !m.advance(h) {
		heap.Pop(&m.heads)
	} else {
		heap.Fix(&m.heads, 0)
	}
	return got, true
}

// done is told when an entry is not in use any more.
func (m *merger) done(h held) {
	h.batch.live--
	if h.batch.live == 0 {
		m.live--
		h.feed.giveBack(h.batch)
	}
}
