package metrics

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// outcomeNames are what requests are counted as. That the store was asked, and what
// shadow rules said, has counters of its own.
var outcomeNames = [engine.Outcomes]string{
	engine.OutcomeAllowed: "allowed", engine.OutcomeShadowDenied: "allowed", engine.OutcomeDegraded: "allowed",
	engine.OutcomeDenied: "denied", engine.OutcomeBlocked: "blocked", engine.OutcomeExempt: "exempt",
	engine.OutcomeFailed: "failed_closed", engine.OutcomeNoRule: "no_rule",
}

// policy is how a request was judged without the store.
type policy uint8

const (
	open policy = iota
	closed
	local
	policies
)

var policyNames = [policies]string{"open", "closed", "local"}

// kind is why the store could not be asked.
type kind uint8

const (
	unavailable kind = iota // known to be away: the breaker answered
	timeout
	otherKind
	kinds
)

var kindNames = [kinds]string{"unavailable", "timeout", "other"}

// stripes are how often the counters that every request touches exist. Requests on
// different cores mostly find different ones, so that they need not pass a cache line
// back and forth. A rule has its counters once: requests that share a rule's counter
// share the rule's state or its shard anyway, and that is a lock.
const stripes = 8

type stripe struct {
	requests [engine.Outcomes]atomic.Uint64
	decision timings
	_        [64]byte
}

// stripeOf picks by the address of the verdict, which callers use again and again: one
// each, or one a core.
func stripeOf(v *engine.Verdict) uint64 {
	const golden = 0x9E3779B97F4A7C15
	return uint64(uintptr(unsafe.Pointer(v))) * golden >> 61 // the upper bits, which are below stripes
}

// Observe implements [engine.Observer].
func (m *Metrics) Observe(_ *rule.Request, v *engine.Verdict, took time.Duration) {
	s := &m.stripes[stripeOf(v)]
	s.requests[v.Outcome()].Add(1)
	s.decision.observe(took)
	if v.Degraded != nil {
		m.degraded[policyOf(v)].Add(1)
		m.failures[kindOf(v.Degraded)].Add(1)
	}
	if len(v.Results) == 0 {
		return
	}
	rules := m.rules.Load()
	for from, to := 0, 0; from < len(v.Results); from = to {
		var said engine.Outcome
		said, to = v.Said(from)
		c := rules.find(v.Results[from].Rule)
		if c == nil {
			c = &m.others
		}
		c.said[said].Add(1)
	}
}

func policyOf(v *engine.Verdict) policy {
	if v.Reason == engine.Failure {
		return closed
	}
	for i := range v.Results {
		if r := &v.Results[i]; r.Asked && !r.Shadow {
			return local
		}
	}
	return open
}

func kindOf(err error) kind {
	switch {
	case errors.Is(err, weir.ErrUnavailable):
		return unavailable
	case errors.Is(err, context.DeadlineExceeded):
		return timeout
	}
	return otherKind
}
