// Package check checks a chaos run. It knows the requests and answers of the clients
// with their times, the faults, and when the store was available. It knows nothing
// about the inside of weir.
//
// The exact time of a decision is unknown: it is after the request was sent and before
// its answer came. So only requests that were sent and answered within an interval are
// certain to belong to it, and a limit is certainly broken if these are too many.
package check

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/test/chaos/plan"
)

const (
	// Hindsight is how long after its arrival an answer is checked. By then, the faults of
	// that time are known.
	Hindsight = 6 * time.Second

	// Patience is how long a client waits for an answer.
	Patience = 3 * time.Second

	allowance = 100 * time.Millisecond // for an answer beyond the timeout
	recovers  = 2 * time.Second        // after the store is well

	remembered = 20_000 // answers, for the history
	reported   = 50     // violations, at most
)

// Checker checks answers.
type Checker struct {
	Timeline *Timeline

	rules   plan.Rules
	timeout time.Duration
	slotOf  func(key string) int

	mu         sync.Mutex
	waiting    []Answer // to be checked
	groups     []Group  // likewise
	history    []Answer // that were, as a ring
	next       int      // in the ring
	meters     map[meterKey]*meter
	back       map[int]time.Duration // since when the store was well that an instance was last seen to ask
	tally      Tally
	violations []Violation
	more       int // violations that are not kept
}

// Group is requests that are checked together, after the last of them: an account or a crowd.
type Group interface {
	end() time.Duration
	judgeLocked(c *Checker)
}

// NoteGroup records requests that are to be checked together later.
func (c *Checker) NoteGroup(g Group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups = append(c.groups, g)
}

// NoteMove counts an import that was made.
func (c *Checker) NoteMove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.Moves++
}

// meterKey is where a key is counted.
type meterKey struct {
	rule, limit    int
	key            string
	instance, life int // of an instance that counts by itself; 0 for the store
}

// New makes a checker for a store that waits as long as timeout, and keeps a key in a slot.
func New(rules plan.Rules, timeout time.Duration, slotOf func(key string) int) *Checker {
	return &Checker{Timeline: NewTimeline(), rules: rules, timeout: timeout, slotOf: slotOf, meters: map[meterKey]*meter{}, back: map[int]time.Duration{}}
}

// Note records an answer, to be checked later.
func (c *Checker) Note(a Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, a)
}

// Judge checks the answers that came before an instant.
func (c *Checker) Judge(before time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(c.waiting, func(a, b Answer) int { return int(a.To - b.To) })
	n := 0
	for n < len(c.waiting) && c.waiting[n].To < before {
		c.judgeLocked(&c.waiting[n])
		n++
	}
	c.waiting = slices.Delete(c.waiting, 0, n)
	c.groups = slices.DeleteFunc(c.groups, func(g Group) bool {
		over := g.end() < before
		if over {
			g.judgeLocked(c)
		}
		return over
	})
}

// Result is what is known so far. more is how many violations there are besides.
func (c *Checker) Result() (t Tally, violations []Violation, more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally, slices.Clone(c.violations), c.more
}

// History returns the last answers that were checked, latest last.
func (c *Checker) History() []Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Concat(c.history[c.next:], c.history[:c.next])
}

func (c *Checker) judgeLocked(a *Answer) {
	if len(c.history) < remembered {
		c.history = append(c.history, *a)
	} else {
		c.history[c.next] = *a
		c.next = (c.next + 1) % remembered
	}
	c.tally.Requests++
	if a.Status != 200 {
		c.tally.Unanswered++
		c.unansweredLocked("check", a.Instance, a.Status, a.Error, a.Span)
		return
	}
	switch {
	case a.Degraded:
		c.tally.Degraded++
	case a.Allowed:
		c.tally.Allowed++
	default:
		c.tally.Denied++
	}
	c.timeLocked(a)
	c.soundLocked(a)
	c.countLocked(a)
}

// unansweredLocked checks a request without an answer, or with an error, which is correct only
// if the instance was not running or, without an answer, if the machine had no time.
func (c *Checker) unansweredLocked(what string, instance, status int, failed string, s Span) {
	if c.Timeline.isDown(instance, s) || status == 0 && c.hadNoTime(instance, s) {
		return
	}
	how := fmt.Sprintf("answered with status %d", status)
	if status == 0 {
		how = "did not answer: " + failed
	}
	c.blameLocked(Violation{Promise: NoError, Span: s, What: fmt.Sprintf("%s: instance %d %s", what, instance, how)})
}

// hadNoTime reports whether the client of a request without an answer waited for as long as it
// does, but the machine stalled for so much of that time that no answer was due.
func (c *Checker) hadNoTime(instance int, s Span) bool {
	waited := s.To - s.From
	return waited >= Patience && waited-c.Timeline.stalled(instance, s) <= c.timeout+allowance
}

