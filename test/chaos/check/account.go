package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir/test/chaos/plan"
)

// Account is what a client knows of its holds, and of what was charged, or how many places were
// taken, after all of them had ended.
type Account struct {
	Begun          time.Duration
	Path, User, IP string
	Holds          []Hold
	Readings       []Reading
}

// Reading is what was charged at some instant of a span.
type Reading struct {
	Span
	Charged map[string]int64 // by rule
}

// Hold is what a client knows of a hold.
type Hold struct {
	ID      string
	Cost    int64
	TTL     time.Duration
	Reserve Call
	Extends []Call `json:",omitempty"`
	Ends    []Call // settlements
}

const (
	// late is by how much the store's clock may differ when a hold expires.
	late = 100 * time.Millisecond

	// delivered is how long after its answer a reservation may reach the store at last, if
	// the answer was given without the store.
	delivered = 5 * time.Second
)

// amount is from the least to the most that may be charged.
type amount struct{ least, most int64 }

func (a amount) or(n int64) amount { return amount{min(a.least, n), max(a.most, n)} }

// Fits reports whether a reading is right, as far as is known.
func (c *Checker) Fits(a *Account, r *Reading) bool {
	for _, rule := range c.rules.Under(a.Path) {
		if !c.expected(a, rule, r).has(r.Charged[rule.ID]) {
			return false
		}
	}
	return true
}

// IsExact reports whether only one number is right under some rule.
func (c *Checker) IsExact(a *Account, r *Reading) bool {
	return slices.ContainsFunc(c.rules.Under(a.Path), func(rule *plan.Rule) bool { return c.expected(a, rule, r).isExact() })
}

func (a amount) isExact() bool { return a.least == a.most }

func (a amount) has(n int64) bool { return a.least <= n && n <= a.most }

// expected is what may be charged under a rule when all holds have ended.
func (c *Checker) expected(a *Account, rule *plan.Rule, r *Reading) (sum amount) {
	for i := range a.Holds {
		one := c.expectedOf(a, &a.Holds[i], rule, r)
		sum.least += one.least
		sum.most += one.most
	}
	return sum
}

// expectedOf is what may be charged for one hold.
func (c *Checker) expectedOf(a *Account, h *Hold, rule *plan.Rule, r *Reading) amount {
	expired, expires := amount{h.Cost, h.Cost}, h.Reserve.To+h.TTL+late
	if h.Reserve.Degraded || h.Reserve.Status != 200 {
		expires += delivered
	}
	if rule.OnExpiry == "release" {
		if expired = (amount{}); r.From < expires {
			expired = expired.or(h.Cost)
		}
	}
	any := expired.or(0) // what an attempt may have done
	for _, e := range h.Ends {
		any = any.or(e.Used)
	}
	switch {
	case h.Reserve.Status != 200 || h.Reserve.Degraded && !h.Reserve.Allowed:
		return expired.or(0) // it may have been reserved, and nobody knows its id
	case !h.Reserve.Allowed:
		return amount{}
	case c.lostHold(a, h, r):
		return any.or(h.Cost)
	case h.Reserve.By[rule.ID] == Instance:
		return any // it counts by itself
	}
	sure := len(h.Ends) == 0
	for _, e := range h.Ends {
		switch e.State {
		case "settled":
			if n, told := e.Got[rule.ID]; told {
				return amount{n, n}
			}
		case "expired":
			sure = true
		}
	}
	switch {
	case h.Reserve.Degraded:
		return any
	case sure:
		return expired
	}
	return any
}

// lostHold reports whether the store may have lost what it knew of a hold, under any rule.
func (c *Checker) lostHold(a *Account, h *Hold, r *Reading) bool {
	s := Span{h.Reserve.From, r.To}
	if c.Timeline.Lost(s, c.slotOf(h.ID)) {
		return true
	}
	for _, rule := range c.rules.Under(a.Path) {
		if c.Timeline.Lost(s, c.slotOf(rule.KeyOf(&plan.Request{User: a.User, IP: a.IP}))) {
			return true
		}
	}
	return false
}

