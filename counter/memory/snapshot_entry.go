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

	// exact is the largest number that is exact in a script.
	exact = 1<<53 - 1
)

// codec walks over entries, and writes or reads what it meets, so that the format is said once.
type codec struct {
	in  *disk.Reader // nil while an entry is written
	out []byte       // what was written
}

func (c *codec) reading() bool { return c.in != nil }

// must fails unless what was read is as it has to be.
func (c *codec) must(ok bool) {
	if c.reading() {
		c.in.Must(ok)
	}
}

func number[N ~int | ~int64 | ~uint8](c *codec, n *N, least, most int64) {
	if c.reading() {
		*n = N(c.in.Between(least, most))
	} else {
		c.out = disk.AppendWords(c.out, int64(*n))
	}
}

// count is of a number that is not negative.
func count[N ~int64](c *codec, n *N) { number(c, n, 0, exact) }

// time is of an instant. When something expires may be far in the future.
func (c *codec) time(t *weir.Micros) { number(c, t, 0, 1<<62) }

func (c *codec) text(s *string, least, most int64) {
	if c.reading() {
		*s = c.in.Text(least, most)
	} else {
		c.out = disk.AppendTexts(c.out, *s)
	}
}

func (c *codec) name(s *string) { c.text(s, 1, counter.MaxNameLen) }

// more is of whether another element follows.
func (c *codec) more(another bool) bool {
	n := 0
	if another {
		n = 1
	}
	number(c, &n, 0, 1)
	return n == 1 && (!c.reading() || c.in.Err == nil)
}

func list[T any](c *codec, all *[]T, one func(i int, x *T)) {
	for i := 0; c.more(i < len(*all)); i++ {
		if c.reading() {
			*all = append(*all, *new(T))
		}
		one(i, &(*all)[i])
	}
}

// numbers are of members, each of which is there once.
func numbers[N ~int64](c *codec, all map[string]N, least, most int64) {
	if !c.reading() {
		for member, n := range all {
			c.more(true)
			c.name(&member)
			number(c, &n, least, most)
		}
		c.more(false)
		return
	}
	for c.more(false) {
		var member string
		var n N
		c.name(&member)
		number(c, &n, least, most)
		_, known := all[member]
		c.must(!known && len(all) < maxMembers)
		all[member] = n
	}
}

func (c *codec) entry(e *entry) {
	id := &e.id
	number(c, &id.kind, 0, int64(kindDistribution))
	c.time(&e.expires)
	switch id.kind {
	case kindCounter, kindDistinct, kindDistribution, kindBoard:
		number(c, &id.window, int64(counter.Ever), int64(counter.Year))
		c.text(&id.zone, 1, counter.MaxZoneLen)
		if id.kind != kindBoard {
			c.text(&id.group, 0, counter.MaxNameLen)
		}
		c.name(&id.name)
	case kindSequence:
		c.name(&id.name)
	default:
		number(c, &id.span, -1<<63, 1<<63-1)
		c.name(&id.name)
		span := counter.HotList{Window: id.span, Name: id.name, Threshold: 1}
		c.must(span.Validate() == nil)
	}
	if c.reading() {
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

func (c *cells) walk(in *codec, _ *ident) {
	list(in, &c.cells, func(i int, x *cell) {
		number(in, &x.index, -exact, exact)
		number(in, &x.amount, -maxSum, maxSum)
		in.must(i < maxCells && (i == 0 || c.cells[i-1].index < x.index))
	})
	in.must(len(c.cells) > 0)
	if c.members != nil {
		c.members.walk(in)
	}
}

func (d *distinct) walk(c *codec) {
	if c.reading() {
		c.in.Raw(d.seed[:])
	} else {
		c.out = append(c.out, d.seed[:]...)
	}
	for i := range d.sketches {
		s := &d.sketches[i]
		number(c, &s.index, -exact, exact)
		b := string(s.bytes())
		c.text(&b, 0, registers)
		if c.reading() {
			c.must(c.in.Err == nil && s.restore([]byte(b)))
			// One that was never used has the number 0.
			c.must(d.at(s.index) == s || s.index == 0 && len(b) == 0)
		}
	}
}

func (d *distributions) walk(c *codec, _ *ident) {
	list(c, &d.windows, func(i int, x *distribution) {
		number(c, &x.index, -exact, exact)
		for _, n := range []*counter.Amount{&x.Sum, &x.Min, &x.Max} {
			number(c, n, 0, maxSum)
		}
		list(c, &x.Buckets, func(j int, b *counter.Bucket) {
			number(c, &b.Number, 0, counter.MaxBuckets-1)
			number(c, &b.Count, 1, exact)
			c.must(j == 0 || b.Number > x.Buckets[j-1].Number)
			if c.reading() {
				x.Count += b.Count
			}
		})
		c.must(x.Count > 0 && x.Count <= exact && x.Min <= x.Max && i <= 2*counter.MaxDistributions && (i == 0 || d.windows[i-1].index < x.index))
	})
}

func (s *sequence) walk(c *codec, _ *ident) { count(c, &s.last) }

// table is of members and their scores.
func (c *codec) table(t table, least int64) {
	numbers(c, t, least, int64(counter.MaxScore))
	for _, score := range t {
		c.must(score != 0)
	}
}

// walk leaves out windows that were never used.
func (b *board) walk(c *codec, _ *ident) {
	var used []boardWindow
	for _, w := range b.ring {
		if w.table != nil {
			used = append(used, w)
		}
	}
	list(c, &used, func(_ int, w *boardWindow) {
		number(c, &w.index, -exact, exact)
		count(c, &w.dropped)
		if c.reading() {
			w.table = table{}
		}
		c.table(w.table, -int64(counter.MaxScore))
		if c.reading() {
			c.must(b.slot(w.index).table == nil)
			*b.slot(w.index) = *w
		}
	})
}

// walk has the steps, the oldest first. Their sum can be made of them.
func (s *sliding) walk(c *codec, id *ident) {
	if c.reading() {
		s.width = counter.StepWidth(id.span)
	}
	number(c, &s.latest, 0, exact/int64(max(s.width, 1)))
	for step := s.latest - counter.Steps; step <= s.latest; step++ {
		count(c, &s.dropped[slot(step)])
		t := *s.part(step)
		if c.reading() {
			t = table{}
		}
		c.table(t, 1)
		if c.reading() && len(t) > 0 {
			*s.part(step) = t
			for member, score := range t {
				c.must(s.sum.add(member, score) <= int64(counter.MaxScore))
			}
		}
	}
}

func (h *hot) walk(c *codec, id *ident) {
	h.sliding.walk(c, id)
	number(c, &h.threshold, 0, int64(counter.MaxScore))
	number(c, &h.cool, 0, int64(counter.MaxScore))
	c.time(&h.ends)
	count(c, &h.last)
	count(c, &h.lost)
	numbers(c, h.since, 0, exact)
	before := h.lost
	list(c, &h.events, func(i int, e *counter.Event) {
		turned, at := 0, weir.MicrosOf(e.At)
		if e.Hot {
			turned = 1
		}
		count(c, &e.ID)
		c.name(&e.Item)
		number(c, &turned, 0, 1)
		count(c, &e.Hits)
		count(c, &at)
		if c.reading() {
			e.Hot, e.At = turned == 1, at.Time()
			c.must(e.ID > before && e.ID <= h.last && i < counter.MaxEvents)
			before = e.ID
		}
	})
}
