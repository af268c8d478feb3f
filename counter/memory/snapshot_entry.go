package memory

import (
	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/disk"
)

// Entries of a snapshot. The numbers of kinds and windows are part of the format.

// Bounds on what a body may have. They keep a file that is not what it seems from
// filling the memory; what a store writes is far below.
const (
	maxCells   = 2*counter.MaxHistory + 100
	maxMembers = 1 << 24 // of one table

	// roundingSlack is by how much sums that are reckoned with floating-point numbers may
	// be above the bound.
	roundingSlack = 4096
	maxSum        = int64(counter.MaxAmount) + roundingSlack

	exact = disk.MaxExact
)

// instant may be far in the future, when something expires.
func instant(c *disk.Codec, t *weir.Micros) { disk.Number(c, t, 0, 1<<62) }

func name(c *disk.Codec, s *string) { disk.Text(c, s, 1, counter.MaxNameLen) }

// numbers are of members, each of which is there once.
func numbers[N ~int64](c *disk.Codec, all map[string]N, least, most int64) {
	if !c.Reading() {
		for member, n := range all {
			c.More(true)
			name(c, &member)
			disk.Number(c, &n, least, most)
		}
		c.More(false)
		return
	}
	for c.More(false) {
		var member string
		var n N
		name(c, &member)
		disk.Number(c, &n, least, most)
		_, known := all[member]
		c.Must(!known && len(all) < maxMembers)
		all[member] = n
	}
}

func (e *entry) walk(c *disk.Codec) {
	id := &e.id
	disk.Number(c, &id.kind, 0, int64(kindDistribution))
	instant(c, &e.expires)
	switch id.kind {
	case kindCounter, kindDistinct, kindDistribution, kindBoard:
		disk.Number(c, &id.window, int64(counter.Ever), int64(counter.Year))
		disk.Text(c, &id.zone, 1, counter.MaxZoneLen)
		if id.kind != kindBoard {
			disk.Text(c, &id.group, 0, counter.MaxNameLen)
		}
		name(c, &id.name)
	case kindSequence:
		name(c, &id.name)
	default:
		disk.Number(c, &id.span, -1<<63, 1<<63-1)
		name(c, &id.name)
		span := counter.HotList{Window: id.span, Name: id.name, Threshold: 1}
		c.Must(span.Validate() == nil)
	}
	if c.Reading() {
		e.body = emptyBody(id)
	}
	e.body.walk(c, id)
}

// emptyBody returns what a snapshot is read into.
func emptyBody(id *ident) body {
	switch id.kind {
	case kindCounter:
		return &cells{}
	case kindDistinct:
		return &cells{members: &distinct{}}
	case kindDistribution:
		return &distributions{}
	case kindSequence:
		return &sequence{}
	case kindBoard:
		return &board{}
	case kindSliding:
		return &sliding{sum: table{}}
	}
	return &hot{sliding: sliding{sum: table{}}, since: map[string]weir.Micros{}}
}

func (c *cells) walk(in *disk.Codec, _ *ident) {
	c.windows.walk(in, maxCells, func(amount *counter.Amount) { disk.Number(in, amount, -maxSum, maxSum) })
	in.Must(len(c.windows) > 0)
	if c.members != nil {
		c.members.walk(in)
	}
}

func (d *distinct) walk(c *disk.Codec) {
	c.Raw(d.seed[:])
	for i := range d.sketches {
		s := &d.sketches[i]
		disk.Number(c, &s.index, -exact, exact)
		b := s.bytes()
		disk.Text(c, &b, 0, registers)
		if c.Reading() {
			c.Must(c.In.Err == nil && s.restore(b))
			// One that was never used has the number 0.
			c.Must(d.at(s.index) == s || s.index == 0 && len(b) == 0)
		}
	}
}

func (d *distributions) walk(c *disk.Codec, _ *ident) {
	d.windows.walk(c, 2*counter.MaxDistributions+1, func(x *counter.Distribution) {
		for _, n := range []*counter.Amount{&x.Sum, &x.Min, &x.Max} {
			disk.Number(c, n, 0, maxSum)
		}
		disk.List(c, &x.Buckets, func(j int, b *counter.Bucket) {
			disk.Number(c, &b.Number, 0, counter.MaxBuckets-1)
			disk.Number(c, &b.Count, 1, exact)
			c.Must(j == 0 || b.Number > x.Buckets[j-1].Number)
			if c.Reading() {
				x.Count += b.Count
			}
		})
		c.Must(x.Count > 0 && x.Count <= exact && x.Min <= x.Max)
	})
}

func (s *sequence) walk(c *disk.Codec, _ *ident) { disk.Count(c, &s.last) }

// walk is of members and their scores.
func (t table) walk(c *disk.Codec, least int64) {
	numbers(c, t, least, int64(counter.MaxScore))
	for _, score := range t {
		c.Must(score != 0)
	}
}

// walk leaves out windows that were never used.
func (b *board) walk(c *disk.Codec, _ *ident) {
	var used []boardWindow
	for _, w := range b.ring {
		if w.table != nil {
			used = append(used, w)
		}
	}
	disk.List(c, &used, func(_ int, w *boardWindow) {
		disk.Number(c, &w.index, -exact, exact)
		disk.Count(c, &w.dropped)
		if c.Reading() {
			w.table = table{}
		}
		w.table.walk(c, -int64(counter.MaxScore))
		if c.Reading() {
			c.Must(b.slot(w.index).table == nil)
			*b.slot(w.index) = *w
		}
	})
}

// walk has the steps, the oldest first. Their sum can be made of them.
func (s *sliding) walk(c *disk.Codec, id *ident) {
	if c.Reading() {
		s.width = counter.StepWidth(id.span)
	}
	disk.Number(c, &s.latest, 0, exact/int64(max(s.width, 1)))
	for step := s.latest - counter.Steps; step <= s.latest; step++ {
		disk.Count(c, &s.dropped[slot(step)])
		t := *s.part(step)
		if c.Reading() {
			t = table{}
		}
		t.walk(c, 1)
		if c.Reading() && len(t) > 0 {
			*s.part(step) = t
			for member, score := range t {
				c.Must(s.sum.addScore(member, score) <= int64(counter.MaxScore))
			}
		}
	}
}

func (h *hot) walk(c *disk.Codec, id *ident) {
	h.sliding.walk(c, id)
	disk.Number(c, &h.threshold, 0, int64(counter.MaxScore))
	disk.Number(c, &h.cool, 0, int64(counter.MaxScore))
	instant(c, &h.ends)
	disk.Count(c, &h.last)
	disk.Count(c, &h.lost)
	numbers(c, h.since, 0, exact)
	before := h.lost
	disk.List(c, &h.events, func(i int, e *counter.Event) {
		turned, at := 0, weir.MicrosOf(e.At)
		if e.Hot {
			turned = 1
		}
		disk.Count(c, &e.ID)
		name(c, &e.Item)
		disk.Number(c, &turned, 0, 1)
		disk.Count(c, &e.Hits)
		disk.Count(c, &at)
		if c.Reading() {
			e.Hot, e.At = turned == 1, at.Time()
			c.Must(e.ID > before && e.ID <= h.last && i < counter.MaxEvents)
			before = e.ID
		}
	})
}
