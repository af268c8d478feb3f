package memory

import (
	"cmp"
	"io"
	"maps"
	"slices"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/queue"
)

// A snapshot is:
//
//	for each queue: the word 1, name, last number, pace, dropped
//		for each item: the word 1 and its fields
//		the word 0
//		for each ID that is remembered: the word 1, the ID, until when
//		the word 0
//	the word 0
var format = disk.Format{Package: "memory", Magic: "weirqueu", Of: "queues", Version: 1}

// states are the words that stand for them in a snapshot. Their order is part of the format.
var states = []queue.State{queue.Ready, queue.Delayed, queue.Leased, queue.Dead}

// Snapshot writes all items to w, so that they survive a restart. It includes leases,
// backoffs and dead letters, and queues that are no longer declared but were in an
// earlier snapshot. It is consistent as of one instant, and does not block other calls
// while it writes.
func (s *Store) Snapshot(w io.Writer) error {
	copies := s.copyLines()
	return format.Write(w, func(w *disk.Writer) {
		out := &encoder{w}
		for _, c := range copies {
			out.Words(1)
			out.line(c)
		}
		out.Words(0)
	})
}

// lineCopy is a queue as of one instant. Payloads are shared, because they never change.
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

// encoder writes what queues are made of.
type encoder struct{ *disk.Writer }

func (e *encoder) pace(p queue.Pace) { e.Words(int64(p.Next), p.Part, p.Rate) }

func (e *encoder) line(c lineCopy) {
	e.Texts(c.name)
	e.Words(c.line.last)
	e.pace(c.line.pace)
	e.Words(c.line.dropped)
	for i := range c.items {
		e.Words(1)
		e.item(&c.items[i])
	}
	e.Words(0)
	for _, r := range c.done {
		e.Words(1)
		e.Texts(r.id)
		e.Words(int64(r.until))
	}
	e.Words(0)
}

func (e *encoder) item(i *item) {
	e.Words(i.number, int64(slices.Index(states, i.state)), int64(i.tries), int64(i.pushed), int64(i.due), int64(i.died))
	e.pace(i.slot)
	e.Texts(i.id, i.secret, i.reason)
	e.Words(int64(len(i.payload)))
	e.Raw(i.payload)
}
