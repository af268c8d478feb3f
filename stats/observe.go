package stats

import (
	"math"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/tally"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

var _ engine.RuleObserver = (*Recorder)(nil)

// outcomes are those that are counted apart, the first ones.
const outcomes = engine.OutcomeBlocked + 1

// outcomeCounts returns the counts of n requests with the outcome.
func outcomeCounts(o engine.Outcome, n int64) archive.Counts {
	var c [outcomes]int64
	c[o] = n
	return archive.Counts{
		Allowed: c[engine.OutcomeAllowed], Denied: c[engine.OutcomeDenied], ShadowDenied: c[engine.OutcomeShadowDenied], SoftDenied: c[engine.OutcomeSoftDenied],
		DegradedAllowed: c[engine.OutcomeDegradedAllowed], DegradedDenied: c[engine.OutcomeDegradedDenied], Blocked: c[engine.OutcomeBlocked],
	}
}

// Observe implements [engine.Observer].
func (r *Recorder) Observe(req *rule.Request, v *engine.Verdict, took time.Duration) {
	took = max(took, 0)
	slot := archive.DurationSlot(took)
	stripe := int(tally.Stripe(v, r.stripeMask))
	power, chance := r.stripes[stripe].power.Load(), r.stripes[stripe].chance.Load()
	x := r.index.Load()
	outcome := v.Outcome()
	if outcome >= outcomes {
		outcome = engine.OutcomeAllowed // exempt, or no rule applies
	}
	if p := v.Priority; p == rule.Low || p > rule.Normal && p <= rule.Critical {
		r.stripes[stripe].priorities[p][outcome].Add(1)
	}
	for from, to := 0, 0; from < len(v.Results); from = to {
		var said engine.Outcome
		said, to = v.Said(from)
		with := along
		if to-from == len(v.Results) && outcome == said {
			with = alone
		}
		p := x.Find(v.Results[from].Rule)
		number := p.lines[p.tier(req.Tier)].sheet(stripe, with, said).add(slot, took)
		if v.Held(from, said) {
			r.holds.count(p.id, opened)
		}
		// Golden brings the count in a slot of a sheet to the top.
		if number*tally.Golden+chance <= math.MaxUint64>>(power&63) {
			pass := said == engine.OutcomeAllowed || said == engine.OutcomeDegradedAllowed
			r.stripes[stripe].sample(req, v, from, to, pass, power)
			if !pass {
				r.stripes[stripe].sampleDenial(req, v, from, to, said, r.options.Clock)
			}
		}
		if with == alone {
			return
		}
	}
	number := r.requests.sheet(stripe, along, outcome).add(slot, took)
	if outcome == engine.OutcomeBlocked && number*tally.Golden+chance <= math.MaxUint64>>(power&63) {
		r.stripes[stripe].sampleBlocked(req, r.options.Clock)
	}
}
