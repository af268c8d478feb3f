package engine

import (
	"context"
	"errors"

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

	// Hold makes the cost an estimate on which a hold begins, or ends a hold with the cost as what was
	// used, whatever other demands say. Default nil: the cost is charged for good.
	Hold *NamedHold
}

// part is what becomes of a demand.
type part uint8

const (
	charged part = iota // all of them, or none
	begun               // likewise, with a hold
	owed                // charged whatever others say
	ended               // ends a hold, whatever others say
)

func (d *Demand) part() part {
	switch {
	case d.Hold != nil && d.Hold.Ends:
		return ended
	case d.Cost == 0:
		return charged
	case d.Hold != nil:
		return begun
	case d.Always:
		return owed
	}
	return charged
}

// Demand decides a request by its demands instead of the rules in force, as Check does:
// all are charged, or none. Those that end a hold do so first, and those with Always are charged last, whatever becomes of the
// others. Result.Demand tells to which demand a result belongs. A demand that ends a hold has none.
func (e *Engine) Demand(ctx context.Context, demands []Demand, v *Verdict) error {
	e.begin(v)
	in := e.installed.Load()
	v.reset(in)
	var parts [ended + 1]int
	var failed error
	deadline := e.deadline()
	for i := range demands {
		if parts[demands[i].part()]++; demands[i].part() == ended {
			failed = errors.Join(failed, e.endHold(ctx, deadline, parts[ended] == 1, &demands[i]))
		}
	}
	if parts[ended] == len(demands) {
		v.Allowed = true // and this is no request
		return failed
	}
	var err error
	if parts[begun] > 0 {
		err = e.reserveDemands(ctx, in, demands, v)
	} else {
		err = e.chargeDemands(ctx, in, demands, func(d *Demand) bool { return d.part() == charged }, v)
	}
	if err != nil {
		return err
	}
	if parts[owed] > 0 {
		other := Verdict{charging: charging{way: always}, timing: v.timing}
		if err := e.chargeDemands(ctx, in, demands, func(d *Demand) bool { return d.part() == owed }, &other); err != nil {
			return err
		}
		v.appendVerdict(&other)
	}
	e.observeNoHold(v)
	e.observe(&noRequest, v)
	return failed
}

// reset makes the verdict ready for demands.
func (v *Verdict) reset(in *installed) {
	v.clear()
	v.Version, v.Priority = in.version, rule.Normal
}

// PeekDemand returns the answer that Demand would return, and charges nothing. Observers are
// not called.
func (e *Engine) PeekDemand(ctx context.Context, demands []Demand, v *Verdict) error {
	in := e.installed.Load()
	v.reset(in)
	v.listDemands(demands, func(d *Demand) bool { return d.part() != ended })
	return e.peek(ctx, in, v)
}

// chargeDemands charges some demands.
func (e *Engine) chargeDemands(ctx context.Context, in *installed, demands []Demand, pick func(*Demand) bool, v *Verdict) error {
	v.listDemands(demands, pick)
	return e.charge(ctx, in, v)
}

// listDemands puts the limits of some demands on the list.
func (v *Verdict) listDemands(demands []Demand, pick func(*Demand) bool) {
	for g, more := enforced, true; g < groups; g++ {
		if more {
			more = v.addDemands(demands, pick, g)
		}
		v.endGroup(g)
	}
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

// addDemands puts the limits of some demands of a group on the list. It reports whether others
// have a later group.
func (v *Verdict) addDemands(demands []Demand, pick func(*Demand) bool, g group) (more bool) {
	for i := range demands {
		d := &demands[i]
		if !pick(d) {
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
