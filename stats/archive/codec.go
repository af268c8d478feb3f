package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An encoded frame begins with a byte for its version. The sections follow in the order
// of Frame: numbers as varints, and texts after their lengths. Names are sorted, so
// that equal frames are equal bytes. Version 1 has no clients, version 2 no denials,
// version 3 no holds, version 4 no warnings and nothing that soft rules denied, version 5
// no requests in flight, version 6 no priorities and no Busy below 0, version 7 no addresses of
// denied clients, version 8 no unknown clients, version 9 nothing that was spent, version 10 no denials by level,
// version 11 no currency but the dollar, and version 12 nothing that was denied because of too many open holds. A frame is written in the first version from 2 on that has its
// sections, so that older instances can read it.
const version = 13

func (f *Frame) version() byte {
	switch {
	case anyOf(f.Holds, func(h *Holds) bool { return h.Crowded > 0 }) || slices.ContainsFunc(f.Denials, func(d Denial) bool { return d.Crowded }):
		return 13
	case f.hasOtherCurrency():
		return 12
	case len(f.Levels) > 0:
		return 11
	case len(f.Spend) > 0:
		return 10
	case f.knowsUnknown():
		return 9
	case slices.ContainsFunc(f.Denials, func(d Denial) bool { return d.Address != "" }):
		return 8
	case f.Priorities != Priorities{} || anyOf(f.InFlight, func(in *InFlight) bool { return in.Busy < 0 }):
		return 7
	case len(f.InFlight) > 0:
		return 6
	case f.Warned.N > 0 || f.Requests.SoftDenied > 0 || anyOf(f.Rules, func(c *Counts) bool { return c.SoftDenied > 0 }):
		return 5
	case len(f.Holds) > 0:
		return 4
	case len(f.Denials) > 0:
		return 3
	}
	return 2
}

// knowsUnknown reports whether clients were denied because they are unknown.
func (f *Frame) knowsUnknown() bool {
	priorities := f.Priorities.all()
	return f.Requests.UnknownClient > 0 || slices.ContainsFunc(f.Denials, func(d Denial) bool { return d.Unknown }) ||
		slices.ContainsFunc(priorities[:], func(c *Counts) bool { return c.UnknownClient > 0 }) || anyOf(f.Rules, func(c *Counts) bool { return c.UnknownClient > 0 })
}

func anyOf[K comparable, V any](m map[K]*V, is func(*V) bool) bool {
	for _, v := range m {
		if is(v) {
			return true
		}
	}
	return false
}

// Append appends the encoded frame to dst.
func (f *Frame) Append(dst []byte) []byte {
	c := codec{version: f.version()}
	c.data = append(dst, c.version)
	c.frame(f)
	return c.data
}

// Decode decodes a frame that Append encoded. Other data gives an error, and decoding
// it needs memory in proportion to its length.
func Decode(src []byte) (*Frame, error) {
	c := codec{data: src, reading: true}
	c.byte(&c.version)
	if c.err == nil && (c.version < 1 || c.version > version) {
		return nil, fmt.Errorf("archive: the data has version %d, but this weir reads up to version %d", c.version, version)
	}
	f := &Frame{}
	c.frame(f)
	c.check(len(c.data) == 0)
	if c.err != nil {
		return nil, c.err
	}
	SortDenials(f.Denials)
	return f, nil
}

var errDamaged = errors.New("archive: the data is damaged; remove it, and check what else writes there")

// maxExact bounds every number, so that sums of many numbers do not overflow.
const maxExact = 1 << 53

// codec walks over a frame, and writes or reads what it meets, so that the format is said
// once. To write changes nothing in the frame, which others may read meanwhile. To read
// stops at the first error: everything after that is 0.
type codec struct {
	version byte
	data    []byte // what was written, or what is left to read
	reading bool
	err     error
}

