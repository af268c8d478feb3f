package rule

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
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
	return r.hasQuota(func(q Quota) bool { return q.Concurrency > 0 })
}

// hasQuota reports whether the default quota or that of a tier, override or level is of some kind.
func (r *Rule) hasQuota(is func(Quota) bool) bool {
	return is(r.Quota) || hasQuota(r.Quota.Levels, is) || hasQuota(r.Tiers, is) || hasQuota(r.Overrides, is)
}

func hasQuota(quotas map[string]Quota, is func(Quota) bool) bool {
	for _, q := range quotas {
		if is(q) || hasQuota(q.Levels, is) {
			return true
		}
	}
	return false
}

// validateConcurrency is for sets that were not parsed. Limits are compiled later.
func (r *Rule) validateConcurrency() error {
	if r.Algorithm == weir.InFlight {
		return invalidQuota("algorithm", "in_flight is not the algorithm of a rate; write concurrency: 20 instead of a limit")
	}
	if wrong := checkHoldTTL(r.HoldTTL, notation.FormatDuration(r.HoldTTL)); wrong != "" && r.HoldTTL != 0 {
		return invalidQuota("hold_ttl", "%s", wrong)
	}
	return nil
}

// checkHoldTTL and checkWait say what is wrong with a time, which a text stands for; "" if nothing is.
func checkHoldTTL(d time.Duration, text string) string {
	if d%time.Microsecond != 0 {
		d = 0 // stores count whole ones
	}
	return outside(d, text, minHoldTTL, weir.MaxHoldTTL)
}

func checkWait(d time.Duration, text string) string { return outside(d, text, minWait, MaxWait) }

func outside(d time.Duration, text string, least, most time.Duration) string {
	if least <= d && d <= most {
		return ""
	}
	return fmt.Sprintf("%s is out of range; write %s to %s", text, notation.FormatDuration(least), notation.FormatDuration(most))
}

// holdTTL reads after how long a holder that died is freed.
func (p *parser) holdTTL(e *document.Element, field string, r *Rule) {
	if ttl := p.span(e, "E035", field, checkHoldTTL); ttl != weir.DefaultHoldTTL {
		r.HoldTTL = ttl
	}
}

// ofRates are the fields that have an effect on rates alone.
var ofRates = []string{"algorithm", "buckets", "shape", "count_denied", "cost", "count", "unit", "on_expiry", "lease", "tokens"}

// checkConcurrency finds fields that have no effect.
func (p *parser) checkConcurrency(r *pending) {
	if !r.Concurrent() {
		if e := r.fields["hold_ttl"]; e != nil {
			p.errorf("E035", e.Position, "hold_ttl", "it is for concurrency, and the rule has none; add concurrency, or remove hold_ttl")
		}
		if e := r.fields["wait"]; e != nil {
			p.errorf("E037", e.Position, "wait", "it is for a place of concurrency, and the rule has none; add concurrency, or remove wait")
		}
		return
	}
	if slices.ContainsFunc(r.quotas, func(q placedQuota) bool { return len(q.Rates) > 0 }) {
		return
	}
	for _, field := range ofRates {
		if e := r.fields[field]; e != nil {
			p.errorf("E035", e.Position, field, "it has no effect on concurrency, because each request takes one place; remove it, or add a limit")
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

// Wait lets requests wait for a place of Concurrency instead of being denied: in the gateway, in
// middleware, and with a Gate of package engine. A check of the service never waits.
type Wait struct {
	// UpTo is how long a request waits at most. Default 0: requests do not wait.
	UpTo time.Duration

	// Queued is how many requests of a client wait at the same time at most. Default
	// DefaultQueued.
	Queued int64
}

const (
	DefaultQueued = 100
	MaxQueued     = 10_000
	MaxWait       = time.Minute

	minWait = time.Millisecond
)

// Most is Queued or its default.
func (w Wait) Most() int {
	if w.Queued == 0 {
		return DefaultQueued
	}
	return int(w.Queued)
}

func (w Wait) validate() error {
	switch wrong := checkWait(w.UpTo, notation.FormatDuration(w.UpTo)); {
	case w == (Wait{}):
	case wrong != "":
		return invalidQuota("wait: up_to", "%s", wrong)
	case w.Queued < 0 || w.Queued > MaxQueued:
		return invalidQuota("wait: queued", "%d is out of range; write 1 to %d", w.Queued, MaxQueued)
	}
	return nil
}

var waitFields = newTable(
	field[Wait]{"up_to", (*parser).upTo, func(w *Wait) *document.Element { return spanElement(w.UpTo) }},
	integerField("queued", "E037", 1, MaxQueued, DefaultQueued, func(w *Wait) *int64 { return &w.Queued }),
)

// wait reads how long a request waits, or the fields.
func (p *parser) wait(e *document.Element, field string, r *Rule) {
	if e.Kind != document.Mapping {
		p.upTo(e, field, &r.Wait)
	} else if f := waitFields.readFields(p, e, field, &r.Wait); f["up_to"] == nil {
		p.errorf("E007", e.Position, "wait: up_to", "required; write how long a request waits at most, such as 2s")
	}
}

func (p *parser) upTo(e *document.Element, field string, w *Wait) {
	w.UpTo = p.span(e, "E037", field, checkWait)
}

func waitElement(r *Rule) *document.Element {
	if r.Wait.UpTo == 0 || r.Wait.Queued == 0 {
		return unless(0, r.Wait.UpTo, spanElement)
	}
	return waitFields.element(&r.Wait)
}