func (a *Account) end() time.Duration {
	end := a.Begun
	for _, r := range a.Readings {
		end = max(end, r.To)
	}
	return end
}

func (a *Account) judgeLocked(c *Checker) {
	c.tally.Accounts++
	if len(a.Readings) == 0 {
		c.tally.Unread++
	}
	allowed := int64(0)
	for i := range a.Holds {
		h := &a.Holds[i]
		c.tally.Holds++
		c.callsLocked(h, "settle")
		c.onceLocked(a, h)
		if h.Reserve.Allowed && !h.Reserve.Degraded {
			allowed++
		}
	}
	c.tally.Most = max(c.tally.Most, allowed)
	for i := range a.Readings {
		r := &a.Readings[i]
		for _, rule := range c.rules.Under(a.Path) {
			want := c.expected(a, rule, r)
			if want.isExact() {
				c.tally.Exact++
			}
			if got := r.Charged[rule.ID]; !want.has(got) {
				c.blameLocked(Violation{Promise: Charged, Span: Span{a.Begun, r.To}, Rule: rule.ID, Key: rule.KeyOf(&plan.Request{User: a.User, IP: a.IP}), Account: a,
					What: fmt.Sprintf("%d units are charged; by the settlements it is %d to %d", got, want.least, want.most)})
			}
		}
	}
}

// callsLocked checks how the calls about a hold were answered.
func (c *Checker) callsLocked(h *Hold, end string) {
	c.callLocked(&h.Reserve, "reserve")
	for i := range h.Extends {
		c.callLocked(&h.Extends[i], "extend")
	}
	for i := range h.Ends {
		c.callLocked(&h.Ends[i], end)
	}
}

// callLocked checks how a call was answered.
func (c *Checker) callLocked(call *Call, what string) {
	switch call.Status {
	case 200, 202, 404, 409:
	default:
		c.unansweredLocked(what, call.Instance, call.Status, call.Error, call.Span)
		return
	}
	if took := call.To - call.From - c.Timeline.stalled(call.Instance, call.Span); took > c.timeout+allowance && !c.Timeline.isDown(call.Instance, call.Span) {
		c.blameLocked(Violation{Promise: InTime, Span: call.Span, What: fmt.Sprintf("%s: instance %d took %v beyond the stalls of the machine", what, call.Instance, took)})
	}
}

// onceLocked checks that a hold ended once, and in time.
func (c *Checker) onceLocked(a *Account, h *Hold) {
	blame := func(promise string, e *Call, what string) {
		c.blameLocked(Violation{Promise: promise, Span: Span{h.Reserve.From, e.To}, Account: a, What: fmt.Sprintf("hold %s: %s", h.ID, what)})
	}
	if h.Reserve.Status == 200 && h.Reserve.Allowed && h.ID == "" {
		blame(Sound, &h.Reserve, "it was allowed, and has no id")
	}
	var first *Call
	for i := range h.Ends {
		e := &h.Ends[i]
		if c.lostHold(a, h, &Reading{Span: e.Span}) {
			return
		}
		switch e.State {
		case "settled":
			if i == 0 && e.From > h.Reserve.To+h.TTL+late {
				blame(Outlives, e, fmt.Sprintf("it was settled %v after it was reserved for %v", e.From-h.Reserve.To, h.TTL))
			}
			if first == nil {
				first = e
			}
			for rule, n := range e.Got {
				if n != first.Got[rule] {
					blame(Once, e, fmt.Sprintf("it was settled with %d units of %s, and then with %d", first.Got[rule], rule, n))
				}
			}
		case "expired":
			if first != nil {
				blame(Once, e, "it expired after it was settled")
			} else if e.To < h.Reserve.From+h.TTL-late {
				blame(Outlives, e, fmt.Sprintf("it expired %v after it was reserved for %v", e.To-h.Reserve.From, h.TTL))
			}
		case "unknown":
			if !h.Reserve.Degraded { // else only one process knows it
				blame(Once, e, "it is unknown")
			}
		}
	}
}
