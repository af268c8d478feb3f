package replay

import (
	"context"

	"github.com/weirhq/weir/internal/replay/accesslog"
)

// merger takes entries from several feeds, the earliest first. Within a feed they
// stay as they are.
type merger struct {
	ctx   context.Context
	heads []head              // a heap, the earliest on top
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
	for i := len(m.heads)/2 - 1; i >= 0; i-- {
		m.sink(i)
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

// next returns the earliest entry of all feeds.
func (m *merger) next() (held, bool) {
	if len(m.heads) == 0 {
		return held{}, false
	}
	h := &m.heads[0]
	got := held{&h.batch.entries[h.next], h.batch, h.feed}
	h.next++
	if h.next == len(h.batch.entries) && !m.advance(h) {
		last := len(m.heads) - 1
		m.heads[0] = m.heads[last]
		m.heads = m.heads[:last]
	}
	m.sink(0)
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

// sink restores the heap from a place on.
func (m *merger) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.heads); child++ {
			if m.heads[child].at() < m.heads[least].at() {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heads[i], m.heads[least] = m.heads[least], m.heads[i]
		i = least
	}
}
