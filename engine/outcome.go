package engine

import (
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Observer is called with every verdict, except those of Peek. It must be fast, and
// must keep neither the request nor the verdict.
type Observer interface {
	Observe(req *rule.Request, v *Verdict, took time.Duration)
}

// RuleObserver is an Observer that counts by rule. The engine calls it with new rules
// before their first verdict.
type RuleObserver interface {
	Observer

	// Install is called with the rules that come into force.
	Install(table *rule.Table, version int64)

	// InstallDemands is called with all rules that come with a [Demand].
	InstallDemands(rules []*rule.Entry)
}

// tellAll is an observer that tells several.
func tellAll(observers []Observer) Observer {
	switch len(observers) {
	case 0:
		return nil
	case 1:
		return observers[0]
	}
	return several(observers)
}

type several []Observer

func (all several) Observe(req *rule.Request, v *Verdict, took time.Duration) {
	for _, o := range all {
		o.Observe(req, v, took)
	}
}

// Outcome is the result of a request, or of one rule.
type Outcome uint8

const (
	OutcomeAllowed         Outcome = iota
	OutcomeDenied                  // denied by a limit
	OutcomeShadowDenied            // allowed; a shadow rule would have denied it
	OutcomeSoftDenied              // allowed; a soft rule would have denied it, and the client is told
	OutcomeDegradedAllowed         // allowed without the store
	OutcomeDegradedDenied          // denied without the store: a rule fails closed, or counts locally
	OutcomeBlocked                 // the client is on the block list; not an outcome of a rule
	OutcomeExempt                  // the client is on the exempt list; not an outcome of a rule
	OutcomeNoRule                  // allowed, because no rule applied
	Outcomes                       // number of outcomes
)

var outcomeNames = [Outcomes]string{
	OutcomeAllowed: "allowed", OutcomeDenied: "denied", OutcomeShadowDenied: "shadow_denied", OutcomeSoftDenied: "soft_denied",
	OutcomeDegradedAllowed: "degraded_allowed", OutcomeDegradedDenied: "degraded_denied",
	OutcomeBlocked: "blocked", OutcomeExempt: "exempt", OutcomeNoRule: "no_rule",
}

// String returns the name that metrics and statistics use.
func (o Outcome) String() string { return outcomeNames[o] }

// Outcome returns the outcome of the request. Each request has exactly one.
func (v *Verdict) Outcome() Outcome {
	switch v.Reason {
	case Exempt:
		return OutcomeExempt
	case Blocked:
		return OutcomeBlocked
	case Unavailable:
		return OutcomeDegradedDenied
	}
	switch {
	case !v.Allowed && v.Degraded != nil && !slices.ContainsFunc(v.at(enforced), func(r Result) bool { return !r.Allowed && r.Asked && !r.Local }):
		return OutcomeDegradedDenied
	case !v.Allowed:
		return OutcomeDenied
	case v.Degraded != nil:
		return OutcomeDegradedAllowed
	case len(v.Results) == 0:
		return OutcomeNoRule
	}
	outcome := OutcomeAllowed
	for i := range v.Results {
		if r := &v.Results[i]; r.Shadow && r.Asked && !r.Allowed {
			if r.Soft {
				return OutcomeSoftDenied
			}
			outcome = OutcomeShadowDenied
		}
	}
	return outcome
}

// Held reports whether v.Hold has a part of a result's rule, which said something.
func (v *Verdict) Held(i int, said Outcome) bool {
	return v.Hold != (weir.HoldID{}) && (said == OutcomeAllowed || said == OutcomeDegradedAllowed && !v.Results[i].Shadow)
}

// Said returns the outcome of a result's rule, for all its limits together, and the
// index of the next rule's first result. The limits of a rule are adjacent, and the
// rule denies if one of them denies.
func (v *Verdict) Said(i int) (said Outcome, next int) {
	r := &v.Results[i]
	pass := r.Allowed
	for next = i + 1; next < len(v.Results) && v.Results[next].Rule == r.Rule; next++ {
		pass = pass && v.Results[next].Allowed
	}
	switch {
	case pass && r.Asked:
		return OutcomeAllowed, next
	case pass:
		return OutcomeDegradedAllowed, next
	case !r.Asked:
		return OutcomeDegradedDenied, next
	case r.Soft:
		return OutcomeSoftDenied, next
	case r.Shadow:
		return OutcomeShadowDenied, next
	}
	return OutcomeDenied, next
}
