package memory

import (
	"cmp"
	"context"
	"math"
	"sync"
	"unsafe"

	"github.com/weirhq/weir"
)

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
	copying     bool // a snapshot has begun, and has not copied the shard yet
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
	o := opening{shard: sh, reservation: &r, expires: now.Add(r.TTL)}
	if err := c.openLocked(&o, now, len(ops)); err != nil {
		return dst, err
	}
	first := len(dst)
	if len(ops) == 1 {
		dst = append(dst, weir.Decision{})
		s.take(c, now, &ops[0], &dst[first], &o)
	} else {
		dst = s.takeMany(c, now, dst, ops, &o)
	}
	if weir.Allowed(dst[first:]) {
		o.concludeLocked()
	}
	return dst, nil
}

// openLocked is whether a hold can be opened, which is not in the directory yet and has room.
func (c *core) openLocked(o *opening, now weir.Micros, parts int) error {
	sh, id := o.shard, &o.reservation.ID
	c.passLocked(sh, now)
	if !c.makeHoldRoomLocked(sh, now, parts) {
		return errTooManyHolds
	}
	if _, open, done := c.lookLocked(sh, id, now); open != nil || done != nil {
		return weir.ErrHoldExists
	}
	return nil
}

// concludeLocked opens the hold on what was charged.
func (o *opening) concludeLocked() *hold {
	if o.first == nil { // on nothing
		o.add()
	}
	sh, h := o.shard, o.first
	if h.record = isHold; sh.copying {
		h.record = isNewHold
	}
	sh.open.count++
	sh.putLocked(&h.id, openRef(int(o.place)))
	return h
}

// lookLocked finds a hold as it is now: one that is open, with its slot in the directory, or
// the record of one that has ended.
func (c *core) lookLocked(sh *holdShard, id *weir.HoldID, now weir.Micros) (at *holdSlot, h *hold, done endedHold) {
	if at = sh.findLocked(id); at == nil {
		return nil, nil, nil
	}
	if ref := at.ref(); ref.isOpen() {
		if h = sh.open.at(ref.place()); h.expires > now {
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
	for _, p := range sh.open.parts(h) {
		keys := c.shardOf(p.key())
		keys.mu.Lock()
		if p.isListed() && p.releases() && others == math.MaxInt {
			c.releaseDueLocked(keys, p.key(), h.expires)
		}
		for left := others; p.isListed() && left >= 0; left-- {
			slot, k := keys.heldLocked(p.key())
			if p.releases() {
				c.endFirstLocked(keys, slot, k)
			} else {
				c.lapseLocked(keys, slot, p, 0)
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
	place := at.ref().place()
	at.set(sh.ended.add(&h.id, parts, state, max(h.expires, ended.Add(weir.HoldMemory))))
	sh.open.remove(place)
}
