package check

import (
	"time"

	"github.com/weirhq/weir/test/chaos/plan"
)

// Answer is what a client knows of a request that it made.
type Answer struct {
	Span                  // from before it was sent until after its answer came
	Instance, Life int    // whom it asked, and how often that one had been started
	Error          string `json:",omitempty"` // why there was no answer
	Status         int    // of HTTP

	plan.Request
	Allowed  bool
	Degraded bool
	Reason   string
	Waits    bool                     // it was told to come back later
	Asked    bool                     // every limit was asked
	Delays   map[string]time.Duration `json:",omitempty"` // by rule
}

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
)

// Tally is what happened in all.
type Tally struct {
	Requests, Allowed, Denied, Degraded, Unanswered int64

	Hiccups  int64         // answers that were degraded because the machine stalled
	Longest  time.Duration // answer, beyond the machine's stalls
	Recovery time.Duration // the longest from when the store was well to the first answer of an instance that had asked it
}
