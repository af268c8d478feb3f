package check

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/test/chaos/plan"
)

// Answer is what a client knows of a request that it made.
type Answer struct {
	Call
	plan.Request
	Reason string
	Waits  bool                     // it was told to come back later
	Delays map[string]time.Duration `json:",omitempty"` // by rule
}

// Call is what a client knows of any call that it made.
type Call struct {
	Span                  // from before it was sent until after its answer came
	Instance, Life int    // whom it asked, and how often that one had been started
	Error          string `json:",omitempty"` // why there was no answer
	Status         int    // of HTTP

	Allowed, Degraded bool          // of a check or a reservation
	By                map[string]By `json:",omitempty"` // likewise: who decided, by rule

	Used  int64            `json:",omitempty"` // as it was sent
	State string           `json:",omitempty"` // of a hold, as it was answered
	Got   map[string]int64 `json:",omitempty"` // what was used, as it was answered; by rule
}

// By is who decided a rule.
type By string

const (
	Nobody   By = "nobody"
	Store    By = "store"
	Instance By = "instance" // by itself
)

// Violation is a promise that was broken.
type Violation struct {
	Promise string
	Span    // in which it was
	What    string
	Rule    string   `json:",omitempty"`
	Key     string   `json:",omitempty"`
	Faults  []Fault  // around it
	Events  []event  `json:",omitempty"` // that make up the excess
	Answers []Answer `json:",omitempty"` // around it, if it is short
	Account *Account `json:",omitempty"` // that is about holds
}

// The promises.
const (
	Bound    = "never above the bound"
	InTime   = "no answer later than the timeout + 100 ms"
	NoError  = "no error status"
	Recovers = "service is back within 2 s"
	Policy   = "on_failure decides"
	Sound    = "answers make sense"
	NoGrowth = "no growth"
	Charged  = "what was settled is charged"
	Once     = "a hold ends once"
	Outlives = "no hold outlives its ttl"
	InFlight = "no more requests are in flight than may be"
	Belongs  = "nobody is counted where they do not belong"
	Freed    = "all places are free in the end"
)

// Tally is what happened in all.
type Tally struct {
	Requests, Allowed, Denied, Degraded, Unanswered int64

	Accounts, Holds int64 // of clients that reserve and settle
	Most            int64 // holds of an account that the store has allowed
	Unread          int64 // accounts of which nobody could say what is charged
	Exact           int64 // readings of a rule of which only one number is right
	Members         int64 // requests of clients that move
	Moves           int64 // imports by which they did
	Places          int64 // requests that had a place in flight for sure

	Hiccups  int64         // answers that were degraded because the machine stalled
	Longest  time.Duration // answer, beyond the machine's stalls
	Recovery time.Duration // the longest from when the store was well to the first answer of an instance that had asked it
}

// soundLocked checks whether an answer is consistent.
func (c *Checker) soundLocked(a *Answer) {
	under := c.rules.Under(a.Path)
	if len(under) == 0 {
		return
	}
	without, asked := map[string]bool{}, false // on_failure of rules that the store did not decide; any other
	promise, what := Sound, ""
	for _, r := range under {
		by := a.By[r.ID]
		if by != Store {
			without[r.OnFailure] = true
		}
		asked = asked || by == Store || by == Instance
		switch {
		case by == "":
			what = r.ID + " is not in the answer"
		case by == Instance && r.OnFailure == "closed":
			promise, what = Policy, "an instance counted for a rule that says closed"
		case a.Allowed && by == Nobody && r.OnFailure == "local":
			promise, what = Policy, "it was allowed without a count, and the rule says local"
		}
	}
	switch {
	case what != "":
	case a.Degraded && without["closed"] && a.Allowed:
		promise, what = Policy, "it was allowed without the store, and a rule says closed"
	case a.Degraded && !a.Allowed && !asked && !without["closed"]:
		promise, what = Policy, "it was denied without the store, and every rule says open"
	case a.Degraded && !a.Allowed && !asked && a.Reason != "unavailable":
		what = fmt.Sprintf("it was denied without the store, and the reason is %q", a.Reason)
	case a.Degraded && len(without) == 0:
		what = "it is degraded, and the store decided every rule"
	case !a.Degraded && a.Reason != "limits":
		what = fmt.Sprintf("the store was asked, and the reason is %q", a.Reason)
	case !a.Degraded && len(without) > 0:
		what = "it is not degraded, and a limit was not asked"
	case !a.Degraded && !a.Allowed && !a.Waits:
		what = "it was denied, and not told when to come back"
	case !a.Degraded && !a.Allowed && under[0].Wide:
		what = "it was denied under a limit that no client reaches"
	default:
		return
	}
	c.blameLocked(Violation{Promise: promise, Span: a.Span, Rule: under[0].ID, What: fmt.Sprintf("instance %d, %s: %s", a.Instance, a.Path, what)})
}
