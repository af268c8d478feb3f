package engine

import (
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Demand is limits that apply to a request by rules of somebody else's: a protocol
// that finds them, and names clients, in a way of its own.
type Demand struct {
	// Rule says how to treat them: its id, mode and failure policy, and whether
	// refused requests count. It need not be of a table: &rule.Entry{Rule: r}.
	Rule *rule.Entry

	Key    string
	Limits []*weir.Compiled
	Cost   int64 // 0 only looks whether there is room for one
}

// Charge judges a request by its demands instead of the rules in force, as Check
// does: all are charged, or none. Result.Demand tells which one a result belongs to.
func (e *Engine) Charge(ctx context.Context, demands []Demand, v *Verdict) error {
	var start time.Duration
	if e.observer != nil {
		start = time.Since(e.born)
	}
	v.clear()
	in := e.installed.Load()
	v.Version = in.version
	v.demand(demands, func(d *Demand) bool { return d.Cost > 0 && d.Rule.Mode != rule.Shadow })
	v.enforced = len(v.Results)
	v.demand(demands, func(d *Demand) bool { return d.Cost > 0 && d.isShadow(false) })
	v.quiet = len(v.Results)
	v.demand(demands, func(d *Demand) bool { return d.Cost > 0 && d.isShadow(true) })
	charged := len(v.Results)
	v.demand(demands, func(d *Demand) bool { return d.Cost == 0 })
	if err := e.chargeOrLook(ctx, in, v, charged); err != nil {
		return err
	}
	if e.observer != nil {
		e.observer.Observe(&noRequest, v, time.Since(e.born)-start)
	}
	return nil
}

// noRequest is what observers are told of demands.
var noRequest rule.Request

func (d *Demand) isShadow(counting bool) bool {
	return d.Rule.Mode == rule.Shadow && d.Rule.CountDenied == counting
}

// chargeOrLook charges the first results and looks at the others. If one of those
// refuses, the first are charged only as far as they count what is refused.
func (e *Engine) chargeOrLook(ctx context.Context, in *installed, v *Verdict, charged int) error {
	looked := v.Results[charged:]
	if len(looked) == 0 {
		return e.charge(ctx, in, v)
	}
	ops := v.opsOf(looked)
	for i := range ops {
		ops[i].Cost = 1
	}
	var err error
	if v.decisions, err = e.store.Peek(ctx, v.decisions[:0], ops...); err == nil {
		record(looked, v.decisions)
	} else if err := ctx.Err(); err != nil {
		return err
	}
	unseen := err
	decide := e.charge
	if i := refusing(looked); i >= 0 && !looked[i].Rule.CountDenied {
		decide = e.look
	}
	all := v.Results
	v.Results = all[:charged]
	err = decide(ctx, in, v)
	v.Results = all
	if v.Degraded == nil {
		v.Degraded = unseen
	}
	i := refusing(looked)
	if err != nil || i < 0 {
		return err
	}
	if v.Allowed || v.speaker == 0 {
		v.Allowed, v.Delay, v.speaker = false, 0, charged+i+1
	}
	for i := range looked {
		if r := &looked[i]; !r.Shadow {
			v.RetryAfter = max(v.RetryAfter, r.RetryAfter)
		}
	}
	return nil
}

// refusing finds a result that refuses the request, or answers -1.
func refusing(results []Result) int {
	return slices.IndexFunc(results, func(r Result) bool { return !r.Allowed && !r.Shadow })
}

// demand puts the limits of some demands on the list.
func (v *Verdict) demand(demands []Demand, which func(*Demand) bool) {
	for i := range demands {
		d := &demands[i]
		if !which(d) {
			continue
		}
		for _, limit := range d.Limits {
			v.Results = append(v.Results, Result{
				Rule: d.Rule, Quota: limit, Key: d.Key, Cost: d.Cost, Demand: i,
				Shadow: d.Rule.Mode == rule.Shadow, Decision: weir.Decision{Allowed: true},
			})
		}
	}
}
