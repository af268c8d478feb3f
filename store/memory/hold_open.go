package memory

import (
	"iter"
	"math/bits"
	"unsafe"

	"github.com/weirhq/weir"
)

// hold is one that is open, or one part of it: what it charged on one key. A hold of several parts is as many
// records, of which the first is in the directory. The lock of its shard guards a record, and
// that of the key's shard what it has among the holds of the key.
type hold struct {
	id      weir.HoldID
	expires weir.Micros // changes only under both locks
	cost    int64       // units that were charged
	time    weir.Micros // of a bucket that does not shape, Held.At; otherwise the receipt
	under   *terms      // nil if the hold has no part
	place   int32       // in the order of the key's holds by expiry
	number  int32       // in their order of reservation
	next    int32       // where the record of the next part is, from 1; 0 if this is the last one
	client  uint16      // whose share of the key's holds it counts for; 0 for nobody's
	record  recordState
	part    partState
}

const _ = uint(64 - unsafe.Sizeof(hold{})) // each is a cache line

// recordState is what a record is for. Its zero value is none, or a further part.
type recordState uint8

const (
	isHold    recordState = iota + 1
	isNewHold             // opened since a snapshot began that is still being written
)

// partState is what a key knows of a hold on it.
type partState uint8

const (
	isUnlisted partState = iota // nothing
	isListed                    // it has something to give back, unless the key was reset
	hasLapsed                   // its time has come
)

// openHolds are the records of a shard, in chunks: a chunk that is in use never moves.
type openHolds struct {
	chunks  []*holdChunk
	roomy   []int32 // the numbers of those that are not full; the last one is filled first
	count   int     // holds
	records int     // with all of their parts
	hand    int     // the place where pass goes on
	spare   *holdChunk
}

// holdChunk has a bit for each record in use.
type holdChunk struct {
	holds [chunkHolds]hold
	used  uint64
}

// chunkHolds is how many records fit into 4096 bytes, which the allocator has a size for.
const (
	chunkHolds = 63
	fullChunk  = 1<<chunkHolds - 1
)

// add makes a record, and returns its place.
func (o *openHolds) add() (h *hold, place int32) {
	if len(o.roomy) == 0 {
		o.roomy = append(o.roomy, int32(len(o.chunks)))
		o.chunks = append(o.chunks, nil)
	}
	last := len(o.roomy) - 1
	number := o.roomy[last]
	c := o.chunks[number]
	if c == nil {
		if c, o.spare = o.spare, nil; c == nil {
			c = new(holdChunk)
		}
		o.chunks[number] = c
	}
	at := bits.TrailingZeros64(^c.used)
	if c.used |= 1 << at; c.used == fullChunk {
		o.roomy = o.roomy[:last]
	}
	o.records++
	return &c.holds[at], number*chunkHolds + int32(at)
}

// at returns the record at a place, which is in use.
func (o *openHolds) at(place int) *hold { return &o.chunks[place/chunkHolds].holds[place%chunkHolds] }

// remove gives back the records of the hold at a place. One empty chunk keeps its memory.
func (o *openHolds) remove(place int) {
	o.count--
	for next := int32(place + 1); next > 0; o.records-- {
		number, at := (next-1)/chunkHolds, (next-1)%chunkHolds
		c := o.chunks[number]
		if c.used == fullChunk {
			o.roomy = append(o.roomy, number)
		}
		c.used &^= 1 << at
		next, c.holds[at] = c.holds[at].next, hold{}
		if c.used == 0 {
			o.chunks[number], o.spare = nil, c
		}
	}
}

// pass returns the next hold in turn; nil at the end of a chunk.
func (o *openHolds) pass() *hold {
	number, at := o.hand/chunkHolds, o.hand%chunkHolds
	if number >= len(o.chunks) {
		number, at = 0, 0
	}
	for ; o.count > 0 && at < chunkHolds; at++ {
		if c := o.chunks[number]; c == nil || c.used>>at == 0 {
			break
		} else if h := &c.holds[at]; h.record > 0 {
			o.hand = number*chunkHolds + at + 1
			return h
		}
	}
	o.hand = (number + 1) * chunkHolds
	return nil
}

// all yields the holds of a shard.
func (o *openHolds) all() iter.Seq[*hold] {
	return func(yield func(*hold) bool) {
		for _, c := range o.chunks {
			for at := 0; c != nil && at < chunkHolds; at++ {
				if h := &c.holds[at]; h.record > 0 && !yield(h) {
					return
				}
			}
		}
	}
}

// parts yields the parts of a hold, with their numbers.
func (o *openHolds) parts(h *hold) iter.Seq2[int, *hold] {
	return func(yield func(int, *hold) bool) {
		p := h
		for i := 0; p.under != nil && yield(i, p) && p.next > 0; i++ {
			p = o.at(int(p.next - 1))
		}
	}
}

// opening is a hold that is to be opened on what is charged.
type opening struct {
	shard       *holdShard
	reservation *weir.Reservation
	expires     weir.Micros
	first, last *hold
	place       int32 // of the first
}

// add makes the record of one more part.
func (o *opening) add() *hold {
	h, place := o.shard.open.add()
	h.id, h.expires = o.reservation.ID, o.expires
	if o.first == nil {
		o.first, o.place = h, place
	} else {
		o.last.next = place + 1
	}
	o.last = h
	return h
}
