package memory

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/order"
)

// keyHolds are the open holds of a key, in two orders: by when they expire, and as they were reserved. No
// call looks at all of them, but for one that makes them smaller, which as many others have paid for.
type keyHolds struct {
	id       id // of the key
	due      order.Heap[deadline]
	levels   sums           // of a bucket: the sum up to a hold's number is its Level now
	clients  map[uint16]int // how many each client has of those that are counted
	terms    *terms         // of the newest
	first    terms
	releases bool // one of them gives its units back if it expires, or did
	gone     bool // the key was reset, so none of them has anything to give back
	lapsed   bool // one of them has, and may still ask for the key
}

// deadline is a hold in the order of expiry.
type deadline struct {
	at   weir.Micros
	hold *hold
}

// Before orders by time. Redis has the same order for holds that expire together.
func (d deadline) Before(other deadline) bool {
	return d.at < other.at || d.at == other.at && d.compare(other) < 0
}

func (d deadline) compare(other deadline) int {
	if d.at != other.at {
		return cmp.Compare(d.at, other.at)
	}
	return bytes.Compare(d.hold.id[:], other.hold.id[:])
}

func (d deadline) Index() *int32 { return &d.hold.place }

// spareKeyHolds are empty: most keys have one hold after the other.
var spareKeyHolds = sync.Pool{New: func() any { return new(keyHolds) }}

// fewInOrder are not worth to be made smaller.
const fewInOrder = 64

// termsOf returns terms for a hold. As a rule, those of the newest are the same.
func (k *keyHolds) termsOf(under terms) *terms {
	switch under.among = k; {
	case k.terms == nil:
		k.first = under
		k.terms = &k.first
	case *k.terms != under:
		k.terms = new(terms)
		*k.terms = under
	}
	return k.terms
}

// add adds a hold to both orders.
func (k *keyHolds) add(h *hold, level int64) {
	if h.leaks() {
		if len(k.levels) >= fewInOrder+2*len(k.due) {
			k.compact()
		}
		h.number = int32(len(k.levels))
		k.levels = k.levels.push(level)
	}
	if h.client != 0 {
		if k.clients == nil {
			k.clients = map[uint16]int{}
		}
		k.clients[h.client]++
	}
	k.releases = k.releases || h.releases()
	k.due.Push(deadline{h.expires, h})
}

// compact gives numbers of holds that have ended to those that are open, in the same order, and memory
// back.
func (k *keyHolds) compact() {
	k.due = slices.Clone(k.due)
	open, levels := make([]*hold, len(k.levels)), k.levels.all()
	for _, d := range k.due {
		if d.hold.leaks() {
			open[d.hold.number] = d.hold
		}
	}
	k.levels = nil
	for i, h := range open {
		if h != nil {
			h.number = int32(len(k.levels))
			k.levels = k.levels.push(levels[i])
		}
	}
}

// remove takes a hold out, and reports whether it was the last one. What has its terms must then be a hold
// that has lapsed, or that ends.
func (k *keyHolds) remove(h *hold) (last bool) {
	if cap(k.due) > fewInOrder+4*len(k.due) {
		k.compact()
	}
	k.due.Remove(deadline{hold: h})
	k.leave(h)
	switch {
	case len(k.due) > 0:
		return false
	case !k.lapsed && cap(k.due)+cap(k.levels) <= 4*fewInOrder:
		*k = keyHolds{due: k.due, levels: k.levels[:0]}
		spareKeyHolds.Put(k)
	default:
		k.due, k.levels = nil, nil
	}
	return true
}

// leave is for a hold that is no longer in the orders, and no longer counts for its client.
func (k *keyHolds) leave(h *hold) {
	h.part = isUnlisted
	if h.client == 0 {
		return
	}
	if k.clients[h.client]--; k.clients[h.client] == 0 {
		delete(k.clients, h.client)
	}
}

// moveUp is for what was given back of a hold: those that were reserved after it have less below them. In a
// queue there are none, because only its last place is given back.
func (k *keyHolds) moveUp(h *hold, back int64) {
	if next := int(h.number) + 1; back > 0 && next < len(k.levels) && h.leaksEvenly() {
		k.levels.add(next, -back)
	}
}

// held is what one of the holds can give back now.
func (k *keyHolds) held(h *hold) weir.Held {
	if !h.leaks() {
		return h.at(0)
	}
	return h.at(k.levels.sum(int(h.number)))
}

// at is what a hold can give back at a level.
func (h *hold) at(level int64) weir.Held {
	switch {
	case h.leaksEvenly():
		return weir.Held{Cost: h.cost, Level: level, At: h.time}
	case h.leaks():
		return (&weir.Op{Limit: h.under.limit, Cost: h.cost}).Held(weir.State{Fresh: h.time, A: level})
	}
	return weir.Held{Cost: h.cost, Receipt: weir.Receipt(h.time)}
}

// open returns the i-th open hold as it is now, of those that are likely to expire last: what it can give back, and
// the limit that it was charged under; nil if there are no more.
func (k *keyHolds) open(now weir.Micros) weir.OpenHolds {
	return func(i int) (*weir.Compiled, weir.Held) {
		last := len(k.due) - 1 - i
		if last < 0 {
			return nil, weir.Held{}
		}
		d := k.due[last]
		if d.at <= now { // it has ended
			return d.hold.under.limit, weir.Held{}
		}
		return d.hold.under.limit, k.held(d.hold)
	}
}

// leaks reports whether the part is of a bucket.
func (h *hold) leaks() bool {
	a := h.under.limit.Algorithm()
	return a == weir.TokenBucket || a == weir.LeakyBucket
}

// leaksEvenly reports whether the part is of a bucket that does not shape.
func (h *hold) leaksEvenly() bool { return h.leaks() && !h.under.limit.Limit().Shape }

// expireAt notes that a hold expires at another time.
func (k *keyHolds) expireAt(h *hold, at weir.Micros) {
	k.due[h.place].at = at
	k.due.Fix(k.due[h.place])
}

// nextRelease is not later than when the first of the open holds gives its units back because it
// expires.
func (k *keyHolds) nextRelease() weir.Micros {
	if !k.releases || len(k.due) == 0 {
		return math.MaxInt64
	}
	return k.due[0].at
}

// sums are numbers whose sums from the first one on are quick to find (a Fenwick tree): i has the sum
// of those from i&(i+1) to i.
type sums []int64

// sum adds up the numbers from 0 to i.
func (s sums) sum(i int) (sum int64) {
	for ; i >= 0; i = i&(i+1) - 1 {
		sum += s[i]
	}
	return sum
}

// add adds to the number at i.
func (s sums) add(i int, x int64) {
	for ; i < len(s); i |= i + 1 {
		s[i] += x
	}
}

// push adds a number behind the others that makes their sum this one.
func (s sums) push(sum int64) sums {
	n := len(s)
	return append(s, sum-s.sum(n&(n+1)-1))
}

// all is the sum of each, in the same memory.
func (s sums) all() []int64 {
	for i := range s {
		if from := i & (i + 1); from > 0 {
			s[i] += s[from-1]
		}
	}
	return s
}

// sumsOf are the numbers that have these sums, in the same memory.
func sumsOf(all []int64) sums {
	for i := len(all) - 1; i >= 0; i-- {
		if from := i & (i + 1); from > 0 {
			all[i] -= all[from-1]
		}
	}
	return all
}
