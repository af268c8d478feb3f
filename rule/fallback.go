package rule

import (
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
)

// Fallback bounds the local fallback of a rule.
type Fallback struct {
	// For is how long it lasts at most, from the first request that the store did not answer. Default 0: as
	// long as the store is unavailable.
	For time.Duration

	// Limit is that of each client meanwhile, instead of all rates of the rule, of its tiers and of its
	// overrides. Default none: those apply.
	Limit Rate

	// Then is what happens after For: Open or Closed.
	Then Failure
}

const minFallback, maxFallback = time.Second, 24 * time.Hour

// FailureAfter returns what happens to a request when the store has been unavailable for so long.
func (r *Rule) FailureAfter(outage time.Duration) Failure {
	if r.OnFailure == Local && r.Fallback.For > 0 && outage >= r.Fallback.For {
		return r.Fallback.Then
	}
	return r.OnFailure
}

// FallbackLimit returns the limit of the rule's Fallback, or nil if it has none.
func (c *Entry) FallbackLimit() *weir.Compiled { return c.fallback }

var fallbackFields = newTable(
	field[Fallback]{"local", func(p *parser, e *document.Element, path string, to *Fallback) {
		to.For = p.span(e, "E038", path, checkFallback)
	}, func(f *Fallback) *document.Element { return unless(0, f.For, spanElement) }},
	field[Fallback]{"limit", func(p *parser, e *document.Element, path string, to *Fallback) {
		if text, ok := p.text(e, path, maxText); text == unlimited {
			p.errorf("E013", e.Position, path, "without a limit, requests are allowed as with on_failure: open; write that, or N/period, such as 10/1m")
		} else if ok {
			var err error
			if to.Limit, err = ParseRate(text); err != nil {
				p.errorf("E013", e.Position, path, "%s", err)
			}
		}
	}, func(f *Fallback) *document.Element {
		return unless(Rate{}, f.Limit, func(rate Rate) *document.Element { return document.NewText(rate.String()) })
	}},
	field[Fallback]{"then", func(p *parser, e *document.Element, path string, to *Fallback) {
		to.Then, _ = word(p, e, path, thens.parse)
	}, func(f *Fallback) *document.Element {
		if f.For == 0 {
			return nil
		}
		return wordElement(f.Then)
	}},
)

func checkFallback(d time.Duration, text string) string {
	return outside(d, text, minFallback, maxFallback)
}

// thens are the words for what can happen after a local fallback.
var thens = vocabulary[Failure]{kind: failures.kind, names: failures.names[:Local]}

// onFailure reads a word, or the fields of a local fallback.
func (p *parser) onFailure(e *document.Element, r *pending) {
	const field = "on_failure"
	if e.Kind != document.Mapping {
		r.OnFailure, _ = word(p, e, field, ParseFailure)
		return
	}
	before := p.found()
	r.OnFailure = Local
	f := fallbackFields.readFields(p, e, field, &r.Fallback)
	switch limit := f["limit"]; {
	case p.found() > before:
	case len(f) == 0:
		p.errorf("E006", e.Position, field, "it has no fields; write for example {local: 60s, then: closed}, or one of the words open, closed and local")
	case f["local"] != nil && f["then"] == nil:
		p.errorf("E007", e.Position, field+": then", "required; write what happens after the local fallback, open or closed")
	case f["local"] == nil && f["then"] != nil:
		p.errorf("E038", f["then"].Position, field+": then", "it is for the time after local, which is not given; add local, such as 60s, or remove then")
	case limit != nil && !r.hasRates():
		p.errorf("E038", limit.Position, field+": limit", "it replaces the limits of the rule, and there are none; remove it, or add a limit")
	case limit != nil:
		p.checkFallback(r, placedQuota{whose: field + ": ", at: limit.Position})
	}
}

// checkFallback checks the limit of a fallback as those of the rule.
func (p *parser) checkFallback(r *pending, q placedQuota) {
	l, err := r.fallbackLimit()
	if err != nil {
		return // about the zone, which was reported
	}
	compiled, err := l.Compile()
	switch {
	case err != nil:
		p.limitError(r, q, q.at, err)
	case max(r.Cost, 1) > compiled.Capacity():
		p.errorf("E016", q.at, q.whose+"limit", "%s", tooCostly(max(r.Cost, 1), compiled.Capacity()))
	default:
		p.checkShares(r, q, compiled)
	}
}

// hasRates reports whether any quota of the rule has a rate.
func (r *Rule) hasRates() bool {
	return r.hasQuota(func(q Quota) bool { return len(q.Rates) > 0 })
}

// fallbackLimit is the limit of the fallback. It counts as the rates of the rule do, but its usage is its own: every
// client starts from zero when the store becomes unavailable.
func (r *Rule) fallbackLimit() (weir.Limit, error) {
	l, err := r.limit(Quota{Rates: []Rate{r.Fallback.Limit}}, r.Fallback.Limit)
	l.Name += ":fallback" // the id of a rule has no colon
	return l, err
}

// Validate returns the first reason why the fallback cannot be used, as a *weir.InvalidError. That of its limit is found
// when the rule is compiled.
func (f Fallback) Validate() error {
	switch wrong := checkFallback(f.For, notation.FormatDuration(f.For)); {
	case f.For != 0 && wrong != "":
		return invalidQuota("on_failure: local", "%s", wrong)
	case f.Then > Closed || f.For == 0 && f.Then != Open:
		return invalidQuota("on_failure: then", "%s is not what can happen after the local fallback; write open or closed, and how long it lasts", f.Then)
	}
	return nil
}

// fallback compiles the fallback of a rule.
func (c *compiler) fallback(out *Entry) error {
	f := out.Rule.Fallback
	if f != (Fallback{}) && out.OnFailure != Local {
		return invalidQuota("on_failure", "it is %s, which has no fallback; set OnFailure to Local, or remove Fallback", out.OnFailure)
	}
	if err := f.Validate(); err != nil || f.Limit == (Rate{}) {
		return err
	}
	if wrong := out.wrongMoney(f.Limit); wrong != "" {
		return invalidQuota("on_failure", "%s", wrong)
	}
	l, err := out.fallbackLimit()
	if err == nil {
		out.fallback, err = c.limit(l)
	}
	return err
}

func onFailureElement(r *Rule) *document.Element {
	if r.OnFailure == Local && r.Fallback != (Fallback{}) {
		return fallbackFields.element(&r.Fallback)
	}
	return unless(r.usualFailure(), r.OnFailure, wordElement)
}
