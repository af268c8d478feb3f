package engine

import (
	"context"
	"time"

	"github.com/weirhq/weir"
)

// A rule that counts denied requests unless an earlier rule denies is charged as any other: all limits or none. So nothing is
// to be given back if an earlier rule denies. If none does, and the request is denied, a second call counts the attempt.
// Requests that come between the two calls are decided as if they had come first.

// countDenied counts a request that is denied under the rules that want so, unless an earlier one denies it. If the
// store cannot be asked before the deadline, the attempt is not counted.
func (e *Engine) countDenied(ctx context.Context, deadline time.Time, in *installed, v *Verdict) {
	if !v.countsLater || v.charging.way == peeked || v.isAlways() || v.firstDenial() == nil {
		return
	}
	rest, cancel := until(ctx, deadline)
	defer cancel()
	within := [...]context.Context{rest, ctx} // the store of this process is asked even later, as for penalties
	for n, store := range e.stores() {
		v.ops = v.ops[:0]
		var counted []*Result
		for i := range v.inGroup(enforced) {
			r := &v.Results[i]
			if !r.Rule.UnlessDeniedEarlier || r.isPenalty || r.isPlace() || !r.Asked || r.Local != (n == 1) || r.Receipt != 0 || v.isDeniedBefore(r) {
				continue
			}
			counted = append(counted, r)
			v.ops = append(v.ops, weir.Op{Key: r.Key, Limit: in.shares.counting(r.Compiled), Cost: r.Cost, Leave: r.Leave})
		}
		if len(counted) == 0 {
			continue
		}
		decisions, err := store.Take(within[n], v.decisions[:0], v.ops...)
		if err != nil {
			continue
		}
		for i, r := range counted {
			d := &decisions[i]
			r.Remaining, r.ResetAfter, r.ResetAt = d.Remaining, d.ResetAfter, d.ResetAt
			if !r.Allowed {
				r.RetryAfter, r.Reserved = max(r.RetryAfter, d.RetryAfter), 0 // who asks again is charged again
			}
		}
	}
}

// isDeniedBefore reports whether a rule that precedes that of the result denies the request, and the latter does not count it then.
func (v *Verdict) isDeniedBefore(r *Result) bool {
	if !r.Rule.UnlessDeniedEarlier {
		return false
	}
	first := v.firstDenial()
	return first != nil && first.Rule.Precedes(r.Rule)
}

// firstDenial is the first result that denies the request, in the order of the document; nil if none does.
func (v *Verdict) firstDenial() *Result {
	for i := range v.inGroup(enforced) {
		if r := &v.Results[i]; !r.Allowed {
			return r
		}
	}
	return nil
}
