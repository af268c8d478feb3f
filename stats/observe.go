package stats

import (
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/frame"
)

var _ engine.Observer = (*Recorder)(nil)

// Observe implements [engine.Observer].
func (r *Recorder) Observe(req *rule.Request, v *engine.Verdict, took time.Duration) {
	took = max(took, 0)
	slot := frame.SlotOf(took)
	s := r.lock(v)
	b := s.block
	b.decision.slots[slot]++
	b.decision.sum += int64(took)
	shadowed := false
	for i := 0; i < len(v.Results); {
		// The limits of one rule stand together, and it says no if one of them does.
		first := &v.Results[i]
		p := b.index.find(first.Rule)
		tier := p.tier(req.Tier)
		limits := p.limits[tier]
		pass := true
		for n := 0; i < len(v.Results) && v.Results[i].Rule == first.Rule; i, n = i+1, n+1 {
			res := &v.Results[i]
			pass = pass && res.Allowed
			// Not those of an override, nor an instance's share of a limit.
			if n < len(limits) && limits[n].Compiled == res.Limit && res.Asked {
				b.gauges[limits[n].gauge].observe(res, v.Allowed)
			}
		}
		said := saying(first, pass)
		shadowed = shadowed || said == shadowDenied
		b.cells[p.cell+tier][said]++
		b.rules[p.number].slots[slot]++
		b.rules[p.number].sum += int64(took)
		if p.keyed {
			b.keys.add(p.number, !pass, first.Key)
		}
	}
	b.requests[outcomeOf(v, shadowed)]++
	s.mu.Unlock()
}

// observe counts what is in use after an admitted request. One that another rule has
// refused is not counted: it used nothing, and might not have come to that.
func (g *gauge) observe(res *engine.Result, admitted bool) {
	switch {
	case !res.Allowed:
		g.denied++
	case admitted:
		g.slots[frame.Slot(uint64(max(res.Decision.Limit-res.Remaining, 0)))]++
	}
}

// saying is what a rule says of a request, once for all of its limits.
func saying(r *engine.Result, pass bool) outcome {
	switch {
	case pass && r.Asked:
		return allowed
	case pass:
		return degraded
	case !r.Asked:
		return failed
	case r.Shadow:
		return shadowDenied
	}
	return denied
}

// outcomeOf is what became of a request.
func outcomeOf(v *engine.Verdict, shadowed bool) outcome {
	switch {
	case v.Reason == engine.Failure:
		return failed
	case v.Reason == engine.Blocked:
		return blocked
	case !v.Allowed:
		return denied
	case v.Degraded != nil:
		return degraded
	case shadowed:
		return shadowDenied
	}
	return allowed
}