func (c *codec) frame(f *Frame) {
	c.counts(&f.Requests)
	c.histogram(&f.Decision)
	table(c, &f.Rules, compareLines, func(l *Line) { c.texts(&l.Rule, &l.Tier) }, c.counts)
	table(c, &f.Routes, strings.Compare, c.text, func(r *Route) {
		c.numbers(&r.Requests, &r.Errors)
		c.histogram(&r.Latency)
	})
	table(c, &f.Details, strings.Compare, c.text, func(d *Detail) {
		c.histogram(&d.Decision)
		table(c, &d.Usage, compareQuotas, func(q *Quota) { c.text(&q.Tier); c.number(&q.Period) }, func(u *Usage) {
			c.histogram(&u.Used)
			c.number(&u.Denied)
		})
	})
	c.rankings(f)
	if c.version > 1 {
		c.distinct(&f.Clients.All)
		c.distinct(&f.Clients.Denied)
	}
	if c.version > 2 {
		list(c, &f.Denials, c.denial)
	}
	if c.version > 3 {
		table(c, &f.Holds, strings.Compare, c.text, func(h *Holds) {
			fields := h.fields()
			c.numbers(fields[:9]...)
			if c.histogram(&h.ratio); c.version > 12 {
				c.number(&h.Crowded)
			}
		})
	}
	if c.version > 4 {
		c.number(&f.Warned.N)
		list(c, &f.Warned.List, func(w *Warning) {
			c.texts(&w.Rule, &w.Key, &w.Policy, &w.Instance)
			c.numbers((*int64)(&w.At), &w.Threshold, &w.Used, &w.Limit, (*int64)(&w.ResetAt))
		})
	}
	if c.version > 5 {
		table(c, &f.InFlight, strings.Compare, c.text, func(in *InFlight) {
			if c.version > 6 {
				c.signed(&in.Busy)
			} else {
				c.number(&in.Busy)
			}
			c.number(&in.Highest)
			c.histogram(&in.held)
		})
	}
	if c.version > 6 {
		for _, counts := range f.Priorities.all() {
			c.counts(counts)
		}
	}
	if c.version > 9 {
		table(c, &f.Spend, compareSpenders, c.spender, func(s *Spent) {
			c.numbers(&s.Requests, &s.Refunds, &s.Input, &s.Output)
			c.signed(&s.Units)
		})
	}
	if c.version > 10 {
		table(c, &f.Levels, compareLevels, func(l *RuleLevel) { c.texts(&l.Rule, &l.Level) }, c.number)
	}
}

// sampling is the name of a ranking without keys whose total is Frame.Sampling. Instances that do
// not know it carry it along, and add it up, so that it may become too large.
const sampling = "(sampling)"

func (c *codec) rankings(f *Frame) {
	top := f.Top
	if !c.reading && f.Sampling > 1 {
		top = map[string]*Ranking{sampling: {Allowed: Sketch{Total: f.Sampling}}}
		maps.Copy(top, f.Top)
	}
	table(c, &top, strings.Compare, c.text, func(r *Ranking) {
		c.sketch(&r.Allowed)
		c.sketch(&r.Denied)
	})
	if !c.reading {
		return
	}
	if s := top[sampling]; s != nil {
		f.Sampling = s.Allowed.Total
		delete(top, sampling)
	}
	f.Top = top
}

// check ends the reading of data that is not as it must be.
func (c *codec) check(ok bool) {
	if !ok {
		c.err, c.data = errDamaged, nil
	}
}

func (c *codec) byte(b *byte) {
	if !c.reading {
		c.data = append(c.data, *b)
		return
	}
	if *b = 0; len(c.data) == 0 {
		c.check(false)
		return
	}
	*b, c.data = c.data[0], c.data[1:]
}

// number is of a number that is not negative.
func (c *codec) number(n *int64) {
	if !c.reading {
		c.data = binary.AppendUvarint(c.data, uint64(max(*n, 0)))
		return
	}
	value, width := binary.Uvarint(c.data)
	if *n = 0; width <= 0 || value > maxExact {
		c.check(false)
		return
	}
	*n, c.data = int64(value), c.data[width:]
}

func (c *codec) signed(n *int64) {
	if !c.reading {
		c.data = binary.AppendVarint(c.data, *n)
		return
	}
	value, width := binary.Varint(c.data)
	if *n = 0; width <= 0 || value > maxExact || value < -maxExact {
		c.check(false)
		return
	}
	*n, c.data = value, c.data[width:]
}

func (c *codec) numbers(all ...*int64) {
	for _, n := range all {
		c.number(n)
	}
}

