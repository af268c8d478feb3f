package memory

import (
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/order"
)

// kind tells apart what may have the same name.
type kind uint8

const (
	kindCounter kind = iota
	kindSequence
	kindBoard
	kindSliding
	kindHot
	kindDistinct // a counter of distinct members
	kindDistribution
)

// ident is what an entry is found by.
type ident struct {
	kind              kind
	window            counter.Window
	span              time.Duration // of a sliding window
	zone, group, name string
}

// body is what an entry holds.
type body interface {
	weight() int              // in entries
	walk(*disk.Codec, *ident) // writes it to a snapshot, or reads it
}

// entry is something with a name.
type entry struct {
	id      ident
	body    body
	weight  int
	expires weir.Micros
	index   int32  // in byExpiry
	older   *entry // changed before it
	newer   *entry // changed after it
	order   uint64 // of its last change
	saved   uint64 // the last snapshot that has it, or that is older than it
}

// room is all entries. When there are too many, new ones are rejected; see claim.
type room struct {
	most     int
	weight   int
	rejected int64 // calls
	entries  map[ident]*entry
	byExpiry order.Heap[*entry]
	oldest   *entry
	newest   *entry

	changes   uint64  // how many orders were given out
	snapshots uint64  // how many were begun
	saving    *saving // nil unless a snapshot is being taken
}

// findEntry returns an entry, or nil if it does not exist or has expired. Every change of an
// entry calls findEntry first, so it also tells a running snapshot about it in time.
func (r *room) findEntry(id ident, now weir.Micros) *entry {
	e := r.entries[id]
	if e != nil && now >= e.expires {
		r.remove(e)
		return nil
	}
	if e != nil {
		r.save(e)
	}
	return e
}

// findBody is findEntry with what the entry holds.
func findBody[B body](r *room, id ident, now weir.Micros) (e *entry, b B) {
	if e = r.findEntry(id, now); e != nil {
		b = e.body.(B)
	}
	return e, b
}

// findOr is findBody, and makes what is not there. Only keep adds it to the room.
func findOr[B body](r *room, id ident, now weir.Micros, create func() B) (e *entry, b B) {
	if e, b = findBody[B](r, id, now); e == nil {
		b = create()
		e = &entry{id: id, body: b}
	}
	return e, b
}

// grace is how long an entry is kept after nothing of it can be read any more: a clock
// that goes back by less finds everything as it was.
const grace = weir.Micros(10_000_000)

// reclaimAtOnce is how many expired entries a call removes before it is rejected, so that no call
// pays for all that others left behind.
const reclaimAtOnce = 256

// claim returns counter.ErrFull if there is no room for new names, or for new windows and
// members of names that exist. For these, there is as much room again as for new names, so that
// they go on counting while new names are rejected.
func (r *room) claim(now weir.Micros, made int, grows bool) error {
	full := func() bool { return made > 0 && made > r.most-r.weight || grows && r.weight-r.most >= r.most }
	for range reclaimAtOnce {
		if !full() || !r.reclaim(now) {
			break
		}
	}
	if full() {
		r.rejected++
		return counter.ErrFull
	}
	return nil
}

// claimOne is claim for a call that changes one entry, which has just been found or made.
func (r *room) claimOne(e *entry, now weir.Micros) error {
	if r.entries[e.id] == nil {
		return r.claim(now, 1, false)
	}
	return r.claim(now, 0, true)
}

// reclaim removes an entry that has expired, and reports whether there was one.
func (r *room) reclaim(now weir.Micros) bool {
	if len(r.byExpiry) == 0 || now < r.byExpiry[0].expires {
		return false
	}
	r.remove(r.byExpiry[0])
	return true
}

// keep is called after an entry was changed, or made, to keep it until it expires. Each time
// two expired entries are dropped, so that they do not fill the room.
func (r *room) keep(e *entry, now, expires weir.Micros) {
	expires += grace
	if r.entries[e.id] == nil {
		r.entries[e.id] = e
		e.expires, e.saved = expires, r.snapshots
		r.byExpiry.Push(e)
	} else {
		r.unlink(e)
		e.expires = expires
		r.byExpiry.Fix(e)
	}
	r.link(e)
	r.weigh(e)
	for range 2 {
		r.reclaim(now)
	}
}

// weigh takes note of what an entry weighs now.
func (r *room) weigh(e *entry) {
	weight := e.body.weight()
	r.weight += weight - e.weight
	e.weight = weight
}

func (r *room) remove(e *entry) {
	r.save(e)
	delete(r.entries, e.id)
	r.byExpiry.Remove(e)
	r.unlink(e)
	r.weight -= e.weight
}

func (r *room) link(e *entry) {
	r.changes++
	e.order = r.changes
	e.older, e.newer = r.newest, nil
	if r.newest != nil {
		r.newest.newer = e
	} else {
		r.oldest = e
	}
	r.newest = e
}

func (r *room) unlink(e *entry) {
	if r.saving != nil && r.saving.next == e {
		r.saving.next = e.newer
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		r.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		r.newest = e.older
	}
}

// Before is for the heap, which has the entry on top that expires first.
func (e *entry) Before(other *entry) bool { return e.expires < other.expires }

// Place is for the heap.
func (e *entry) Index() *int32 { return &e.index }
