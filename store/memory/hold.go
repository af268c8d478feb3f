package memory

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
	"unsafe"

	"github.com/weirhq/weir"
)

// hold is one that is open. Most have one part, which is in place. The lock of its shard
// guards it.
type hold struct {
	id      weir.HoldID
	expires weir.Micros // changes only under the locks of the parts' keys, too
	number  uint64      // in the order of reservation in its shard
	place   int         // in the shard's list
	parts   []heldPart
	one     [1]heldPart
}

// grow makes room for so many parts.
func (h *hold) grow(parts int) {
	if h.parts = h.one[:0]; parts > len(h.one) {
		h.parts = make([]heldPart, 0, parts)
	}
}

// add makes a part.
func (h *hold) add(tag string, limit *weir.Compiled) *heldPart {
	n := len(h.parts)
	h.parts = h.parts[:n+1]
	p := &h.parts[n]
	p.hold, p.tag, p.limit = h, tag, limit
	return p
}

// holdShard is a part of the holds, by their ids. Its lock comes before those of keys.
type holdShard struct {
	holdShardFields
	_ [2*shardSize - unsafe.Sizeof(holdShardFields{})]byte
}

type holdShardFields struct {
	mu          sync.Mutex
	directories []directory // of what is open, and what has ended
	shift       int         // what is left of an id's family is the number of a directory
	open        openHolds
	ended       endedHolds
	parts       int    // of open holds
	numbers     uint64 // given to holds so far
}

// openHolds are the records of open holds. Those of holds that have ended are used again.
type openHolds struct {
	records []*hold
	free    []int // places in records
	count   int
	hand    int // the place to look at next, whether the hold has expired
}

// maxSpare is how many records wait to be used again.
const maxSpare = 64

func (o *openHolds) add() *hold {
	o.count++
	if n := len(o.free); n > 0 {
		place := o.free[n-1]
		o.free = o.free[:n-1]
		if o.records[place] == nil {
			o.records[place] = new(hold)
		}
		o.records[place].place = place
		return o.records[place]
	}
	h := &hold{place: len(o.records)}
	o.records = append(o.records, h)
	return h
}

func (o *openHolds) remove(h *hold) {
	place := h.place
	if o.count--; len(o.free) < maxSpare {
		*h = hold{}
	} else {
		o.records[place] = nil
	}
	o.free = append(o.free, place)
}

// Reserve implements weir.HoldStore.
func (s *Store) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	if err := cmp.Or(ctx.Err(), weir.ValidateReserve(&r, ops)); err != nil {
		return dst, err
	}
	c, now := s.core.Load(), s.now()
	sh := c.holdShard(r.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	h, err := c.beginLocked(sh, &r, now, len(ops))
	if err != nil {
		return dst, err
	}
	for i := range ops {
		if ops[i].IsHeld() {
			h.add(r.Tag(i), ops[i].Limit)
		}
	}
	first := len(dst)
	if len(ops) == 1 {
		dst = append(dst, weir.Decision{})
		s.take(c, now, &ops[0], &dst[first], h)
	} else {
		dst = s.takeMany(c, now, dst, ops, h)
	}
	sh.concludeLocked(h, weir.Allowed(dst[first:]))
	return dst, nil
}

// ReserveOne does what Reserve does for one op without a tag, without slices for the op and
// the decision.
func (s *Store) ReserveOne(ctx context.Context, id weir.HoldID, ttl time.Duration, key string, limit *weir.Compiled, cost int64) (d weir.Decision, err error) {
	if err := ctx.Err(); err != nil {
		return d, err
	}
	var r weir.Reservation // not a literal, which would be built elsewhere and copied here
	r.ID, r.TTL = id, ttl
	var op weir.Op
	op.Key, op.Limit, op.Cost = key, limit, cost
	if err := weir.ValidateReserve(&r, nil); err != nil {
		return d, err
	}
	if err := op.Validate(); err != nil {
		return d, err
	}
	c, now := s.core.Load(), s.now()
	sh := c.holdShard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	h, err := c.beginLocked(sh, &r, now, 1)
	if err != nil {
		return d, err
	}
	h.add("", limit)
	s.take(c, now, &op, &d, h)
	sh.concludeLocked(h, d.Allowed)
	return d, nil
}

var errHoldExists = errors.New("memory: there is a hold with this id already; use a random one")

// beginLocked opens a hold for what is to be charged.
func (c *core) beginLocked(sh *holdShard, r *weir.Reservation, now weir.Micros, parts int) (*hold, error) {
	c.passLocked(sh, now)
	h, err := c.openLocked(sh, r.ID, now, parts)
	if err == nil {
		h.expires = now.Add(r.TTL)
	}
	return h, err
}

// concludeLocked keeps a hold if what it holds was charged.
func (sh *holdShard) concludeLocked(h *hold, allowed bool) {
	if allowed {
		sh.addLocked(h)
	} else {
		sh.open.remove(h)
	}
}

// openLocked makes a hold that is not in the directory yet.
func (c *core) openLocked(sh *holdShard, id weir.HoldID, now weir.Micros, parts int) (*hold, error) {
	if !c.makeHoldRoomLocked(sh, now, parts) {
		return nil, errTooManyHolds
	}
	if _, other, done := c.lookLocked(sh, id, now); other != nil || done != nil {
		return nil, errHoldExists
	}
	h := sh.open.add()
	h.id = id
	h.grow(parts)
	return h, nil
}

// addLocked adds a hold to its directory.
func (sh *holdShard) addLocked(h *hold) {
	sh.numbers++
	h.number = sh.numbers
	sh.parts += len(h.parts)
	sh.putLocked(h.id, openRef(h.place))
}

// lookLocked finds a hold as it is now: one that is open, with its place in the directory,
// or the record of one that has ended.
func (c *core) lookLocked(sh *holdShard, id weir.HoldID, now weir.Micros) (at int, h *hold, done endedHold) {
	at, found := sh.findLocked(id)
	if !found {
		return at, nil, nil
	}
	d := sh.directory(id)
	ref := d.ref(at)
	if ref.isOpen() {
		h := sh.open.records[ref.place()]
		if h.expires > now {
			return at, h, nil
		}
		c.expireLocked(sh, at, h, now)
		ref = d.ref(at)
	}
	if done = sh.ended.record(ref); done.until() <= now {
		d.remove(at)
		done.forget()
		return at, nil, nil
	}
	return at, nil, done
}

// expireLocked ends a hold whose time has come.
func (c *core) expireLocked(sh *holdShard, at int, h *hold, now weir.Micros) {
	for i := range h.parts {
		p := &h.parts[i]
		keys := c.shardOf(p.id)
		keys.mu.Lock()
		if p.listed {
			c.endDueLocked(keys, p.id, max(now, h.expires)) // with the others of the key, in their order
		}
		keys.mu.Unlock()
	}
	c.endLocked(sh, at, h, weir.HoldExpired, h.expires)
}

// endLocked remembers the outcome of an open hold, until it would have expired, and for a
// while at least.
func (c *core) endLocked(sh *holdShard, at int, h *hold, state weir.HoldState, ended weir.Micros) {
	sh.parts -= len(h.parts)
	if state != weir.HoldSettled {
		h.parts = nil
	}
	sh.directory(h.id).set(at, sh.ended.add(h, state, max(h.expires, ended.Add(weir.HoldMemory))))
	sh.open.remove(h)
}
