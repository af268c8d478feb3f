package rule

import (
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/duration"
)

// concurrency is the field, and how a quota in one text begins that is one.
const concurrency = "concurrency"

// minHoldTTL leaves time to renew a place before it is lost.
const minHoldTTL = time.Second

// places is the limit of how many requests are in flight.
func (r *Rule) places(q Quota) weir.Limit {
	l := weir.Concurrent(q.Concurrency, r.HoldTTL)
	if l.Period == 0 {
		l.Period = weir.DefaultHoldTTL
	}
	l.Name = r.ID
	return l
}

// Concurrent reports whether the rule limits how many requests of some client are in flight.
func (r *Rule) Concurrent() bool {
	if r.Quota.Concurrency > 0 {
		return true
	}
	for _, quotas := range []map[string]Quota{r.Tiers, r.Overrides} {
		for _, q := range quotas {
			if q.Concurrency > 0 {
				return true
			}
		}
	}
	return false
}

// validateConcurrency is for sets that were not parsed. Limits are compiled later.
func (r *Rule) validateConcurrency() error {
	if r.Algorithm == weir.InFlight {
		return invalidQuota("algorithm", "in_flight is not the algorithm of a rate; write concurrency: 20 instead of a limit")
	}
	if r.HoldTTL != 0 && !isHoldTTL(r.HoldTTL) {
		return invalidQuota("hold_ttl", "%s", outOfRange(duration.Format(r.HoldTTL), minHoldTTL, weir.MaxHoldTTL))
	}
	return nil
}

func isHoldTTL(d time.Duration) bool {
	return minHoldTTL <= d && d <= weir.MaxHoldTTL && d%time.Microsecond == 0
}

// holdTTL reads after how long a holder that died is freed.
func (p *parser) holdTTL(e *document.Element, field string, r *Rule) {
	ttl := p.span(e, "E035", field, func(d time.Duration, text string) string {
		if isHoldTTL(d) {
			return ""
		}
		return outOfRange(text, minHoldTTL, weir.MaxHoldTTL)
	})
	if ttl != weir.DefaultHoldTTL {
		r.HoldTTL = ttl
	}
}

// ofRates are the fields that have an effect on rates alone.
var ofRates = []string{"algorithm", "buckets", "shape", "count_denied", "cost", "count", "unit", "on_expiry", "tokens"}

// checkConcurrency finds fields that have no effect.
func (p *parser) checkConcurrency(r *pending) {
	if !r.Concurrent() {
		if e := r.fields["hold_ttl"]; e != nil {
			p.errorf("E035", e.Place, "hold_ttl", "it is for concurrency, and the rule has none; add concurrency, or remove hold_ttl")
		}
		if e := r.fields["wait"]; e != nil {
			p.errorf("E037", e.Place, "wait", "it is for a place of concurrency, and the rule has none; add concurrency, or remove wait")
		}
		return
	}
	if slices.ContainsFunc(r.quotas, func(q placedQuota) bool { return len(q.Rates) > 0 }) {
		return
	}
	for _, field := range ofRates {
		if e := r.fields[field]; e != nil {
			p.errorf("E035", e.Place, field, "it has no effect on concurrency, because each request takes one place; remove it, or add a limit")
		}
	}
}

// parseConcurrency reads the number behind the word.
func (q *Quota) parseConcurrency(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n < 1 || n > weir.MaxLogUnits:
		return invalidQuota("limit", "%s is not a number of requests at the same time; write for example concurrency 20, at most %d", document.Quote(document.Clip(text, 40)), weir.MaxLogUnits)
	case q.Concurrency != 0:
		return invalidQuota("limits", "concurrency is given twice; keep the smaller one")
	}
	q.Concurrency = n
	return nil
}
