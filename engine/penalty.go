package engine

import (
	"context"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// While a request is decided, the penalty of a client is one more result of its rule, at
// the end, that is only looked at. Then it becomes part of the others: they deny until the
// penalty is over.

// addPenalty lists the penalty of a client, if its rule has one.
func (v *Verdict) addPenalty(c *rule.Entry, identity string) {
	if _, penalty := c.PenaltyLimits(); penalty != nil && c.Mode == rule.Enforce {
		v.Results = append(v.Results, Result{
			Rule: c, Compiled: penalty, Key: identity, Look: true, isPenalty: true, Decision: weir.Decision{Allowed: true},
		})
		v.penalties++
	}
}

// startPenalties starts the penalties of clients whom the limits of a rule have just denied. If
// the store cannot be asked before the deadline, the next denial does. The store of this process is asked
// even later: when another did not answer, the deadline has passed.
func (e *Engine) startPenalties(ctx context.Context, deadline time.Time, in *installed, v *Verdict) {
	if v.penalties == 0 || v.charging.way == peeked {
		return
	}
	rest, cancel := until(ctx, deadline)
	defer cancel()
	results := v.inGroup(enforced)
	for i := range results {
		r := &results[i]
		if !r.isPenalty || !r.Asked || !r.Allowed || !hasDenied(r.limitsBefore(results, i)) {
			continue
		}
		within, store, instances := rest, e.store, 1
		if r.Local {
			within, store, instances = ctx, e.local, max(1, e.instances())
		}
		if denials, _ := r.Rule.PenaltyLimits(); denials != nil {
			d, err := store.Take(within, v.decisions[:0], weir.Op{Key: r.Key, Limit: in.shares.of(denials, instances), Cost: 1})
			if err != nil || d[0].Remaining > 0 {
				continue
			}
		}
		// If another request has started it meanwhile, it does not start again.
		if d, err := store.Take(within, v.decisions[:0], weir.Op{Key: r.Key, Limit: r.Compiled, Cost: 1}); err == nil {
			r.Decision = d[0]
		}
	}
}

// limitsBefore are the results of the limits of a penalty, which is the i-th.
func (r *Result) limitsBefore(results []Result, i int) []Result {
	first := i
	for first > 0 && results[first-1].Rule == r.Rule && results[first-1].Key == r.Key && !results[first-1].isPenalty {
		first--
	}
	return results[first:i]
}

// hasDenied reports whether limits have denied a charge that they could allow at another
// time.
func hasDenied(results []Result) bool {
	denied := false
	for i := range results {
		r := &results[i]
		if r.RetryAfter == weir.Never {
			return false
		}
		denied = denied || !r.Allowed && r.Receipt == 0
	}
	return denied
}

// mergePenalties makes penalties part of the results that they are about.
func (v *Verdict) mergePenalties() {
	if v.penalties == 0 {
		return
	}
	v.removeResults(func(kept []Result, r *Result) bool {
		if r.isPenalty && r.Asked && r.Remaining == 0 {
			for j := len(kept) - 1; j >= 0 && kept[j].Rule == r.Rule && kept[j].Key == r.Key; j-- {
				kept[j].denyUntil(r)
			}
		}
		return r.isPenalty
	})
	v.penalties = 0
}

// denyUntil makes a result deny as long as a penalty lasts.
func (r *Result) denyUntil(penalty *Result) {
	r.Penalty, r.Remaining, r.Reserved, r.Delay = true, 0, 0, 0
	r.ResetAfter, r.ResetAt = max(r.ResetAfter, penalty.ResetAfter), max(r.ResetAt, penalty.ResetAt)
	if r.Cost != 0 || r.Look {
		r.Allowed, r.RetryAfter = false, max(r.RetryAfter, penalty.ResetAfter)
	}
}
