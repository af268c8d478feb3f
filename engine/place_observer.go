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

	// End is called when a hold has ended, for each place that it had. The hold may have
	// been reserved by another process; Take was not called.
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

// endedPlace is a place of a hold that has ended.
type endedPlace struct {
	rule string
	held time.Duration
}

// notePlaces remembers the places that a hold had. One that is kept is still in flight.
func (e *Engine) notePlaces(done *Settled, s *settlement, parts []weir.SettledPart) {
	if s.used == nil || len(e.placeObservers) == 0 {
		return
	}
	for i := range parts {
		if t := parseTag(parts[i].Tag); t.began > 0 && parts[i].Used == 0 {
			// Another process may have another idea of the time.
			held := max(0, time.Duration(e.clock()-t.began)*time.Microsecond)
			done.ended = append(done.ended, endedPlace{t.rule, held})
		}
	}
}

func (e *Engine) observeEnded(places []endedPlace) {
	for _, p := range places {
		for _, o := range e.placeObservers {
			o.Places(p.rule).End(p.held)
		}
	}
}
