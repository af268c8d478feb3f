package memory

import (
	"cmp"
	"context"
	"math"
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
	place   int32       // in the shard's list
	before  uint32      // the first snapshot that has it; 0 if it is not open
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
	shift       uint        // what is left of an id's family is the number of a directory
	open        openHolds
	ended       endedHolds
	parts       int    // of open holds
	snapshots   uint32 // begun so far
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
		o.records[place].place = int32(place)
		return o.records[place]
	}
	h := &hold{place: int32(len(o.records))}
	o.records = append(o.records, h)
	return h
}

func (o *openHolds) remove(h *hold) {
	place := int(h.place)
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
	sh := c.holdShard(&r.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	h, err := c.openLocked(sh, &r.ID, now, r.TTL, len(ops))
	if err != nil {
		return dst, err
	}
	for i := range ops {
		if ops[i].IsHeld() {
			h.add(r.Tag(i), ops[i].Limit).client = r.ClientNumber()
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

// concludeLocked keeps a hold if what it holds was charged.
func (sh *holdShard) concludeLocked(h *hold, allowed bool) {
	if allowed {
		sh.addLocked(h)
	} else {
		sh.open.remove(h)
	}
}

// openLocked makes a hold that is not in the directory yet, for what is to be charged.
func (c *core) openLocked(sh *holdShard, id *weir.HoldID, now weir.Micros, ttl time.Duration, parts int) (*hold, error) {
	c.passLocked(sh, now)
	if !c.makeHoldRoomLocked(sh, now, parts) {
		return nil, errTooManyHolds
	}
	if _, open, done := c.lookLocked(sh, id, now); open != nil || done != nil {
		return nil, weir.ErrHoldExists
	}
	h := sh.open.add()
	h.id, h.expires = *id, now.Add(ttl)
	h.grow(parts)
	return h, nil
}

// addLocked adds a hold to its directory.
func (sh *holdShard) addLocked(h *hold) {
	h.before = sh.snapshots + 1
	sh.parts += len(h.parts)
	sh.putLocked(&h.id, openRef(int(h.place)))
}

// lookLocked finds a hold as it is now: one that is open, with its slot in the directory, or
// the record of one that has ended.
func (c *core) lookLocked(sh *holdShard, id *weir.HoldID, now weir.Micros) (at *holdSlot, h *hold, done endedHold) {
	if at = sh.findLocked(id); at == nil {
		return nil, nil, nil
	}
	if ref := at.ref(); ref.isOpen() {
		if h = sh.open.records[ref.place()]; h.expires > now {
			return at, h, nil
		}
		c.expireLocked(sh, at, h, math.MaxInt)
	}
	if done = sh.ended.record(at.ref()); done.until() <= now {
		sh.removeLocked(id)
		done.forget()
		return nil, nil, nil
	}
	return at, nil, done
}

// expireLocked ends a hold whose time has come. Of a key that gets its units back, others that
// expired before it end first. If these are more than a number for one of the keys, the hold stays open.
func (c *core) expireLocked(sh *holdShard, at *holdSlot, h *hold, others int) {
	ended := true
	for i := range h.parts {
		p := &h.parts[i]
		keys := c.shardOf(p.id)
		keys.mu.Lock()
		if p.isListed() && p.releases() && others == math.MaxInt {
			c.releaseDueLocked(keys, p.id, h.expires)
		}
		for left := others; p.isListed() && left >= 0; left-- {
			slot, _ := keys.table.find(p.id)
			if p.releases() {
				c.endFirstLocked(keys, slot)
			} else {
				keys.letGoLocked(slot, p)
				p.lapsed = true
			}
		}
		ended = ended && !p.isListed()
		keys.mu.Unlock()
	}
	if ended {
		c.endLocked(sh, at, h, weir.HoldExpired, h.expires, nil)
	}
}

// endLocked remembers the outcome of an open hold, until it would have expired, and for a
// while at least.
func (c *core) endLocked(sh *holdShard, at *holdSlot, h *hold, state weir.HoldState, ended weir.Micros, parts []weir.SettledPart) {
	sh.parts -= len(h.parts)
	at.set(sh.ended.add(&h.id, parts, state, max(h.expires, ended.Add(weir.HoldMemory))))
	sh.open.remove(h)
}
