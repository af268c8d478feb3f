package engine

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// degrade decides what the store has not decided: each rule by its on_failure. An invalid request, or
// one whose context has ended, is still an error.
func (e *Engine) degrade(ctx context.Context, deadline time.Time, in *installed, v *Verdict, cause error) error {
	if err := e.fallBack(ctx, v, cause); err != nil {
		return err
	}
	local := e.takeLocal
	switch v.charging.way {
	case peeked:
		local = e.local.Peek
	case always:
		e.chargeLater(v, cause)
	case reserved:
		return e.reserveLocal(ctx, deadline, in, v)
	}
	return e.decideRest(ctx, deadline, in, v, local)
}

// fallBack finds for each result that the store has not decided what on_failure says.
func (e *Engine) fallBack(ctx context.Context, v *Verdict, cause error) error {
	err := ctx.Err()
	if err == nil && v.failed == nil {
		err = weir.ValidateTake(v.ops)
	}
	if err != nil {
		e.giveBack(ctx, time.Time{}, v)
		return err
	}
	v.Degraded = cause
	results := v.inGroup(enforced)
	for i := range results {
		if v.failed != nil {
			if cause = v.failed[i]; cause == nil {
				continue
			}
		}
		r, busy := &results[i], errors.Is(cause, weir.ErrBusy)
		policy := r.Rule.FailureAfter(e.outages.lasts(e.partOf(r), e.clock(), !busy && v.charging.way != peeked))
		if policy == rule.Open && !v.isAlways() && busy {
			policy = rule.Local // or who keeps this process busy would lift the limits
		}
		r.Local, r.closed, r.Asked = policy == rule.Local, policy == rule.Closed, false // it may have waited
		r.Decision = weir.Decision{Allowed: !r.closed || v.isAlways()}
	}
	v.limitFallback()
	return nil
}

// limitFallback lets the limit that a rule has for its local fallback replace all rates that would apply to a client.
func (v *Verdict) limitFallback() {
	v.removeResults(func(kept []Result, r *Result) bool {
		limit := r.Rule.FallbackLimit()
		if limit == nil || !r.Local || r.isPlace() || r.isPenalty {
			return false
		}
		if n := len(kept) - 1; n >= 0 && kept[n].Compiled == limit && kept[n].Key == r.Key {
			return true
		}
		r.Compiled, r.Override, r.Leave = limit, nil, r.Rule.Leave(limit, v.Priority)
		return false
	})
}

// outages knows which parts of the store are unavailable, and since when: since the first charge that failed, with none
// after it that did not. A part is a slot of a cluster, or the whole store.
type outages struct {
	count atomic.Int64 // of since, which is empty nearly always
	mu    sync.Mutex
	since map[uint16]weir.Micros
}

// lasts returns for how long a part has been unavailable. If that is news, it is noted or not.
func (o *outages) lasts(part uint16, now weir.Micros, note bool) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	since, known := o.since[part]
	switch {
	case known:
		return time.Duration(now-since) * time.Microsecond
	case note && o.since == nil:
		o.since = map[uint16]weir.Micros{}
		fallthrough
	case note:
		o.since[part] = now
		o.count.Store(int64(len(o.since)))
	}
	return 0
}

// endOutages notes that the store has charged some results.
func (e *Engine) endOutages(results []Result) {
	o := &e.outages
	if o.count.Load() == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range results {
		if results[i].Asked {
			delete(o.since, e.partOf(&results[i]))
		}
	}
	o.count.Store(int64(len(o.since)))
}

// partOf is the part of the store that decides a result.
func (e *Engine) partOf(r *Result) uint16 {
	if e.partial == nil {
		return 0
	}
	return e.partial.PartOf(weir.Op{Key: r.Key, Limit: r.Compiled})
}

// decideRest decides a request by what the store has said, and what on_failure says of the rest.
func (e *Engine) decideRest(ctx context.Context, deadline time.Time, in *installed, v *Verdict, local askStore) error {
	results := v.inGroup(enforced)
	denied, closed := false, false
	for i := range results {
		r := &results[i]
		denied = denied || !r.Allowed && r.Asked && !v.isAlways()
		closed = closed || !r.Allowed && !r.Asked
	}
	if denied || closed { // so nothing is charged, not even locally
		for i := range results {
			results[i].Local = results[i].Local && results[i].Asked
		}
	} else if err := e.askLocal(ctx, in, v, results, local); err != nil {
		e.giveBack(ctx, deadline, v)
		return err
	}
	e.countDenied(ctx, deadline, in, v)
	e.startPenalties(ctx, deadline, in, v)
	v.conclude()
	if closed && !denied {
		v.Reason = Unavailable
	}
	if !v.Allowed && !v.isAlways() {
		e.giveBack(ctx, deadline, v)
	}
	return nil
}

