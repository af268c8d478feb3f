package engine

import (
	"time"

	"github.com/weirhq/weir"
)

// PlaceObserver is an [Observer] that also counts how many requests are in flight under the
// rules that limit that.
type PlaceObserver interface {
	Observer

	// Places returns what counts the places of a rule. It must be fast.
	Places(rule string) PlaceCounter
}

// PlaceCounter counts the places of one rule. Its methods must be fast. It is used until all
// places are given back for which Take was called, even if the rule is removed meanwhile.
type PlaceCounter interface {
	// Reach is called for each place that a client takes, with how many it has then.
	Reach(places int64)

	// Take is called when a request begins of whose end this process will know, and Leave
	// when it has ended.
	Take()
	Leave(held time.Duration)

	// Hold is called when n more places belong to holds, until a time at the latest: 1 when a
	// hold is reserved, and -1 when it has ended, both with the time at which it would have
	// expired. One process may have reserved a hold that another ends, so only the sum of all
	// processes is the number of places; it may be below 0 in one of them.
	Hold(n int64, until weir.Micros)

	// End is called when a hold has ended, too, for each place that it had.
	End(held time.Duration)
}

// observeReached tells how many places the client of a request has.
func (e *Engine) observeReached(v *Verdict) {
	for i := range v.Results {
		if r := &v.Results[i]; r.Receipt != 0 && r.isPlace() {
			for _, o := range e.placeObservers {
				o.Places(r.Rule.ID).Reach(r.Used())
			}
		}
	}
}

// observeHeld tells which places belong to the hold of a request. It ends by itself, if nobody
// ends it.
func (e *Engine) observeHeld(v *Verdict) {
	if v.places == 0 {
		return
	}
	for i := range v.Results {
		if r := &v.Results[i]; r.held && r.isPlace() {
			for _, o := range e.placeObservers {
				o.Places(r.Rule.ID).Hold(1, v.HoldExpires)
			}
		}
	}
}

// observeTaken tells that a request is in flight.
func (h *Hold) observeTaken(v *Verdict) {
	h.counters = h.fewCounters[:0]
	for i := range v.Results {
		if r := &v.Results[i]; r.Receipt != 0 && r.isPlace() {
			for _, o := range h.engine.placeObservers {
				c := o.Places(r.Rule.ID)
				c.Take()
				h.counters = append(h.counters, c)
			}
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