// timeLocked checks how long an answer took, and whether it should have been degraded.
func (c *Checker) timeLocked(a *Answer) {
	if took := a.To - a.From; took > min(c.tally.Longest, c.timeout+allowance) && !c.Timeline.isDown(a.Instance, a.Span) {
		took -= c.Timeline.stalled(a.Instance, a.Span)
		c.tally.Longest = max(c.tally.Longest, took)
		if took > c.timeout+allowance {
			c.blameLocked(Violation{Promise: InTime, Span: a.Span,
				What: fmt.Sprintf("instance %d took %v, and %v beyond the stalls of the machine", a.Instance, a.To-a.From, took)})
		}
	}
	well, store := c.Timeline.wellFor(a.Instance, a.Span)
	switch since := a.From - well; {
	case !a.Degraded && store && well > 0 && since != c.back[a.Instance]:
		c.back[a.Instance] = since
		c.tally.Recovery = max(c.tally.Recovery, a.To-since)
	case !a.Degraded || well <= recovers:
	case c.Timeline.hiccup(a.Instance, a.Span):
		c.tally.Hiccups++
	default:
		c.blameLocked(Violation{Promise: Recovers, Span: a.Span,
			What: fmt.Sprintf("instance %d decided without the store, which had been available for %v", a.Instance, well.Round(time.Millisecond))})
	}
}

// countLocked counts allowed units, and checks whether they are too many.
func (c *Checker) countLocked(a *Answer) {
	if !a.Allowed {
		return
	}
	for i := range c.rules {
		r := &c.rules[i]
		if !slices.Contains(r.Paths, a.Path) || a.By[r.ID] == Nobody {
			continue
		}
		for k := range r.Limits {
			where := meterKey{rule: i, limit: k, key: r.KeyOf(&a.Request)}
			if a.By[r.ID] == Instance {
				where.instance, where.life = 1+a.Instance, a.Life
			}
			m := c.meters[where]
			if m == nil {
				m = c.newMeter(r, k, where)
				c.meters[where] = m
			}
			e := event{Span: a.Span, Leaves: a.Span, Cost: a.Cost}
			if delay := a.Delays[r.ID]; delay > 0 {
				e.Leaves = Span{a.From + delay - whole, a.To + delay}
			}
			if x := m.add(e, c.Timeline); x != nil {
				c.exceededLocked(r, where, x)
			}
		}
	}
}

// newMeter is for a key in the store, which counts for all, or in an instance, which has its
// share and loses nothing as long as it lives.
func (c *Checker) newMeter(r *plan.Rule, k int, where meterKey) *meter {
	limit, slot := r.Limits[k], c.slotOf(where.key)
	if where.instance > 0 {
		limit.N = (limit.N + plan.Instances - 1) / plan.Instances
		limit.Burst = (limit.Burst + plan.Instances - 1) / plan.Instances
		slot = nowhere
	}
	compiled, err := limit.Compile()
	if err != nil { // too fine to be divided
		compiled, _ = r.Limits[k].Compile()
	}
	return &meter{bound: compiled.Bound(r.MaxCost), period: limit.Period, slot: slot}
}

// nowhere is the slot of what is not in the store.
const nowhere = -1

func (c *Checker) exceededLocked(r *plan.Rule, where meterKey, x *excess) {
	who := "the store"
	if where.instance > 0 {
		who = fmt.Sprintf("instance %d by itself", where.instance-1)
	}
	c.blameLocked(Violation{Promise: Bound, Span: x.span, Rule: r.ID, Key: where.key, Events: x.events,
		What: fmt.Sprintf("%s allowed %d units of %s within %v; at most %d are right", who, x.got, describe(r.Limits[where.limit]), (x.span.To - x.span.From).Round(time.Millisecond), x.most)})
}

func describe(l weir.Limit) string {
	text := fmt.Sprintf("%s %d/%v", l.Algorithm, l.N, l.Period)
	if l.Burst > 0 {
		text += fmt.Sprintf(" burst %d", l.Burst)
	}
	return text
}

func (c *Checker) blameLocked(v Violation) {
	if len(c.violations) == reported {
		c.more++
		return
	}
	v.Faults, v.Answers = c.Timeline.Around(v.Span), c.aroundLocked(v.Span)
	c.violations = append(c.violations, v)
}

// aroundLocked are some answers of about the time of a short span.
func (c *Checker) aroundLocked(s Span) (around []Answer) {
	const close, enough = 200 * time.Millisecond, 300
	if s.To-s.From > recovers {
		return nil
	}
	s = Span{s.From - close, s.To + close}
	for _, some := range [][]Answer{c.history[c.next:], c.history[:c.next], c.waiting} {
		for i := range some {
			if some[i].meets(s) && len(around) < enough {
				around = append(around, some[i])
			}
		}
	}
	return around
}