// giveBack gives back what the store has charged for a request that is denied after all. It does not wait
// beyond the deadline.
func (e *Engine) giveBack(ctx context.Context, deadline time.Time, v *Verdict) {
	hold, ops := v.Hold, []weir.Op(nil)
	v.Hold, v.HoldExpires = weir.HoldID{}, 0
	for i := range v.Results {
		r := &v.Results[i]
		if r.Receipt == 0 || r.Local || r.Rule.CountDenied && !v.isDeniedBefore(r) {
			continue
		}
		if !r.held {
			ops = append(ops, weir.Op{Key: strings.Clone(r.Key), Limit: r.Compiled, Cost: r.Cost, Receipt: r.Receipt})
		}
		r.Receipt, r.held, r.Remaining = 0, false, min(r.Limit-r.Leave, r.Remaining+r.Cost)
	}
	if hold == (weir.HoldID{}) && len(ops) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx := context.WithoutCancel(ctx)
		if hold != (weir.HoldID{}) { // of which no observer has heard
			s := &settlement{id: hold, used: Units(0), kind: CancelledHold}
			s.byTag = s.usedByTag
			if _, err := e.settleOnce(ctx, time.Time{}, s, nil); err != nil {
				_ = e.retryLater(s, err)
			}
		}
		_ = e.store.Refund(ctx, ops...)
	}()
	rest, cancel := until(ctx, deadline)
	defer cancel()
	select {
	case <-done:
	case <-rest.Done():
	}
}

// askLocal asks the store of this process for the results that it decides: all or none of
// those.
func (e *Engine) askLocal(ctx context.Context, in *installed, v *Verdict, results []Result, local askStore) error {
	v.ops = v.ops[:0]
	instances := max(1, e.instances())
	for i := range results {
		r := &results[i]
		if !r.Local {
			continue
		}
		var op weir.Op
		r.fillOp(&op, in.shares.of(r.Compiled, instances), &v.charging)
		if op.Leave > 0 && op.Limit != r.Compiled {
			// An instance that had to leave all of its part would deny everybody.
			op.Leave = min(r.Rule.Leave(op.Limit, v.Priority), max(0, op.Limit.Capacity()-op.Cost))
		}
		v.ops = append(v.ops, op)
	}
	var err error
	if v.decisions, err = local(ctx, v.decisions[:0], v.ops...); err != nil {
		return err
	}
	at := 0
	for i := range results {
		if r := &results[i]; r.Local {
			r.Decision, r.Compiled, r.Leave, r.Asked = v.decisions[at], v.ops[at].Limit, v.ops[at].Leave, true
			at++
		}
	}
	return nil
}

// takeLocal takes from the store of this process, where clients begin with what they
// were last seen to have used.
func (e *Engine) takeLocal(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	e.seedAll(ctx, ops)
	return e.local.Take(ctx, dst, ops...)
}

// usage is what the store last said of a client who has used much of a limit that goes on
// locally. When the store is unavailable, such a client does not begin again: it begins with what
// it had used. One that was forgotten has a little more at the start of an outage.
type usage struct {
	used int64
	span weir.Micros // how long it would take, from at, to be fully reset
	at   weir.Micros
}

// moment is how long the order of answers is in doubt.
const moment = weir.Micros(100_000)

// rememberUsage takes note of those who have used more than half. A store in memory is never unavailable.
func (e *Engine) rememberUsage(results []Result) {
	if e.isQuick {
		return
	}
	for i := range results {
		r := &results[i]
		if r.Rule.OnFailure == rule.Closed || r.Local || r.Used()*2 < r.Limit || r.isPlace() { // who is in flight leaves soon
			continue
		}
		now := usage{r.Used(), weir.Micros(r.ResetAfter.Microseconds()), e.clock()}
		e.seen.update(e.usageKey(r.Key, r.Compiled), func(was usage, known bool) (usage, bool) {
			// Answers that come at once are not in the order in which they were made. The same usage
			// again, as that of a client that is denied, is no news.
			return now, !known || now.used > was.used || now.at-was.at > moment
		})
	}
}

func (e *Engine) seedAll(ctx context.Context, ops []weir.Op) {
	for _, op := range ops {
		e.seedClient(ctx, op, max(1, e.instances()))
	}
}

// seedClient lets the local store know of at least this instance's share of what a client had used, less
// what has come back since. No request of the client is decided locally before that.
func (e *Engine) seedClient(ctx context.Context, op weir.Op, instances int) {
	key := e.usageKey(op.Key, op.Limit)
	last, known := e.seen.get(key)
	if !known {
		return
	}
	// Held until the local store has been charged, so that requests at the same time find the charge.
	// That store is usually in memory and then never waits.
	seeding := &e.seeding[key%uint64(len(e.seeding))]
	seeding.Lock()
	defer seeding.Unlock()
	if op.Cost = last.share(&op, e.clock(), int64(instances)); op.Cost == 0 {
		return
	}
	op.Always, op.Look, op.Final, op.Leave, op.Receipt = false, false, false, 0, 0
	d, err := e.local.Peek(ctx, nil, op)
	if err != nil {
		return
	}
	if op.Cost -= d[0].Limit - d[0].Remaining; op.Cost <= 0 {
		return
	}
	// Another request may have taken some since.
	if d, err = e.local.Take(ctx, d[:0], op); err == nil && !d[0].Allowed && d[0].Remaining > 0 {
		op.Cost = d[0].Remaining
		_, _ = e.local.Take(ctx, d[:0], op)
	}
}

// share returns how much of what a client had used is this instance's.
func (u usage) share(op *weir.Op, now weir.Micros, instances int64) int64 {
	left := u.at + u.span - now
	if left <= 0 || u.span <= 0 {
		return 0
	}
	used := u.used
	switch op.Limit.Algorithm() {
	case weir.TokenBucket, weir.LeakyBucket:
		// It comes back evenly. Of windows and logs that is not known, so there it
		// is all still used.
		used = int64(math.Ceil(float64(used) * min(1, float64(left)/float64(u.span))))
	}
	return min(op.Limit.Capacity(), (used+instances-1)/instances)
}
