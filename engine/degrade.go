package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// degrade decides what the store has not decided: each rule by its on_failure. An invalid request, or
// one whose context has ended, is still an error. local takes from, or only peeks at,
// the store of this process.
func (e *Engine) degrade(ctx context.Context, deadline time.Time, in *installed, v *Verdict, cause error, local askStore) error {
	if err := e.fallBack(ctx, v, cause); err != nil {
		return err
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
	results := v.at(enforced)
	for i := range results {
		if v.failed != nil {
			if cause = v.failed[i]; cause == nil {
				continue
			}
		}
		r := &results[i]
		policy := r.Rule.OnFailure
		if policy == rule.Open && !v.always() && errors.Is(cause, weir.ErrBusy) {
			policy = rule.Local // or who keeps this process busy would lift the limits
		}
		r.Decision, r.Asked, r.Local = weir.Decision{Allowed: policy != rule.Closed || v.always()}, false, policy == rule.Local // it may have waited
	}
	return nil
}

// decideRest decides a request by what the store has said, and what on_failure says of the rest.
func (e *Engine) decideRest(ctx context.Context, deadline time.Time, in *installed, v *Verdict, local askStore) error {
	results := v.at(enforced)
	denied, closed := false, false
	for i := range results {
		r := &results[i]
		denied = denied || !r.Allowed && r.Asked && !v.always()
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
	e.penalize(ctx, deadline, in, v)
	v.conclude()
	if closed && !denied {
		v.Reason = Unavailable
	}
	if !v.Allowed && !v.always() {
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
		if r.Receipt == 0 || r.Local || r.Rule.CountDenied {
			continue
		}
		if !r.held {
			ops = append(ops, weir.Op{Key: strings.Clone(r.Key), Limit: r.Quota, Cost: r.Cost, Receipt: r.Receipt})
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
			if _, err := e.settleStored(ctx, time.Time{}, e.holds, s, nil); err != nil {
				_ = e.later(s, err)
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

// degradeCharge is degrade for what is to be charged.
func (e *Engine) degradeCharge(ctx context.Context, deadline time.Time, in *installed, v *Verdict, cause error) error {
	switch {
	case v.how == nil:
		return e.degrade(ctx, deadline, in, v, cause, e.takeLocal)
	case v.how.always:
		return e.chargeLater(ctx, deadline, in, v, cause)
	}
	return e.reserveLocal(ctx, deadline, in, v, cause)
}

// takeLocal takes from the store of this process, where clients begin with what they
// were last seen to have used.
func (e *Engine) takeLocal(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	e.seedAll(ctx, ops)
	return e.local.Take(ctx, dst, ops...)
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
		r.ask(&op, in.shares.of(r.Quota, instances), v.how)
		if op.Leave > 0 && op.Limit != r.Quota {
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
			r.Decision, r.Quota, r.Leave, r.Asked = v.decisions[at], v.ops[at].Limit, v.ops[at].Leave, true
			at++
		}
	}
	return nil
}

// shares are the limits of one instance among several.
type shares struct {
	mu    sync.Mutex
	byAll map[share]*weir.Compiled
}

type share struct {
	limit     *weir.Compiled
	instances int
}

// of divides a limit, rounded up: an instance with no share at all would deny
// everybody.
func (s *shares) of(limit *weir.Compiled, instances int) *weir.Compiled {
	if instances == 1 {
		return limit
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := share{limit, instances}
	if c := s.byAll[key]; c != nil {
		return c
	}
	l, n := limit.Limit(), int64(instances)
	l.N = (l.N + n - 1) / n
	l.Burst = (l.Burst + n - 1) / n
	c, err := l.Compile()
	if err != nil {
		c = limit // too small to divide: rather allow too much than nothing
	}
	if s.byAll == nil || len(s.byAll) > maxShares {
		s.byAll = make(map[share]*weir.Compiled)
	}
	s.byAll[key] = c
	return c
}

// maxShares bounds what is kept while the number of instances keeps changing.
const maxShares = 100_000
