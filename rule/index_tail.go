package rule

import "strings"

// next makes the junction that a segment leads to. If there is only one way on from
// it, as from /shops/7 to /shops/7/orders/{id}, it is where that way ends or forks,
// with what is between as its tail. Tails are shared, and so in the cache, where a
// junction for each step of each rule would not be.
func (b *builder) next(d *draft) *junction {
	last, tail := d, []string(nil)
	for {
		segment, child := last.onlyWay()
		if child == nil {
			break
		}
		tail, last = append(tail, b.intern(segment)), child
	}
	j := b.junction(last)
	if len(tail) > 0 {
		j.tail = b.tail(tail)
	}
	return j
}

// onlyWay is the only child of a draft at which no path ends, or nil.
func (d *draft) onlyWay() (segment string, child *draft) {
	switch {
	case len(d.here) > 0 || len(d.rest) > 0:
		return "", nil
	case len(d.children) == 0:
		return "", d.param
	case len(d.children) > 1 || d.param != nil:
		return "", nil
	}
	for segment, child = range d.children {
	}
	return segment, child
}

// tail numbers a tail, from 1; equal ones are one.
func (b *builder) tail(segments []string) uint32 {
	text := strings.Join(segments, "/")
	if b.tailOf[text] == 0 {
		b.tails = append(b.tails, pattern{segments: segments})
		b.tailOf[text] = uint32(len(b.tails))
	}
	return b.tailOf[text]
}
