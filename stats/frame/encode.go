package frame

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
)

// An encoded frame begins with a byte for its version. The sections follow in the order
// of Frame: numbers as varints, and texts after their lengths. Names are sorted, so
// that equal frames are equal bytes. Version 1 has no clients, version 2 no denials,
// version 3 no holds, version 4 no warnings and nothing that soft rules denied, version 5
// no requests in flight, and version 6 no priorities and no Busy below 0. A frame is written in
// the first version from 2 on that has its sections, so that older instances can read it.
const version = 7

func (f *Frame) version() byte {
	switch {
	case f.Priorities != Priorities{} || f.isBelowZero():
		return 7
	case len(f.InFlight) > 0:
		return 6
	case f.Warned.N > 0 || f.hasSoft():
		return 5
	case len(f.Holds) > 0:
		return 4
	case len(f.Denials) > 0:
		return 3
	}
	return 2
}

func (f *Frame) isBelowZero() bool {
	for _, in := range f.InFlight {
		if in.Busy < 0 {
			return true
		}
	}
	return false
}

func (f *Frame) hasSoft() bool {
	if f.Requests.SoftDenied > 0 {
		return true
	}
	for _, c := range f.Rules {
		if c.SoftDenied > 0 {
			return true
		}
	}
	return false
}

// Append appends the encoded frame to dst.
func (f *Frame) Append(dst []byte) []byte {
	v := f.version()
	e := encoder{append(dst, v)}
	e.counts(&f.Requests)
	e.histogram(&f.Decision)

	e.size(len(f.Rules))
	lines := slices.SortedFunc(maps.Keys(f.Rules), func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Tier, b.Tier))
	})
	for _, l := range lines {
		e.text(l.Rule)
		e.text(l.Tier)
		e.counts(f.Rules[l])
	}

	e.size(len(f.Routes))
	for _, name := range names(f.Routes) {
		r := f.Routes[name]
		e.text(name)
		e.number(r.Requests)
		e.number(r.Errors)
		e.histogram(&r.Latency)
	}

	e.size(len(f.Details))
	for _, id := range names(f.Details) {
		e.text(id)
		e.detail(f.Details[id])
	}

	e.size(len(f.Top))
	for _, id := range names(f.Top) {
		e.text(id)
		e.sketch(&f.Top[id].Allowed)
		e.sketch(&f.Top[id].Denied)
	}

	e.distinct(&f.Clients.All)
	e.distinct(&f.Clients.Denied)
	if v > 2 {
		e.denials(f.Denials)
	}
	if v > 3 {
		e.size(len(f.Holds))
		for _, id := range names(f.Holds) {
			e.text(id)
			e.holds(f.Holds[id])
		}
	}
	if v > 4 {
		e.warned(&f.Warned)
	}
	if v > 5 {
		e.size(len(f.InFlight))
		for _, id := range names(f.InFlight) {
			e.text(id)
			e.inFlight(f.InFlight[id], v)
		}
	}
	if v > 6 {
		for _, c := range f.Priorities.all() {
			e.counts(c)
		}
	}
	return e.out
}

func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

type encoder struct{ out []byte }

// number writes a number that is not negative.
func (e *encoder) number(n int64) { e.out = binary.AppendUvarint(e.out, uint64(max(n, 0))) }

func (e *encoder) size(n int) { e.number(int64(n)) }

func (e *encoder) text(s string) {
	e.size(len(s))
	e.out = append(e.out, s...)
}

// counts writes a byte with one bit for each count, and then the counts above 0.
// Usually there is one.
func (e *encoder) counts(c *Counts) {
	all := c.fields()
	which := byte(0)
	for i, n := range all {
		if *n > 0 {
			which |= 1 << i
		}
	}
	e.out = append(e.out, which)
	for _, n := range all {
		if *n > 0 {
			e.number(*n)
		}
	}
}

func (c *Counts) fields() [7]*int64 {
	return [...]*int64{&c.Allowed, &c.Denied, &c.ShadowDenied, &c.DegradedAllowed, &c.DegradedDenied, &c.Blocked, &c.SoftDenied}
}

// histogram writes the slots that are not empty, each as its distance from the last one
// and its count.
func (e *encoder) histogram(h *Histogram) {
	used := 0
	for _, n := range h.counts {
		if n > 0 {
			used++
		}
	}
	e.size(used)
	if used == 0 {
		return
	}
	e.number(h.Sum)
	last := 0
	for slot, n := range h.counts {
		if n > 0 {
			e.size(slot - last)
			e.number(n)
			last = slot
		}
	}
}

func (e *encoder) detail(d *Detail) {
	e.histogram(&d.Decision)
	e.size(len(d.Usage))
	quotas := slices.SortedFunc(maps.Keys(d.Usage), func(a, b Quota) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Period, b.Period))
	})
	for _, q := range quotas {
		e.text(q.Tier)
		e.number(q.Period)
		e.histogram(&d.Usage[q].Used)
		e.number(d.Usage[q].Denied)
	}
}

func (e *encoder) sketch(s *Sketch) {
	e.number(s.Floor)
	e.number(s.Total)
	e.size(len(s.Entries))
	for _, entry := range s.Entries {
		e.text(entry.Key)
		e.number(entry.Count)
		e.number(entry.Error)
	}
}

// distinct writes the registers that are not 0, each as its distance from the last one
// and its rank, in two bytes.
func (e *encoder) distinct(d *Distinct) {
	used := 0
	for _, rank := range d.registers {
		if rank > 0 {
			used++
		}
	}
	e.size(used)
	last := 0
	for i, rank := range d.registers {
		if rank > 0 {
			e.size(i - last)
			e.out = append(e.out, rank)
			last = i
		}
	}
}
