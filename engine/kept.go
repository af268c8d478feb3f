package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/order"
)

// maxKept bounds the holds that were reserved while the store was unavailable.
const maxKept = 10_000

// kept are holds that only this engine knows.
type kept struct {
	count atomic.Int64 // of byID, which is empty nearly always
	mu    sync.Mutex
	byID  map[weir.HoldID]*keptHold
	due   order.Heap[*keptHold]
}

// keptHold was reserved while the store was unavailable. Its open parts are charged when it
// is settled; the local ones are held in the store of this process.
type keptHold struct {
	id    weir.HoldID
	until weir.Micros // when it is forgotten
	index int32

	turn    chan struct{} // whoever settles it puts a word there, and takes it out again
	expires weir.Micros
	open    []keptPart
	stored  bool     // there are parts in the store, on servers that have answered
	local   bool     // there are local parts
	settled *Settled // what has become of those
	unknown bool     // to the store, when it was settled
	done    *Settled // what has become of all
}

type keptPart struct {
	tag
	op weir.Op
}

func (k *keptHold) Before(other *keptHold) bool { return k.until < other.until }

func (k *keptHold) Index() *int32 { return &k.index }

// holdOf returns a hold; nil if there is none.
func (k *kept) holdOf(id weir.HoldID, clock func() weir.Micros) *keptHold {
	if k.count.Load() == 0 {
		return nil
	}
	now := clock()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgetLocked(now)
	return k.byID[id]
}

func (k *kept) forgetLocked(now weir.Micros) {
	for len(k.due) > 0 && k.due[0].until <= now {
		delete(k.byID, k.due[0].id)
		k.due.Remove(k.due[0])
	}
	k.count.Store(int64(len(k.byID)))
}

// keep keeps a hold, and reports whether there was room.
func (k *kept) keep(h *keptHold, now weir.Micros) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgetLocked(now)
	if len(k.byID) >= maxKept {
		return false
	}
	if k.byID == nil {
		k.byID = make(map[weir.HoldID]*keptHold)
	}
	k.byID[h.id] = h
	k.count.Store(int64(len(k.byID)))
	k.due.Push(h)
	return true
}

// keepUntil changes until when a hold is known.
func (k *kept) keepUntil(h *keptHold, until weir.Micros) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.until = until; k.byID[h.id] == h {
		k.due.Fix(h)
	}
}

// reserveLocal reserves what the store has not decided, by on_failure of each rule.
func (e *Engine) reserveLocal(ctx context.Context, deadline time.Time, in *installed, v *Verdict) error {
	h, hold := &v.charging, &keptHold{id: v.charging.id, turn: make(chan struct{}, 1), stored: v.Hold != (weir.HoldID{})}
	h.began = e.clock()
	local := func(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
		if !hold.local {
			return e.takeLocal(ctx, dst, ops...)
		}
		e.seedAll(ctx, ops)
		decisions, err := e.localHolds.Reserve(ctx, dst, weir.Reservation{ID: h.id, TTL: h.ttl, Tags: h.tags, Client: h.client}, ops...)
		if errors.Is(err, weir.ErrHoldsFull) || errors.Is(err, weir.ErrHoldExists) {
			hold.local = false
			return e.local.Take(ctx, dst, ops...)
		}
		return decisions, err
	}
	h.tags = h.tags[:0]
	holds := false
	for i := range v.inGroup(enforced) {
		r := &v.Results[i]
		held := h.holds(v.Results[i : i+1])
		if r.Local {
			e.addTag(v, r, 0)
			hold.local = hold.local || held
		}
		holds = holds || held && !r.Asked
	}
	if err := e.decideRest(ctx, deadline, in, v, local); err != nil || !v.Allowed || !holds {
		return err
	}
	for i := range v.inGroup(enforced) {
		r := &v.Results[i]
		if r.held = h.holds(v.Results[i : i+1]); r.held && !r.Asked && !r.isPlace() {
			// The verdict's key does not outlive it.
			hold.open = append(hold.open, keptPart{e.tagOf(v, r, 0), weir.Op{Key: strings.Clone(r.Key), Limit: r.Compiled, Cost: r.Cost}})
		}
	}
	now := e.clock()
	hold.expires = now.Add(h.ttl)
	hold.until = hold.expires.Add(weir.HoldMemory)
	if !e.kept.keep(hold, now) {
		e.observeHold(LostHold, nil) // it stays at the estimate
		return nil
	}
	v.Hold, v.HoldExpires = h.id, hold.expires
	e.issued.put(issuedKey(h.id), struct{}{})
	return nil
}

