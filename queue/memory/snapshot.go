package memory

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/weirhq/weir"
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
	return format.Write(w, func(out *disk.Writer) {
		c := &disk.Codec{To: out}
		disk.Each(c, copies, func(l *lineCopy) { l.walk(c) })
	})
}

// Restore fills an empty store from a snapshot. It restores all items, even if a
// capacity was lowered since, and keeps the items of queues that are no longer declared
// for the next snapshot. If the snapshot is truncated, damaged or not a snapshot,
// Restore returns an error that says so, and the store stays empty and usable.
func (s *Store) Restore(r io.Reader) error {
	lines := map[string]*line{}
	err := format.Read(r, func(r *disk.Reader) {
		c := &disk.Codec{In: r}
		disk.Each(c, nil, func(l *lineCopy) {
			l.read = newLine(nil)
			l.walk(c)
			c.Must(lines[l.name] == nil)
			lines[l.name] = l.read
		})
	})
	if err != nil {
		return err
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

// lineCopy is a queue as of one instant. Payloads are shared, because they never change.
type lineCopy struct {
	name  string
	line  line // without what it points to
	items []item
	done  []remembered

	read *line // gets what is read, instead
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

func (l *lineCopy) walk(c *disk.Codec) {
	to := &l.line
	if c.Reading() {
		to = l.read
	}
	disk.Text(c, &l.name, 1, queue.MaxNameLen)
	disk.Number(c, &to.last, 0, 1<<52)
	walkPace(c, &to.pace)
	disk.Count(c, &to.dropped)
	before := int64(0)
	disk.Each(c, l.items, func(i *item) {
		i.walk(c)
		c.Must(i.number > before && i.number <= to.last && (i.id == "" || to.ids[i.id] == nil))
		if before = i.number; c.OK() {
			to.put(i)
		}
	})
	disk.Each(c, l.done, func(r *remembered) {
		disk.Text(c, &r.id, 1, queue.MaxIDLen)
		disk.Count(c, &r.until)
		c.Must(to.done.byID[r.id] == nil)
		if c.OK() {
			to.done.remember(r.id, r.until, queue.MaxCapacity)
		}
	})
}

func walkPace(c *disk.Codec, p *queue.Pace) {
	disk.Count(c, &p.Next)
	disk.Count(c, &p.Part)
	disk.Count(c, &p.Rate)
	c.Must(p.Part == 0 || p.Part < p.Rate)
}

func (i *item) walk(c *disk.Codec) {
	state := slices.Index(states, i.state)
	disk.Count(c, &i.number)
	disk.Number(c, &state, 0, int64(len(states)-1))
	disk.Number(c, &i.tries, 0, queue.MaxTries+1)
	for _, at := range []*weir.Micros{&i.pushed, &i.due, &i.died} {
		disk.Count(c, at)
	}
	walkPace(c, &i.slot)
	disk.Text(c, &i.id, 0, queue.MaxIDLen)
	disk.Text(c, &i.secret, 0, 32)
	disk.Text(c, &i.reason, 0, queue.MaxReasonLen)
	disk.Text(c, &i.payload, 0, queue.MaxPayload)
	i.state = states[state]
	waits := i.state == queue.Delayed || i.state == queue.Leased
	c.Must(waits == (i.due > 0) && (i.state != queue.Leased || i.secret != "" && i.tries > 0))
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
	l.pileOf(i.state).Push(i)
}
