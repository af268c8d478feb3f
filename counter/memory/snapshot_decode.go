package memory

import (
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

// Bounds on what a body may have. They keep a file that is not what it seems from
// filling the memory; what a store writes is far below.
const (
	maxCells   = 2*counter.MaxHistory + 100
	maxMembers = 1 << 24 // of one table

	// roundingSlack is by how much sums that are reckoned with floating-point numbers may
	// be above the bound.
	roundingSlack = 4096
)

func (d *decoder) entry() *entry {
	e := &entry{id: ident{kind: kind(d.Between(0, int64(kindDistribution)))}, expires: d.time()}
	switch e.id.kind {
	case kindCounter, kindDistinct:
		e.id.window, e.id.zone = d.window()
		e.id.group = d.Text(0, counter.MaxNameLen)
		e.id.name = d.name()
		c := d.cells()
		if e.id.kind == kindDistinct {
			c.members = d.distinct()
		}
		e.body = c
	case kindDistribution:
		e.id.window, e.id.zone = d.window()
		e.id.group = d.Text(0, counter.MaxNameLen)
		e.id.name = d.name()
		e.body = d.distributions()
	case kindSequence:
		e.id.name = d.name()
		e.body = &sequence{last: d.count()}
	case kindBoard:
		e.id.window, e.id.zone = d.window()
		e.id.name = d.name()
		e.body = d.board()
	case kindSliding:
		e.id.span, e.id.name = d.span()
		e.body = d.sliding(e.id.span)
	default:
		e.id.span, e.id.name = d.span()
		e.body = d.hot(e.id.span)
	}
	return e
}

func (d *decoder) name() string { return d.Text(1, counter.MaxNameLen) }

func (d *decoder) window() (counter.Window, string) {
	return counter.Window(d.Between(int64(counter.Ever), int64(counter.Year))), d.Text(1, counter.MaxZoneLen)
}

// span reads the length of a sliding window, and the name of what has it.
func (d *decoder) span() (time.Duration, string) {
	list := counter.HotList{Window: time.Duration(d.Word()), Name: d.name(), Threshold: 1}
	d.Must(list.Validate() == nil)
	return list.Window, list.Name
}

func (d *decoder) cells() *cells {
	c := &cells{}
	for d.More() {
		const most = int64(counter.MaxAmount) + roundingSlack
		x := cell{index: d.Between(-exact, exact), amount: counter.Amount(d.Between(-most, most))}
		n := len(c.cells)
		d.Must(n < maxCells && (n == 0 || c.cells[n-1].index < x.index))
		if d.Err == nil {
			c.cells = append(c.cells, x)
		}
	}
	d.Must(len(c.cells) > 0)
	return c
}

func (d *decoder) distributions() *distributions {
	const most = int64(counter.MaxAmount) + roundingSlack
	all := &distributions{}
	for d.More() {
		x := distribution{index: d.Between(-exact, exact)}
		x.Sum = counter.Amount(d.Between(0, most))
		x.Min, x.Max = counter.Amount(d.Between(0, most)), counter.Amount(d.Between(0, most))
		before := -1
		for d.More() {
			b := counter.Bucket{Number: int(d.Between(0, counter.MaxBuckets-1)), Count: d.Between(1, exact)}
			d.Must(b.Number > before)
			if d.Err == nil {
				before = b.Number
				x.Count += b.Count
				x.Buckets = append(x.Buckets, b)
			}
		}
		n := len(all.windows)
		d.Must(x.Count > 0 && x.Count <= exact && x.Min <= x.Max && n <= 2*counter.MaxDistributions && (n == 0 || all.windows[n-1].index < x.index))
		if d.Err == nil {
			all.windows = append(all.windows, x)
		}
	}
	return all
}

func (d *decoder) distinct() *distinct {
	x := &distinct{}
	d.Raw(x.seed[:])
	for i := range x.sketches {
		s := &x.sketches[i]
		s.index = d.Between(-exact, exact)
		b := d.Bytes(0, registers)
		d.Must(d.Err == nil && s.restore(b))
		// One that was never used has the number 0.
		d.Must(x.at(s.index) == s || s.index == 0 && len(b) == 0)
	}
	return x
}

// table reads members and their scores.
func (d *decoder) table(least int64) table {
	t := table{}
	for d.More() {
		member, score := d.name(), d.Between(least, int64(counter.MaxScore))
		d.Must(score != 0 && t[member] == 0 && len(t) < maxMembers)
		if d.Err == nil {
			t[member] = score
		}
	}
	return t
}

func (d *decoder) board() *board {
	b := &board{}
	for d.More() {
		w := boardWindow{index: d.Between(-exact, exact), dropped: d.count()}
		w.table = d.table(-int64(counter.MaxScore))
		d.Must(b.slot(w.index).table == nil)
		if d.Err == nil {
			*b.slot(w.index) = w
		}
	}
	return b
}

// sliding reads the steps of a window, and sums them up.
func (d *decoder) sliding(span time.Duration) *sliding {
	s := &sliding{width: 1, sum: table{}}
	if d.Err == nil {
		s.width = counter.StepWidth(span)
	}
	s.latest = d.Between(0, exact/int64(s.width))
	for step := s.latest - counter.Steps; step <= s.latest; step++ {
		dropped, t := d.count(), d.table(1)
		if d.Err != nil {
			break
		}
		if len(t) > 0 {
			*s.part(step) = t
		}
		s.dropped[slot(step)] = dropped
		for member, score := range t {
			d.Must(s.sum.add(member, score) <= int64(counter.MaxScore))
		}
	}
	return s
}

func (d *decoder) hot(span time.Duration) *hot {
	h := &hot{sliding: *d.sliding(span), since: map[string]weir.Micros{}}
	h.threshold, h.cool = d.Between(0, int64(counter.MaxScore)), d.Between(0, int64(counter.MaxScore))
	h.ends = d.time()
	h.last, h.lost = d.count(), d.count()
	for d.More() {
		item, since := d.name(), weir.Micros(d.count())
		_, known := h.since[item]
		d.Must(!known && len(h.since) < maxMembers)
		if d.Err == nil {
			h.since[item] = since
		}
	}
	before := h.lost
	for d.More() {
		e := counter.Event{ID: d.count(), Item: d.name(), Hot: d.Between(0, 1) == 1, Hits: d.count(), At: weir.Micros(d.count()).Time()}
		d.Must(e.ID > before && e.ID <= h.last && len(h.events) < counter.MaxEvents)
		if d.Err == nil {
			h.events = append(h.events, e)
			before = e.ID
		}
	}
	return h
}
