package engine

import (
	"context"
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
}

// Demand decides a request by its demands instead of the rules in force, as Check does:
// all are charged, or none. Result.Demand tells to which demand a result belongs.
func (e *Engine) Demand(ctx context.Context, demands []Demand, v *Verdict) error {
	var start time.Duration
	if e.observer != nil {
		start = time.Since(e.born)
	}
	v.clear()
	in := e.installed.Load()
	v.Version = in.version
	for p := range places {
		v.demand(demands, p)
		v.end(p)
	}
	if err := e.charge(ctx, in, v); err != nil {
		return err
	}
	if e.observer != nil {
		e.observer.Observe(&noRequest, v, time.Since(e.born)-start)
	}
	return nil
}

// noRequest is what observers are told of demands.
var noRequest rule.Request

// demand puts the limits of the demands of a place on the list.
func (v *Verdict) demand(demands []Demand, p place) {
	for i := range demands {
		d := &demands[i]
		if placeOf(d.Rule) != p {
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
