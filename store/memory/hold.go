package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/dueheap"
)

// hold is one that is open, or was.
type hold struct {
	id      weir.HoldID
	number  uint64 // in the order of reservation
	state   weir.HoldState
	expires weir.Micros
	until   weir.Micros // when the next thing happens to it: it expires, or is forgotten
	parts   []*heldPart
	settled []weir.SettledPart
	place   int
}

// Before and Place make holds items of a heap. Two that expire together have an order, too.
func (h *hold) Before(other *hold) bool {
	if h.until != other.until {
		return h.until < other.until
	}
	return bytes.Compare(h.id[:], other.id[:]) < 0
}
func (h *hold) Place() *int { return &h.place }

// heldPart is a hold's charge on one key. The lock of the key's shard guards it.
type heldPart struct {
	weir.Held
	part
	tag      string
	limit    *weir.Compiled
	expires  weir.Micros
	estimate int64 // of what was not charged yet
	gone     bool  // the key was reset: there is nothing to give back any more
}

// releases reports whether the units come back if the hold expires.
func (p *heldPart) releases() bool { return p.limit.Limit().Release }

// holds are all of a store. Its lock comes before those of shards.
type holds struct {
	mu    sync.Mutex
	byID  map[weir.HoldID]*hold
	due   dueheap.Heap[*hold] // to expire
	ended dueheap.Heap[*hold] // to be forgotten
	open  int                 // parts

	numbers uint64 // given to holds so far
}

// maxRemembered bounds the holds that are open or remembered, in keys of the store. Those
// that have ended are forgotten for those to come: a repeated call then gets no answer,
// but an error instead of a hold lets a request pass unlimited if its rule fails open.
const maxRemembered = 4

var errTooManyHolds = errors.New("memory: too many holds are open; settle them sooner, or raise MaxKeys")

// Reserve implements weir.HoldStore.
func (s *Store) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	if err := cmp.Or(ctx.Err(), weir.ValidateReserve(&r, ops)); err != nil {
		return dst, err
	}
	c, now := s.core.Load(), s.now()
	c.expire(now)
	c.holds.mu.Lock()
	defer c.holds.mu.Unlock()
	if !c.holds.makeRoomLocked(len(ops), s.maxKeys) {
		return dst, errTooManyHolds
	}
	if c.holds.byID[r.ID] != nil {
		return dst, errors.New("memory: there is a hold with this id already; use a random one")
	}
	h := &hold{id: r.ID, state: weir.HoldOpen, expires: now.Add(r.TTL)}
	h.until = h.expires
	for i := range ops {
		if ops[i].Look {
			continue
		}
		h.parts = append(h.parts, &heldPart{tag: r.Tag(i), limit: ops[i].Limit, expires: h.expires})
	}
	first := len(dst)
	dst = s.takeMany(c, dst, ops, h)
	if weir.Allowed(dst[first:]) {
		c.holds.addLocked(h)
	}
	return dst, nil
}

func (all *holds) addLocked(h *hold) {
	all.numbers++
	h.number = all.numbers
	all.byID[h.id] = h
	if all.open += len(h.parts); h.state == weir.HoldOpen {
		all.due.Push(h)
	} else {
		all.ended.Push(h)
	}
}

// makeRoomLocked reports whether there is room for one more, with so many parts. What is held
// cannot make room, so it may fill only a part of the store.
func (all *holds) makeRoomLocked(parts int, maxKeys int64) bool {
	for len(all.ended) > 0 && int64(len(all.byID)) >= maxKeys/maxRemembered {
		all.forgetLocked(all.ended[0])
	}
	return int64(all.open+parts) <= maxKeys/2 && int64(len(all.byID)) < maxKeys/maxRemembered
}

// forgetLocked is the end of what has ended.
func (all *holds) forgetLocked(h *hold) {
	all.ended.Remove(h)
	delete(all.byID, h.id)
}

// keepLocked takes hold of what was charged.
func (h *hold) keepLocked(parts []part, charges []weir.Pending) {
	next := 0
	for i := range charges {
		if charges[i].Op.Look {
			continue
		}
		p := h.parts[next]
		p.part, p.Held = parts[i], charges[i].Op.Held(charges[i].Next)
		p.shard.holdLocked(p)
		next++
	}
}

