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

// keyHolds are the open holds of a key that had several at once, in two orders: by when
// they expire, and as they were reserved. No call looks at all of them, but for one that makes
// them smaller, which as many others have paid for.
type keyHolds struct {
	due      order.Heap[deadline]
	releases bool // one of them gives its units back if it expires, or did
	reset    bool // the key was, so none of them has anything to give back

	clients map[uint16]int // how many each client has of those that are counted

	// Of a bucket: what was given back of a hold moves all up that were reserved after it.
	// up.sum(n) is by how much hold n has moved up; total is that of a hold with the next
	// number, as long as there is none.
	up    sums
	total int64
}

// deadline is a hold in the order of expiry.
type deadline struct {
	at   weir.Micros
	part *heldPart
}

// Before orders by time. Redis has the same order for holds that expire together.
func (d deadline) Before(other deadline) bool {
	return d.at < other.at || d.at == other.at && d.compare(other) < 0
}

func (d deadline) compare(other deadline) int {
	if d.at != other.at {
		return cmp.Compare(d.at, other.at)
	}
	return bytes.Compare(d.part.hold.id[:], other.part.hold.id[:])
}

func (d deadline) Index() *int { return &d.part.place }

// spareKeyHolds are empty: two callers of one key would otherwise make new ones all the time.
var spareKeyHolds = sync.Pool{New: func() any { return new(keyHolds) }}

// fewInOrder are not worth to be made smaller.
const fewInOrder = 64

func (k *keyHolds) add(p *heldPart) {
	if p.leaks() {
		if len(k.up) >= fewInOrder+2*len(k.due) {
			k.compact()
		}
		p.number = int32(len(k.up))
		k.up, k.total = k.up.append(-k.total), 0
	}
	p.among = k
	if p.client != 0 {
		if k.clients == nil {
			k.clients = map[uint16]int{}
		}
		k.clients[p.client]++
	}
	k.releases = k.releases || p.releases()
	k.due.Push(deadline{p.hold.expires, p})
}

// compact gives numbers of holds that have ended to those that are open, in the same order, and memory
// back.
func (k *keyHolds) compact() {
	k.due = slices.Clone(k.due)
	if len(k.up) == 0 {
		return
	}
	open, number := make([]*heldPart, len(k.up)), int32(0)
	for _, d := range k.due {
		open[d.part.number] = d.part
	}
	for i, up := range k.up.all() {
		if p := open[i]; p != nil {
			p.Level, p.number = p.Level-up, number
			number++
		}
	}
	k.up, k.total = make(sums, number), 0
}

// remove takes a hold out, which then knows its level, and returns another one.
func (k *keyHolds) remove(p *heldPart) (other *heldPart) {
	if cap(k.due) > fewInOrder+4*len(k.due) {
		k.compact()
	}
	p.Level, p.among = p.level(), nil
	k.due.Remove(deadline{part: p})
	k.leave(p)
	if len(k.due) > 0 {
		return k.due[0].part
	}
	if cap(k.due)+cap(k.up) <= 4*fewInOrder {
		*k = keyHolds{due: k.due, up: k.up[:0]}
		spareKeyHolds.Put(k)
	}
	return nil
}

// leave is for a hold that no longer counts for its client.
func (k *keyHolds) leave(p *heldPart) {
	if p.client == 0 {
		return
	}
	if k.clients[p.client]--; k.clients[p.client] == 0 {
		delete(k.clients, p.client)
	}
}

// moveUp is for what was given back of a hold with a number.
func (k *keyHolds) moveUp(number int32, back int64) {
	if next := int(number) + 1; next < len(k.up) {
		k.up.add(next, back)
		k.total += back
	}
}

// level is the Level of a part that is listed as of now.
func (p *heldPart) level() int64 {
	if p.among == nil || !p.leaks() {
		return p.Level
	}
	return p.Level - p.among.up.sum(int(p.number))
}

// open returns the i-th open hold of the part's key as it is now, of those that are likely to expire last: what it
// can give back, and the limit that it was charged under; nil if there are no more.
func (p *heldPart) open(now weir.Micros) weir.OpenHolds {
	return func(i int) (*weir.Compiled, weir.Held) {
		one, last := p, p.count()-1-i
		switch {
		case last < 0:
			return nil, weir.Held{}
		case p.among != nil:
			one = p.among.due[last].part
		}
		if one.hold.expires <= now { // it has ended
			return one.limit, weir.Held{}
		}
		held := one.Held
		held.Level = one.level()
		return one.limit, held
	}
}

// leaks reports whether the part is of a bucket.
func (p *heldPart) leaks() bool {
	a := p.limit.Algorithm()
	return a == weir.TokenBucket || a == weir.LeakyBucket
}

// expireAt notes that the hold of a part expires at another time.
func (p *heldPart) expireAt(at weir.Micros) {
	if p.among != nil {
		p.among.due[p.place].at = at
		p.among.due.Fix(p.among.due[p.place])
	}
}

// count is how many open holds the key of a part has.
func (p *heldPart) count() int {
	if p.among == nil {
		return 1
	}
	return len(p.among.due)
}

// ofClient is how many of those a client has that are counted; 0 if it is unknown.
func (p *heldPart) ofClient(client uint16) int {
	if p.among == nil {
		return 0
	}
	return p.among.clients[client]
}

// soonest is the open hold of the part's key that expires first.
func (p *heldPart) soonest() *heldPart {
	if p.among == nil {
		return p
	}
	return p.among.due[0].part
}

// nextRelease is not later than when the first of the key's open holds gives its units back because it
// expires.
func (p *heldPart) nextRelease() weir.Micros {
	if p.among == nil && !p.releases() || p.among != nil && !p.among.releases {
		return math.MaxInt64
	}
	return p.soonest().hold.expires
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

// append adds a number behind the others.
func (s sums) append(x int64) sums {
	n := len(s)
	for i := n - 1; i >= n&(n+1); i = i&(i+1) - 1 {
		x += s[i]
	}
	return append(s, x)
}

// all is the sum of each.
func (s sums) all() []int64 {
	all := slices.Clone(s)
	for i := len(all) - 1; i >= 0; i-- { // each is its own number again
		if next := i | (i + 1); next < len(all) {
			all[next] -= all[i]
		}
	}
	for i := 1; i < len(all); i++ {
		all[i] += all[i-1]
	}
	return all
}

// addAll adds as many numbers, each to its own.
func (s sums) addAll(numbers sums) {
	for i, x := range numbers {
		if next := i | (i + 1); next < len(s) {
			numbers[next] += x
		}
		s[i] += x
	}
}
