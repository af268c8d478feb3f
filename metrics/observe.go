package metrics

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/tally"
	"github.com/weirhq/weir/rule"
)

// policy returns how a request was decided without the store.
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
	unavailable kind = iota // known to be unavailable: the breaker answered
	timeout
	busy // this process was, not the store
	otherKind
	kinds
)

var kindNames = [kinds]string{"unavailable", "timeout", "busy", "other"}

// stripes are how often the counters that every request touches exist. Requests on
// different cores mostly find different ones, so that they need not pass a cache line
// back and forth.
const stripes = 8

type stripe struct {
	requests [rule.Critical + 1][engine.Outcomes]atomic.Uint64 // by priority
	decision timings
	_        [64]byte
}

// Observe implements [engine.Observer].
func (m *Metrics) Observe(_ *rule.Request, v *engine.Verdict, took time.Duration) {
	at := tally.Stripe(v, stripes-1)
	s := &m.stripes[at]
	s.requests[min(v.Priority, rule.Critical)][v.Outcome()].Add(1)
	s.decision.observe(bounds[:], took)
	if v.Degraded != nil {
		m.degraded[policyOf(v)].Add(1)
		if !errors.Is(v.Degraded, engine.ErrNoRules) && !errors.Is(v.Degraded, engine.ErrNoClients) { // which are no errors of a check's store
			m.failures[kindOf(v.Degraded)].Add(1)
		}
	}
	if len(v.Results) == 0 {
		return
	}
	rules := m.rules.Load()
	for from, to := 0, 0; from < len(v.Results); from = to {
		var said engine.Outcome
		said, to = v.Said(from)
		c := rules.Find(v.Results[from].Rule)
		c.say(at, said)
		if said == engine.OutcomeDenied || said == engine.OutcomeShadowDenied || said == engine.OutcomeSoftDenied {
			c.levels.Load().Deny(v.Results[from:to])
		}
		if v.Held(from, said) {
			c.held().rule[reservedEvent].Add(1)
		}
	}
	if v.Hold != (weir.HoldID{}) {
		m.reserved.Add(1)
	}
}

func policyOf(v *engine.Verdict) policy {
	if v.Reason == engine.Unavailable {
		return closed
	}
	for i := range v.Results {
		if v.Results[i].Local {
			return local
		}
	}
	return open
}

func kindOf(err error) kind {
	switch {
	case errors.Is(err, weir.ErrUnavailable):
		return unavailable
	case errors.Is(err, weir.ErrBusy):
		return busy
	case errors.Is(err, context.DeadlineExceeded):
		return timeout
	}
	return otherKind
}

// bounds are those of the histogram of decisions. One in memory takes less than a
// microsecond, one in Redis a tenth of a millisecond or the timeout, 50 ms.
var bounds = [...]time.Duration{
	time.Microsecond, 2500 * time.Nanosecond, 5 * time.Microsecond,
	10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond,
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond,
}

// timings is a histogram with two atomic additions an observation, where the one of
// the client library has four and a loop, because it also keeps sum and count in step.
// Here the sum may be ahead of the count by what is being observed.
type timings struct {
	buckets [mostBounds + 1]atomic.Uint64 // not cumulative; that after the bounds has none
	sum     atomic.Int64                  // nanoseconds
}

const mostBounds = max(len(bounds), len(heldBounds))

// observe counts a duration in the first bucket that has room for it.
func (t *timings) observe(bounds []time.Duration, took time.Duration) {
	i := 0
	for i < len(bounds) && took > bounds[i] {
		i++
	}
	t.buckets[i].Add(1)
	t.sum.Add(int64(max(took, 0)))
}

// histogram is the sum of stripes, as Prometheus wants it.
type histogram struct {
	bounds []time.Duration
	counts [mostBounds + 1]uint64
	sum    time.Duration
}

func (h *histogram) add(t *timings) {
	for i := range t.buckets {
		h.counts[i] += t.buckets[i].Load()
	}
	h.sum += time.Duration(t.sum.Load())
}

func (h *histogram) metric(desc *prometheus.Desc, labels ...string) prometheus.Metric {
	cumulative := make(map[float64]uint64, len(h.bounds))
	total := uint64(0)
	for i, bound := range h.bounds {
		total += h.counts[i]
		cumulative[bound.Seconds()] = total
	}
	return prometheus.MustNewConstHistogram(desc, total+h.counts[len(h.bounds)], h.sum.Seconds(), cumulative, labels...)
}
