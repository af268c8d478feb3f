package check

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/test/chaos/plan"
)

// Crowd is an account of requests in flight: each hold is to take a place.
type Crowd struct{ Account }

// sure is when the request had its place for sure: from the answer on, until it began to give it
// back, or until the place expired.
func (h *Hold) sure(ttl time.Duration) (span Span, ok bool) {
	if h.Reserve.Status != 200 || !h.Reserve.Allowed || h.Reserve.Degraded {
		return span, false
	}
	span = Span{h.Reserve.To, h.Reserve.From + ttl - late}
	for _, e := range h.Extends {
		if e.State == "open" {
			span.To = e.From + ttl - late
		}
	}
	for _, e := range h.Ends {
		span.To = min(span.To, e.From)
	}
	return span, span.From < span.To
}

// freeBy is when the place is free for sure, whatever became of the calls.
func (h *Hold) freeBy(ttl time.Duration) time.Duration {
	by := h.Reserve.To
	for _, e := range h.Extends {
		by = max(by, e.To)
	}
	return by + ttl + late + delivered
}

// FreeBy is when all places of a crowd are free for sure.
func (c *Checker) FreeBy(a *Crowd) (by time.Duration) {
	ttl := c.rules.Under(a.Path)[0].Limits[0].Period
	for i := range a.Holds {
		by = max(by, a.Holds[i].freeBy(ttl))
	}
	return by
}

func (a *Crowd) judgeLocked(c *Checker) {
	rule := c.rules.Under(a.Path)[0]
	limit, slot := rule.Limits[0], c.slotOf(rule.KeyOf(&plan.Request{User: a.User}))
	blame := func(promise string, s Span, what string, args ...any) {
		c.blameLocked(Violation{Promise: promise, Span: s, Rule: rule.ID, Key: "user:" + a.User, What: fmt.Sprintf(what, args...)})
	}
	var all []Span
	for i := range a.Holds {
		c.callsLocked(&a.Holds[i], "cancel")
		if span, ok := a.Holds[i].sure(limit.Period); ok {
			c.tally.Places++
			all = append(all, span)
		}
	}
	for _, at := range all {
		n, from := int64(0), at.From
		for _, other := range all {
			if other.From <= at.From && at.From < other.To {
				n++
				from = min(from, other.From)
			}
		}
		// A master that was lost, or one beside it, has places of its own.
		if most := limit.N * c.Timeline.lives(Span{from - limit.Period, at.From}, slot); n > most {
			blame(InFlight, Span{from, at.From}, "%d requests were in flight, at most %d may be", n, most)
		}
	}
	for _, r := range a.Readings {
		if taken := r.Charged[rule.ID]; r.From >= c.FreeBy(a) && taken > 0 {
			blame(Freed, r.Span, "%d places are taken, and all requests have ended, or their holders were killed", taken)
		}
	}
}
