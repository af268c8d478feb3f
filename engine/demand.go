package engine

import (
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Demand is a limit that applies to a request by external rules: those of a protocol
// that selects limits and identifies clients in its own way.
type Demand struct {
	// Rule defines how to treat the demand: its id, mode and failure policy, and
	// whether denied requests count. It need not belong to a table: &rule.Entry{Rule:
	// r}.
	Rule *rule.Entry

	Key    string
	Limits []*weir.Compiled
	Cost   int64 // 0 only checks whether there is room for one unit

	// Always charges the cost even if it does not fit, whatever other demands say; see
	// [weir.Op.Always]. Default false.
	Always bool
}

// isOwed reports whether the demand is charged whatever others say.
func (d *Demand) isOwed() bool { return d.Always && d.Cost > 0 }

// Demand decides a request by its demands instead of the rules in force, as Check does:
// all are charged, or none, and then those with Always. Result.Demand tells to which demand
// a result belongs.
func (e *Engine) Demand(ctx context.Context, demands []Demand, v *Verdict) error {
	var start time.Duration
	if e.observer != nil {
		start = time.Since(e.born)
	}
	v.clear()
	in := e.installed.Load()
	v.Version = in.version
	if err := e.chargeDemands(ctx, in, demands, false, v); err != nil {
		return err
	}
	if slices.ContainsFunc(demands, func(d Demand) bool { return d.isOwed() }) {
		owed := Verdict{how: chargingAlways}
		if err := e.chargeDemands(ctx, in, demands, true, &owed); err != nil {
			return err
		}
		v.append(&owed)
	}
	if e.observer != nil {
		e.observer.Observe(&noRequest, v, time.Since(e.born)-start)
	}
	return nil
}

// PeekDemand returns the answer that Demand would return, and charges nothing. Observers are
// not called.
func (e *Engine) PeekDemand(ctx context.Context, demands []Demand, v *Verdict) error {
	v.clear()
	in := e.installed.Load()
	v.Version = in.version
	for p := range places {
		v.demand(demands, false, p)
		v.demand(demands, true, p)
		v.end(p)
	}
	return e.look(ctx, in, v)
}

// chargeDemands charges those that are owed, or the others.
func (e *Engine) chargeDemands(ctx context.Context, in *installed, demands []Demand, owed bool, v *Verdict) error {
	for p := range places {
		v.demand(demands, owed, p)
		v.end(p)
	}
	return e.charge(ctx, in, v)
}

// append adds another verdict on the same request.
func (v *Verdict) append(other *Verdict) {
	if other.speaker > 0 && (v.speaker == 0 || v.Allowed && !other.Allowed) {
		v.speaker = len(v.Results) + other.speaker
	}
	for _, r := range other.Results {
		r.Receipt = 0 // what is done already is not given back
		v.Results = append(v.Results, r)
	}
	v.Allowed, v.RetryAfter = v.Allowed && other.Allowed, max(v.RetryAfter, other.RetryAfter)
	if v.Degraded == nil {
		v.Degraded = other.Degraded
	}
}

// noRequest is what observers are told of demands.
var noRequest rule.Request

// demand puts the limits of the demands of a place on the list.
func (v *Verdict) demand(demands []Demand, owed bool, p place) {
	for i := range demands {
		d := &demands[i]
		if placeOf(d.Rule) != p || d.isOwed() != owed {
			continue
		}
		for _, limit := range d.Limits {
			v.Results = append(v.Results, Result{
				Rule: d.Rule, Quota: limit, Key: d.Key, Cost: d.Cost, Look: d.Cost == 0, Demand: i,
				Shadow: d.Rule.Mode == rule.Shadow, Decision: weir.Decision{Allowed: true},
			})
		}
	}
}