// settleKept settles or extends a hold that only this engine knows.
func (e *Engine) settleKept(ctx context.Context, h *keptHold, s *settlement) (Settled, error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return Settled{}, ctx.Err()
	}
	now := e.clock()
	switch {
	case h.done != nil:
		again := *h.done
		again.Repeated = true
		return again, nil
	case h.settled == nil && now >= h.expires:
		return Settled{State: weir.HoldExpired}, nil
	}
	done := Settled{State: weir.HoldSettled}
	switch {
	case h.settled != nil: // the last time, when the store was unavailable
		done = *h.settled
	case h.local:
		var err error
		if done, err = e.settleStored(ctx, time.Time{}, e.localHolds, s, nil); err != nil || done.State == weir.HoldExpired || done.State == weir.HoldUnknown {
			return done, err
		}
	}
	if s.used == nil {
		done.until = h.expires
		if h.expires = now.Add(s.ttl); h.local {
			h.expires = min(h.expires, done.Expires)
		}
		if h.stored {
			stored, err := e.settleStored(ctx, time.Time{}, e.holds, s, nil)
			if err != nil || stored.State != weir.HoldOpen {
				return stored, err
			}
			h.expires, done.Parts = min(h.expires, stored.Expires), slices.Concat(done.Parts, stored.Parts)
		}
		e.kept.keepUntil(h, h.expires.Add(weir.HoldMemory))
		done.State, done.Expires = weir.HoldOpen, h.expires
		for _, p := range h.open {
			done.Parts = addPart(done.Parts, p.tag, p.op.Cost, 0, 0)
		}
		return done, nil
	}
	h.settled = &done
	open, err := e.chargeOpen(ctx, h, s)
	if err != nil {
		return Settled{}, err
	}
	done.Parts, done.spent = slices.Concat(done.Parts, open.Parts), slices.Concat(done.spent, open.spent)
	h.done = &done
	e.kept.keepUntil(h, max(h.until, now.Add(weir.HoldMemory)))
	return done, nil
}

// lateHold is the sibling under which a hold is charged that the store does not know.
const lateHold = 1 << 7

// chargeOpen charges the open parts of a hold with what was used. The store may know the
// hold after all, if it was its answer that was lost. Else what may still arrive of it is
// cancelled, and the parts are charged, each by a call that can be repeated.
//
// If some servers of the store have parts of the hold, the open parts are settled where they are, whether or
// not they have arrived there.
func (e *Engine) chargeOpen(ctx context.Context, h *keptHold, s *settlement) (done Settled, err error) {
	if h.stored || len(h.open) > 0 && !h.unknown {
		stored, err := e.settleStored(ctx, time.Time{}, e.holds, s, nil)
		if err != nil || !h.stored && stored.State != weir.HoldUnknown {
			return stored, err
		}
		h.unknown, done = true, stored
	}
	if len(h.open) == 0 {
		return done, nil
	}
	call := weir.Settlement{ID: h.id, Used: func(string, int64) int64 { return 0 }}
	for _, p := range h.open {
		call.Ops, call.Tags = append(call.Ops, p.op), append(call.Tags, p.tag.String())
	}
	if call.Rest = h.stored; !h.stored {
		// If it had arrived, and has expired since, what was reserved stays charged.
		if cancelled, err := e.holds.Settle(ctx, call); err != nil || cancelled.State == weir.HoldExpired {
			return Settled{}, err
		}
		call.ID = sibling(h.id, lateHold)
	}
	call.Used = s.usedByTag
	charged, err := e.holds.Settle(ctx, call)
	if err != nil {
		return Settled{}, err
	}
	done.addParts(charged.Parts)
	return done, nil
}

// chargeLater charges what is done already when the store is back, except under rules that go on
// locally.
func (e *Engine) chargeLater(v *Verdict, cause error) {
	s := &settlement{id: weir.NewHoldID(), kind: ChargedUnits}
	for i := range v.inGroup(enforced) {
		if r := &v.Results[i]; !r.Asked && !r.Local && !r.Look {
			s.ops = append(s.ops, weir.Op{Key: strings.Clone(r.Key), Limit: r.Compiled, Cost: r.Cost, Always: true})
			t := e.tagOf(v, r, 0)
			s.parts = addPart(s.parts, t, 0, r.Cost, 0)
			s.charged.addSpent(t, r.Cost)
		}
	}
	if len(s.ops) > 0 {
		_ = e.retryLater(s, cause) // what is lost is counted
	}
}
