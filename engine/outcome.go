package engine

import (
	"time"

	"github.com/weirhq/weir/rule"
)

// Observer is told of every verdict on a request, as soon as it is known; peeks are
// none. It must be quick, and keeps neither the request nor the verdict.
type Observer interface {
	Observe(req *rule.Request, v *Verdict, took time.Duration)
}

// RuleObserver is an observer that counts by rule. The engine tells it of rules before
// the first verdict by them.
type RuleObserver interface {
	Observer

	// Install says which rules come into force.
	Install(table *rule.Table, version int64)

	// InstallDemands says which rules come with a [Demand], all of them.
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

// Outcome is what became of a request, or what one rule said of it.
type Outcome uint8

const (
	OutcomeAllowed         Outcome = iota
	OutcomeDenied                  // by a limit
	OutcomeShadowDenied            // it was allowed; a shadow rule would have denied it
	OutcomeDegradedAllowed         // it was allowed without the store
	OutcomeDegradedDenied          // it was denied without the store, because a rule is closed
	OutcomeBlocked                 // the client is on the block list; no rule says that
	OutcomeExempt                  // the client is on the exempt list; no rule says that
	OutcomeNoRule                  // it was allowed, because no rule applied
	Outcomes                       // how many there are
)

var outcomeNames = [Outcomes]string{
	OutcomeAllowed: "allowed", OutcomeDenied: "denied", OutcomeShadowDenied: "shadow_denied",
	OutcomeDegradedAllowed: "degraded_allowed", OutcomeDegradedDenied: "degraded_denied",
	OutcomeBlocked: "blocked", OutcomeExempt: "exempt", OutcomeNoRule: "no_rule",
}

// String returns the name that metrics and statistics use.
func (o Outcome) String() string { return outcomeNames[o] }

// Outcome is what became of the request. Each has exactly one.
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
	case !v.Allowed:
		return OutcomeDenied
	case v.Degraded != nil:
		return OutcomeDegradedAllowed
	case len(v.Results) == 0:
		return OutcomeNoRule
	}
	for i := range v.Results {
		if r := &v.Results[i]; r.Shadow && r.Asked && !r.Allowed {
			return OutcomeShadowDenied
		}
	}
	return OutcomeAllowed
}

// Said is what the rule of a result says, once for all of its limits, and where the
// results of the next rule begin. The limits of one rule stand together, and it says no
// if one of them does.
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
	case r.Shadow:
		return OutcomeShadowDenied, next
	}
	return OutcomeDenied, next
}
