package engine

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir"
)

// isPlace reports whether the limit is one of requests in flight.
func (r *Result) isPlace() bool { return r.Compiled.Algorithm() == weir.InFlight }

// Places reports whether the request has taken a place of a rule that limits how many requests
// are in flight. [Gate.Serve] and [Engine.Refund] give it back.
func (v *Verdict) Places() bool {
	for range v.takenPlaces() {
		return true
	}
	return false
}

// takenPlaces are the results of places that the request has taken.
func (v *Verdict) takenPlaces() iter.Seq[*Result] {
	return func(yield func(*Result) bool) {
		for i := range v.Results {
			if r := &v.Results[i]; v.places > 0 && r.Receipt != 0 && r.isPlace() && !yield(r) {
				return
			}
		}
	}
}

// lasts is how long a hold can last at most without losing a place.
func (v *Verdict) lasts(ttl time.Duration) time.Duration {
	for i := range v.Results {
		if r := &v.Results[i]; v.places > 0 && r.isPlace() {
			ttl = min(ttl, r.Compiled.Limit().Period)
		}
	}
	return ttl
}

// inFlight is the places that a request in flight has taken.
type inFlight struct {
	mu   sync.Mutex   // held while they are renewed, too
	ops  [2][]weir.Op // of each store, with their receipts
	left bool
}

// count returns how many places there are.
func (p *inFlight) count() int { return len(p.ops[0]) + len(p.ops[1]) }

// adopt takes over the places of a verdict, and returns how many.
func (p *inFlight) adopt(v *Verdict) int {
	for r := range v.takenPlaces() {
		// The verdict's key does not outlive it.
		ops := p.opsOf(r)
		*ops = append(*ops, weir.Op{Key: strings.Clone(r.Key), Limit: r.Compiled, Cost: 1, Always: true, Receipt: r.Receipt})
	}
	return p.count()
}

// opsOf are the places in the store of a result.
func (p *inFlight) opsOf(r *Result) *[]weir.Op {
	if r.Local {
		return &p.ops[1]
	}
	return &p.ops[0]
}

// renew keeps the places for as long as they last by themselves. If it fails, the next time
// may do.
func (p *inFlight) renew(ctx context.Context, e *Engine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, ops := range p.ops {
		if p.left || len(ops) == 0 {
			continue
		}
		decisions, err := e.stores()[n].Take(ctx, nil, ops...)
		for i := range decisions {
			if err == nil && decisions[i].Receipt != 0 {
				ops[i].Receipt = decisions[i].Receipt
			}
		}
	}
}

// leave gives the places back, once. If that fails, they expire.
func (p *inFlight) leave(ctx context.Context, e *Engine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, ops := range p.ops {
		if !p.left && len(ops) > 0 {
			_ = e.stores()[n].Refund(ctx, ops...)
			e.wake(ops)
		}
	}
	p.left = true
}

// lifetime is how long what a verdict has taken lasts by itself.
func (v *Verdict) lifetime() time.Duration {
	if v.Hold != (weir.HoldID{}) {
		return v.lasts(v.charging.ttl)
	}
	return v.lasts(1<<63 - 1)
}

// renewDelayed keeps the places and the hold of a request that is not served yet. If it fails, the next time
// may do.
func (e *Engine) renewDelayed(v *Verdict) {
	ctx, cancel := context.WithTimeout(context.Background(), maxSettle)
	defer cancel()
	var p inFlight
	if p.adopt(v) > 0 {
		p.renew(ctx, e)
		for r := range v.takenPlaces() {
			ops := p.opsOf(r)
			r.Receipt, *ops = (*ops)[0].Receipt, (*ops)[1:]
		}
	}
	if v.Hold != (weir.HoldID{}) {
		_, _ = e.Extend(ctx, v.Hold, v.charging.ttl)
	}
}

// leavePlaces gives back what shadow rules that count denied requests have taken for one.
func (e *Engine) leavePlaces(ctx context.Context, v *Verdict) {
	if v.Degraded != nil {
		return
	}
	var p inFlight
	if p.adopt(v) > 0 {
		p.leave(ctx, e)
	}
}

// observeReached tells how many places the client of a request has.
func (e *Engine) observeReached(v *Verdict) {
	for r := range v.takenPlaces() {
		for _, o := range e.placeObservers {
			o.Places(r.Rule.ID).Reach(r.Used())
		}
	}
}

// observeHeld tells which places belong to the hold of a request. It ends by itself, if nobody
// ends it.
func (e *Engine) observeHeld(v *Verdict) {
	for i := range v.Results {
		r := &v.Results[i]
		for _, o := range e.placeObservers {
			if r.held && r.isPlace() {
				o.Places(r.Rule.ID).Hold(1, v.HoldExpires)
			}
		}
	}
}

// observeTaken tells that a request is in flight.
func (h *Hold) observeTaken(v *Verdict) {
	h.counters = h.fewCounters[:0]
	for r := range v.takenPlaces() {
		for _, o := range h.engine.placeObservers {
			c := o.Places(r.Rule.ID)
			c.Take()
			h.counters = append(h.counters, c)
		}
	}
}

// observeLeft tells that a request has ended.
func (h *Hold) observeLeft() {
	held := time.Since(h.begin)
	for _, c := range h.counters {
		c.Leave(held)
	}
}

// heldPlace is a place of a hold that has ended, or was extended.
type heldPlace struct {
	rule    string
	until   weir.Micros // when it would have expired
	expires weir.Micros // when it does; 0 if it has ended
	held    time.Duration
}

// notePlaces remembers the places of a hold.
func (e *Engine) notePlaces(done *Settled, stored *weir.Settled) {
	if len(e.placeObservers) == 0 {
		return
	}
	for i := range stored.Parts {
		if t := parseTag(stored.Parts[i].Tag); t.began > 0 {
			// Another process may have another idea of the time.
			held := max(0, time.Duration(e.clock()-t.began)*time.Microsecond)
			done.places = append(done.places, heldPlace{t.rule, stored.Until, stored.Expires, held})
		}
	}
}

func (e *Engine) observePlaces(places []heldPlace) {
	for _, p := range places {
		for _, o := range e.placeObservers {
			c := o.Places(p.rule)
			if p.until > 0 {
				c.Hold(-1, p.until)
			}
			if p.expires == 0 {
				c.End(p.held)
			} else if p.until > 0 {
				c.Hold(1, p.expires)
			}
		}
	}
}
