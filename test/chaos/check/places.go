package check

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/test/chaos/plan"
)

// Crowd is what a client knows of its requests in flight, and of the places that were taken
// after all of them had ended.
type Crowd struct {
	Begun      time.Duration
	Path, User string
	Stays      []Stay
	Last       *Reading // nil if there is none
}

// Stay is what a client knows of one request that was to take a place.
type Stay struct {
	Reserve Call
	Extends []Call
	Ends    []Call
}

// sure is when the request had its place for sure: from the answer on, until it began to give it
// back, or until the place expired.
func (s *Stay) sure(ttl time.Duration) (span Span, ok bool) {
	if s.Reserve.Status != 200 || !s.Reserve.Allowed || s.Reserve.Degraded {
		return span, false
	}
	span = Span{s.Reserve.To, s.Reserve.From + ttl - late}
	for _, e := range s.Extends {
		if e.State == "open" {
			span.To = e.From + ttl - late
		}
	}
	for _, e := range s.Ends {
		span.To = min(span.To, e.From)
	}
	return span, span.From < span.To
}

// freeBy is when the place is free for sure, whatever became of the calls.
func (s *Stay) freeBy(ttl time.Duration) time.Duration {
	by := s.Reserve.To
	for _, e := range s.Extends {
		by = max(by, e.To)
	}
	return by + ttl + late + delivered
}

func (a *Crowd) end() time.Duration {
	if a.Last == nil {
		return a.Begun
	}
	return a.Last.To
}

// FreeBy is when all places of a crowd are free for sure.
func (c *Checker) FreeBy(a *Crowd) (by time.Duration) {
	ttl := c.rules.Under(a.Path)[0].Limits[0].Period
	for i := range a.Stays {
		by = max(by, a.Stays[i].freeBy(ttl))
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
	for i := range a.Stays {
		s := &a.Stays[i]
		c.callLocked(&s.Reserve, "reserve")
		for k := range s.Extends {
			c.callLocked(&s.Extends[k], "extend")
		}
		for k := range s.Ends {
			c.callLocked(&s.Ends[k], "cancel")
		}
		if span, ok := s.sure(limit.Period); ok {
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
	if a.Last != nil && a.Last.From >= c.FreeBy(a) && a.Last.Charged[rule.ID] > 0 {
		blame(Freed, a.Last.Span, "%d places are taken, and all requests have ended, or their holders were killed", a.Last.Charged[rule.ID])
	}
}