// holdLocked notes that a key has a hold.
func (sh *shard) holdLocked(p *heldPart) {
	if sh.held == nil {
		sh.held = make(map[id][]*heldPart)
	}
	sh.held[p.id] = append(sh.held[p.id], p)
	if p.releases() {
		sh.releases.Store(min(sh.releases.Load(), int64(p.expires)))
	}
}

// letGoLocked is its end.
func (sh *shard) letGoLocked(p *heldPart) {
	left := sh.held[p.id]
	if i := slices.Index(left, p); i >= 0 { // else the key was reset
		left = slices.Delete(left, i, i+1)
	}
	if len(left) == 0 {
		delete(sh.held, p.id)
	} else {
		sh.held[p.id] = left
	}
}

// denyFullLocked denies what would be one hold too many for a key, and so all.
func denyFullLocked(decisions []weir.Decision, now weir.Micros, parts []part, charges []weir.Pending) bool {
	isFull := func(i int) bool {
		return !charges[i].Op.Look && len(parts[i].shard.held[parts[i].id]) >= weir.MaxHolds
	}
	full := false
	for i := range parts {
		full = full || isFull(i)
	}
	if !full {
		return false
	}
	peeked := weir.PeekAll(make([]weir.Decision, 0, len(parts)), now, charges)
	for i, p := range parts {
		decisions[i] = peeked[i]
		if isFull(i) {
			first := slices.MinFunc(p.shard.held[p.id], func(a, b *heldPart) int { return cmp.Compare(a.expires, b.expires) })
			decisions[i].Allowed, decisions[i].RetryAfter, decisions[i].Delay = false, first.expires.Sub(now), 0
		}
	}
	return true
}

// Settle implements weir.HoldStore.
func (s *Store) Settle(ctx context.Context, settlement weir.Settlement) (weir.Settled, error) {
	if err := cmp.Or(ctx.Err(), settlement.Validate()); err != nil {
		return weir.Settled{}, err
	}
	c, now := s.core.Load(), s.now()
	c.expire(now)
	c.holds.mu.Lock()
	defer c.holds.mu.Unlock()
	h, repeated := c.holds.byID[settlement.ID], false
	if h == nil && settlement.Ops != nil && settlement.Used != nil {
		var err error
		if h, err = s.lateLocked(c, now, &settlement); err != nil {
			return weir.Settled{}, err
		}
	}
	switch {
	case h == nil:
		return weir.Settled{}, nil
	case h.state != weir.HoldOpen:
		repeated = h.state == weir.HoldSettled
	case settlement.Used == nil:
		c.extend(h, now.Add(settlement.TTL))
	default:
		s.settle(c, h, now, &settlement)
	}
	if h.state == weir.HoldOpen {
		open := weir.Settled{State: h.state, Expires: h.expires}
		for _, p := range h.parts {
			open.Parts = append(open.Parts, weir.SettledPart{Tag: p.tag, Cost: p.Cost})
		}
		return open, nil
	}
	return weir.Settled{State: h.state, Parts: slices.Clone(h.settled), Repeated: repeated}, nil
}

// lateLocked opens a hold on which nothing was charged yet.
func (s *Store) lateLocked(c *core, now weir.Micros, settlement *weir.Settlement) (*hold, error) {
	if !c.holds.makeRoomLocked(len(settlement.Ops), s.maxKeys) {
		return nil, errTooManyHolds
	}
	h := &hold{id: settlement.ID, state: weir.HoldOpen, expires: now, until: now}
	for i := range settlement.Ops {
		op := &settlement.Ops[i]
		p := &heldPart{tag: settlement.Tag(i), limit: op.Limit, expires: now, estimate: op.Cost}
		p.id, p.shard = c.identify(op)
		h.parts = append(h.parts, p)
	}
	c.holds.addLocked(h)
	return h, nil
}

func (c *core) extend(h *hold, expires weir.Micros) {
	h.expires, h.until = expires, expires
	c.holds.due.Fix(h)
	for _, p := range h.parts {
		p.shard.mu.Lock()
		if p.expires = expires; p.releases() { // it may be sooner than before
			p.shard.releases.Store(min(p.shard.releases.Load(), int64(expires)))
		}
		p.shard.mu.Unlock()
	}
}

