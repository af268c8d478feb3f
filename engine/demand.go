package engine

import (
	"context"
	"slices"

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
	e.begin(v)
	v.clear()
	in := e.installed.Load()
	v.Version, v.Priority = in.version, rule.Normal
	if err := e.chargeDemands(ctx, in, demands, false, v); err != nil {
		return err
	}
	if slices.ContainsFunc(demands, func(d Demand) bool { return d.isOwed() }) {
		owed := Verdict{charging: charging{way: always}, timing: v.timing}
		if err := e.chargeDemands(ctx, in, demands, true, &owed); err != nil {
			return err
		}
		v.appendVerdict(&owed)
	}
	e.observe(&noRequest, v)
	return nil
}

// PeekDemand returns the answer that Demand would return, and charges nothing. Observers are
// not called.
func (e *Engine) PeekDemand(ctx context.Context, demands []Demand, v *Verdict) error {
	v.clear()
	in := e.installed.Load()
	v.Version, v.Priority = in.version, rule.Normal
	for g := range groups {
		v.addDemands(demands, false, g)
		v.addDemands(demands, true, g)
		v.endGroup(g)
	}
	return e.peek(ctx, in, v)
}

// chargeDemands charges those that are owed, or the others.
func (e *Engine) chargeDemands(ctx context.Context, in *installed, demands []Demand, owed bool, v *Verdict) error {
	for g, more := enforced, true; more && g < groups; g++ {
		more = v.addDemands(demands, owed, g)
		v.endGroup(g)
	}
	return e.charge(ctx, in, v)
}

// appendVerdict adds another verdict on the same request.
func (v *Verdict) appendVerdict(other *Verdict) {
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

// addDemands puts the limits of the demands of a group on the list. It reports whether others
// have a later group.
func (v *Verdict) addDemands(demands []Demand, owed bool, g group) (more bool) {
	for i := range demands {
		d := &demands[i]
		if d.isOwed() != owed {
			continue
		}
		if own := groupOf(d.Rule); own != g {
			more = more || own > g
			continue
		}
		for _, limit := range d.Limits {
			r := v.nextResult()
			r.Rule, r.Compiled, r.Key, r.Cost, r.Demand = d.Rule, limit, d.Key, d.Cost, i
			r.Look, r.Shadow, r.Soft, r.Allowed = d.Cost == 0, !d.Rule.Mode.Denies(), d.Rule.Mode == rule.Soft, true
		}
	}
	return more
}
