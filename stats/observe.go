package stats

import (
	"math"
	"time"
	"unsafe"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/frame"
)

var _ engine.Observer = (*Recorder)(nil)

// golden scatters what it is multiplied by. So do its lowest 28 bits alone, by which the
// count in a slot of a sheet comes to the top.
const golden = 0x9E3779B979E3779B

// Observe implements [engine.Observer].
func (r *Recorder) Observe(req *rule.Request, v *engine.Verdict, took time.Duration) {
	took = max(took, 0)
	slot := frame.SlotOf(took)
	// Callers use a verdict again and again: one each, or one a core.
	stripe := int(uint64(uintptr(unsafe.Pointer(v))) * golden >> 32 & r.stripeMask)
	power, chance := r.stripes[stripe].power.Load(), r.stripes[stripe].chance.Load()
	x := r.index.Load()
	shadowed := false
	for from, to := 0, 0; from < len(v.Results); from = to {
		// The limits of one rule stand together, and it says no if one of them does.
		first := &v.Results[from]
		pass := first.Allowed
		for to = from + 1; to < len(v.Results) && v.Results[to].Rule == first.Rule; to++ {
			pass = pass && v.Results[to].Allowed
		}
		said := saying(first, pass)
		shadowed = shadowed || said == shadowDenied
		with := along
		if to-from == len(v.Results) && outcomeOf(v, shadowed) == said {
			with = alone
		}
		p := x.find(first.Rule)
		number := p.lines[p.tier(req.Tier)].sheet(stripe, with, said).add(slot, took)
		if number*golden+chance <= math.MaxUint64>>(power&63) {
			r.stripes[stripe].sample(req, v, from, to, pass, power)
		}
		if with == alone {
			return
		}
	}
	r.requests.sheet(stripe, along, outcomeOf(v, shadowed)).add(slot, took)
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