// settle makes the cost of each part what was used.
func (s *Store) settle(c *core, h *hold, now weir.Micros, settlement *weir.Settlement) {
	overruns := int64(0)
	for _, p := range h.parts {
		estimate := p.Cost + p.estimate
		n := settlement.Units(p.tag, estimate)
		h.settled = append(h.settled, weir.SettledPart{Tag: p.tag, Cost: estimate, Used: n})
		if n > p.Cost {
			overruns++
		}
	}
	if overruns > 0 && !c.reserve(overruns, s.maxKeys) { // one that was fully reset has gone
		c.makeRoom(now, overruns, s.maxKeys)
	}
	for i, p := range h.parts {
		done := &h.settled[i]
		p.shard.mu.Lock()
		p.shard.letGoLocked(p)
		switch {
		case done.Used < p.Cost:
			c.releaseLocked(p, p.Cost-done.Used)
		case done.Used > p.Cost:
			op := weir.Op{Limit: p.limit, Cost: done.Used - p.Cost, Always: true}
			done.Excess = p.shard.chargeLocked(p.id, &op, now, &overruns)
		}
		p.shard.mu.Unlock()
	}
	c.keys.Add(-overruns) // room that was not needed
	c.end(h, weir.HoldSettled, now)
}

// chargeLocked charges an op, and returns what of it was too much. Room is for keys that
// have to be made.
func (sh *shard) chargeLocked(k id, op *weir.Op, now weir.Micros, room *int64) int64 {
	slot, found := sh.table.find(k)
	charge := weir.Pending{Op: op}
	if found {
		charge.Prev, charge.Tail = sh.table.entries[slot].state, sh.tail(slot)
	}
	var d weir.Decision
	charge.Decide(&d, now)
	if sh.keepLocked(k, slot, found, &charge, d.Allowed) {
		*room--
	}
	return d.Excess
}

// releaseLocked gives back units of a part, which is on the shard's list no more.
func (c *core) releaseLocked(p *heldPart, units int64) {
	slot, found := p.shard.table.find(p.id)
	if !found || p.gone {
		return
	}
	var open []*weir.Held
	if a := p.limit.Limit().Algorithm; a == weir.TokenBucket || a == weir.LeakyBucket { // only these need them
		for _, other := range p.shard.held[p.id] {
			open = append(open, &other.Held)
		}
	}
	e := &p.shard.table.entries[slot]
	if e.state = p.limit.Release(e.state, p.shard.tail(slot), p.Held, units, open); e.state == (weir.State{}) {
		p.shard.removeLocked(slot)
		c.keys.Add(-1)
		return
	}
	p.shard.earliest.Store(min(p.shard.earliest.Load(), int64(e.state.Fresh)))
}

// end remembers an outcome until the hold would have expired, and for a while at least.
func (c *core) end(h *hold, state weir.HoldState, now weir.Micros) {
	c.holds.due.Remove(h)
	c.holds.open -= len(h.parts)
	h.state, h.parts, h.until = state, nil, max(h.expires, now.Add(weir.HoldMemory))
	c.holds.ended.Push(h)
}

// expire ends the holds whose time has come, one after the other, and forgets those that
// ended long ago. No lock may be held.
func (c *core) expire(now weir.Micros) {
	c.holds.mu.Lock()
	defer c.holds.mu.Unlock()
	var changed map[*shard]bool // each is looked through once, however many expire together
	for len(c.holds.due) > 0 && c.holds.due[0].until <= now {
		h := c.holds.due[0]
		for _, p := range h.parts {
			p.shard.mu.Lock()
			p.shard.letGoLocked(p)
			if p.releases() {
				c.releaseLocked(p, p.Cost)
				if changed == nil {
					changed = make(map[*shard]bool)
				}
				changed[p.shard] = true
			}
			p.shard.mu.Unlock()
		}
		c.end(h, weir.HoldExpired, h.expires)
	}
	for len(c.holds.ended) > 0 && c.holds.ended[0].until <= now {
		c.holds.forgetLocked(c.holds.ended[0])
	}
	for sh := range changed {
		sh.mu.Lock()
		sh.nextReleaseLocked()
		sh.mu.Unlock()
	}
}

// nextReleaseLocked finds when the next hold of the shard gives its units back.
func (sh *shard) nextReleaseLocked() {
	next := int64(math.MaxInt64)
	for _, open := range sh.held {
		for _, p := range open {
			if p.releases() {
				next = min(next, int64(p.expires))
			}
		}
	}
	sh.releases.Store(next)
}

// resetLocked lets holds of a key have nothing to give back.
func (sh *shard) resetLocked(k id) {
	for _, p := range sh.held[k] {
		p.gone = true
	}
	delete(sh.held, k)
}
