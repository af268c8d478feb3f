package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Decode decodes a frame that Append encoded. Other data gives an error, and decoding
// it needs memory in proportion to its length.
func Decode(src []byte) (*Frame, error) {
	d := decoder{in: src}
	v := d.byte()
	if d.err == nil && (v < 1 || v > version) {
		return nil, fmt.Errorf("frame: the data has version %d, but this weir reads up to version %d", v, version)
	}
	f := &Frame{}
	d.counts(&f.Requests)
	d.histogram(&f.Decision)
	for range d.size() {
		d.counts(f.Rule(Line{d.text(), d.text()}))
	}
	for range d.size() {
		r := f.Route(d.text())
		r.Requests, r.Errors = d.number(), d.number()
		d.histogram(&r.Latency)
	}
	for range d.size() {
		d.detail(f.Detail(d.text()))
	}
	for range d.size() {
		r := f.Ranking(d.text())
		d.sketch(&r.Allowed)
		d.sketch(&r.Denied)
	}
	if v > 1 {
		d.distinct(&f.Clients.All)
		d.distinct(&f.Clients.Denied)
	}
	if v > 2 {
		f.Denials = d.denials()
	}
	if v > 3 {
		for range d.size() {
			d.holds(f.Hold(d.text()))
		}
	}
	if v > 4 {
		d.warned(&f.Warned)
	}
	if v > 5 {
		for range d.size() {
			d.inFlight(f.Flight(d.text()), v)
		}
	}
	if v > 6 {
		for _, c := range f.Priorities.all() {
			d.counts(c)
		}
	}
	if d.err == nil && len(d.in) > 0 {
		d.err = errDamaged
	}
	if d.err != nil {
		return nil, d.err
	}
	return f, nil
}

var errDamaged = errors.New("frame: the data is damaged; remove it, and check what else writes there")

// maxExact bounds every number, so that sums of many numbers do not overflow.
const maxExact = 1 << 53

// decoder reads until the first error. After an error, everything it reads is 0.
type decoder struct {
	in  []byte
	err error
}

func (d *decoder) byte() byte {
	if len(d.in) == 0 {
		d.err = errDamaged
		return 0
	}
	b := d.in[0]
	d.in = d.in[1:]
	return b
}

func (d *decoder) number() int64 {
	n, width := binary.Uvarint(d.in)
	if d.err != nil || width <= 0 || n > maxExact {
		d.err, d.in = errDamaged, nil
		return 0
	}
	d.in = d.in[width:]
	return int64(n)
}

// signed reads a number that may be negative.
func (d *decoder) signed() int64 {
	n, width := binary.Varint(d.in)
	if d.err != nil || width <= 0 || n > maxExact || n < -maxExact {
		d.err, d.in = errDamaged, nil
		return 0
	}
	d.in = d.in[width:]
	return n
}

// size reads how many elements follow. Each has at least one byte.
func (d *decoder) size() int {
	n := d.number()
	if n > int64(len(d.in)) {
		d.err, d.in = errDamaged, nil
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.size()
	s := string(d.in[:n])
	d.in = d.in[n:]
	return s
}

func (d *decoder) counts(c *Counts) {
	which := d.byte()
	if which >= 1<<7 {
		d.err = errDamaged
	}
	for i, n := range c.fields() {
		if which&(1<<i) != 0 {
			*n = d.number()
		}
	}
}

func (d *decoder) histogram(h *Histogram) {
	used := d.size()
	if used == 0 {
		return
	}
	*h = Histogram{Sum: d.number()}
	slot := int64(0)
	for range used {
		slot += d.number()
		n := d.number()
		if slot >= Slots || n == 0 || d.err != nil {
			d.err, d.in = errDamaged, nil
			return
		}
		h.Put(uint8(slot), n)
	}
}

func (d *decoder) distinct(to *Distinct) {
	at := int64(0)
	for range d.size() {
		at += d.number()
		rank := d.byte()
		if at >= registers || rank == 0 || rank > 65-registerBits || d.err != nil {
			d.err, d.in = errDamaged, nil
			return
		}
		to.registers[at] = rank
	}
}

func (d *decoder) detail(to *Detail) {
	d.histogram(&to.Decision)
	for range d.size() {
		u := to.Quota(Quota{d.text(), d.number()})
		d.histogram(&u.Used)
		u.Denied = d.number()
	}
}

func (d *decoder) sketch(s *Sketch) {
	s.Floor, s.Total = d.number(), d.number()
	n := d.size()
	s.Entries = slices.Grow(s.Entries[:0], min(n, 1024))
	for range n {
		s.Entries = append(s.Entries, Entry{d.text(), d.number(), d.number()})
		if d.err != nil {
			return
		}
	}
}