// size is how many elements follow. Each has at least one byte.
func (c *codec) size(n int) int {
	long := int64(n)
	c.number(&long)
	if c.reading && long > int64(len(c.data)) {
		c.check(false)
		return 0
	}
	return int(long)
}

func (c *codec) text(s *string) {
	n := c.size(len(*s))
	if !c.reading {
		c.data = append(c.data, *s...)
		return
	}
	*s, c.data = string(c.data[:n]), c.data[n:]
}

func (c *codec) texts(all ...*string) {
	for _, s := range all {
		c.text(s)
	}
}

// table is of a map, in the order of its keys.
func table[K comparable, V any](c *codec, m *map[K]*V, compare func(a, b K) int, key func(*K), value func(*V)) {
	n := c.size(len(*m))
	if !c.reading {
		for _, k := range slices.SortedFunc(maps.Keys(*m), compare) {
			key(&k)
			value((*m)[k])
		}
		return
	}
	for range n {
		var k K
		if key(&k); c.err == nil {
			value(entry(m, k))
		}
	}
}

func list[T any](c *codec, all *[]T, one func(*T)) {
	n := c.size(len(*all))
	if c.reading {
		*all = slices.Grow((*all)[:0], min(n, 1024)) // the rest as far as it is there
	}
	for i := 0; i < n && c.err == nil; i++ {
		if c.reading {
			*all = append(*all, *new(T))
		}
		one(&(*all)[i])
	}
}

// sparse is of the elements of an array that are not 0, each after its distance from the
// last one.
func sparse[N int64 | uint8](c *codec, values []N, used int, value func(*N)) {
	last, at := int64(0), int64(0)
	for i := 0; i < used; i++ {
		for !c.reading && values[at] == 0 {
			at++
		}
		distance := at - last
		c.number(&distance)
		at = last + distance
		if c.check(c.err == nil && at < int64(len(values)) && (i == 0 || distance > 0)); c.err != nil {
			return
		}
		value(&values[at])
		c.check(values[at] != 0)
		last, at = at, at+1
	}
}

func nonzero[N int64 | uint8](values []N) (n int) {
	for _, v := range values {
		if v != 0 {
			n++
		}
	}
	return n
}

// counts begin with a byte that has one bit for each count; the counts above 0 follow.
// Usually there is one.
func (c *codec) counts(of *Counts) {
	all := of.fields()
	which := byte(0)
	for i, n := range all {
		if *n > 0 {
			which |= 1 << i
		}
	}
	c.byte(&which)
	c.check(c.err == nil && (c.version > 8 || which < 1<<7))
	for i, n := range all {
		if which&(1<<i) != 0 {
			c.number(n)
		}
	}
}

func (c *codec) histogram(h *Histogram) {
	used := c.size(nonzero(h.counts))
	if used == 0 {
		return
	}
	if c.reading {
		*h = Histogram{counts: make([]int64, HistogramSlots)}
	}
	c.number(&h.Sum)
	sparse(c, h.counts, used, c.number)
	if c.reading {
		for _, n := range h.counts {
			h.Count += n
		}
	}
}

func (c *codec) sketch(s *Sketch) {
	c.numbers(&s.Floor, &s.Total)
	list(c, &s.Entries, func(e *Entry) {
		c.text(&e.Key)
		c.numbers(&e.Count, &e.Error)
	})
}

func (c *codec) distinct(d *Distinct) {
	sparse(c, d.registers[:], c.size(nonzero(d.registers[:])), func(rank *byte) {
		c.byte(rank)
		c.check(*rank <= 65-registerBits)
	})
}

func (c *codec) denial(d *Denial) {
	c.number((*int64)(&d.At))
	c.texts(&d.Rule, &d.Key, &d.Tier, &d.Method, &d.Path, &d.Instance)
	if c.version > 7 {
		c.text(&d.Address)
	}
	c.number(&d.Cost)
	flags := d.flags()
	c.byte(&flags)
	c.check(c.err == nil && flags < 1<<5)
	if c.reading {
		d.Shadow, d.Blocked, d.Degraded, d.Unknown, d.Crowded = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0, flags&16 != 0
	}
}
