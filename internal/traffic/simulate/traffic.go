package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/weirhq/weir"
)

// Bounds on traffic, so that a slip of the keyboard ends in a sentence and not
// in a full memory. The units' bound lets them be added up without overflow.
const (
	MaxRequests = 2_000_000
	maxUnits    = 1 << 62
	maxAt       = weir.Micros(100 * 365 * day)

	day = 24 * 60 * 60 * 1_000_000 // microseconds
)

// Request is one arrival.
type Request struct {
	At       weir.Micros
	Key      string
	Cost     int64
	MaxDelay time.Duration // of a shaping limit; see weir.Op
}

// Traffic is requests in the order of time.
type Traffic struct {
	Text     string // what it is, for the head of a report
	Requests []Request
	Notes    []string // what a reader should know about it
}

// collector gathers requests within the bounds. After a mistake it gathers nothing more.
type collector struct {
	most     int         // requests; 0 is MaxRequests
	start    weir.Micros // what times are counted from
	requests []Request
	units    int64
	err      error // the first mistake
}

func (c *collector) add(r Request) {
	switch {
	case !c.room(1):
	case r.At < 0 || r.At > maxAt:
		c.err = errors.New("longer than 100 years; use earlier times")
	case r.Cost > maxUnits-c.units:
		c.err = errors.New("the sum of the costs is too large; use smaller costs")
	default:
		r.At += c.start
		c.requests = append(c.requests, r)
		c.units += r.Cost
	}
}

// room reports whether n more requests are within the bound.
func (c *collector) room(n int64) bool {
	most := cmp.Or(c.most, MaxRequests)
	if c.err == nil && n > int64(most-len(c.requests)) {
		c.err = fmt.Errorf("more than %d requests; use less traffic, or a smaller limit for a pattern", most)
	}
	return c.err == nil
}

// sorted returns the requests in the order of time, and otherwise as they came.
func (c *collector) sorted() []Request {
	slices.SortStableFunc(c.requests, byTime)
	return c.requests
}

func byTime(a, b Request) int { return cmp.Compare(a.At, b.At) }

// each adds n requests of one client, if there is room for all of them.
func (c *collector) each(n int64, at func(i int64) weir.Micros) {
	if !c.room(n) {
		return
	}
	for i := int64(0); i < n && c.err == nil; i++ {
		c.add(Request{At: at(i), Key: "client", Cost: 1})
	}
}

// spread adds n requests of one client, evenly from one instant to another,
// the latter excluded.
func (c *collector) spread(n int64, from, to weir.Micros) {
	c.each(n, func(i int64) weir.Micros { return from + share(to-from, i, n) })
}

// rate adds n requests in every period from one instant to another.
func (c *collector) rate(n int64, period, from, to weir.Micros) {
	// About how many they are is enough to deny most of what is too much at
	// once; add counts exactly.
	about := float64(to-from) / float64(period) * float64(n)
	if !c.room(int64(min(about, math.MaxInt32)) - 1) {
		return
	}
	for i := int64(0); c.err == nil; i++ {
		at := from + share(period, i, n)
		if at >= to {
			return
		}
		c.add(Request{At: at, Key: "client", Cost: 1})
	}
}

// share is length × i / n, whatever the product. The quotient is in range: one
// before it was within a stretch, and a length is less than 300 years.
func share(length weir.Micros, i, n int64) weir.Micros {
	high, low := bits.Mul64(uint64(length), uint64(i))
	quotient, _ := bits.Div64(high, low, uint64(n))
	return weir.Micros(quotient)
}

// clients is how many there are, and who asks for the most units; of several, the first.
func (t Traffic) clients() (n int, busiest string) {
	units := make(map[string]int64)
	for i := range t.Requests {
		units[t.Requests[i].Key] += t.Requests[i].Cost
	}
	for i := range t.Requests {
		if key := t.Requests[i].Key; i == 0 || units[key] > units[busiest] {
			busiest = key
		}
	}
	return len(units), busiest
}

// budget is what one client could still have taken at the end of each slice.
func budget(limit *weir.Compiled, requests []Request, key string, a axis) []int64 {
	left := make([]int64, a.Count)
	var record weir.Record
	done := 0
	look := func(before int) {
		for ; done < before; done++ {
			end := a.Begin + a.Slice*weir.Micros(done+1) - 1
			op := weir.Op{Key: key, Limit: limit}
			left[done] = op.Peek(record.State, record.Tail, end).Remaining
		}
	}
	for i := range requests {
		r := &requests[i]
		if r.Key != key {
			continue
		}
		look(a.slice(r.At))
		op := weir.Op{Key: key, Limit: limit, Cost: r.Cost, MaxDelay: r.MaxDelay}
		next, _ := op.Decide(record.State, record.Tail, r.At)
		record.Keep(limit, next)
	}
	look(a.Count)
	return left
}
