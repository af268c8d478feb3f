package engine

import (
	"context"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// degrade decides without the store, by on_failure of each rule. An invalid request, or
// one whose context has ended, is still an error. local takes from, or only peeks at,
// the store of this process.
func (e *Engine) degrade(ctx context.Context, in *installed, v *Verdict, cause error, local askStore) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := weir.ValidateTake(v.ops); err != nil {
		return err
	}
	e.seen.failing()
	v.Degraded = cause
	results := v.at(enforced)
	closed := false
	for i := range results {
		r := &results[i]
		r.Decision, r.Asked = weir.Decision{Allowed: r.Rule.OnFailure != rule.Closed}, false // it may have waited
		closed = closed || !r.Allowed
	}
	if closed {
		// Nothing is charged for what is denied anyway, not even locally.
		v.conclude()
		v.Reason = Unavailable
		return nil
	}
	return e.askLocal(ctx, in, v, results, local)
}

// degradeCharge is degrade for what is to be charged.
func (e *Engine) degradeCharge(ctx context.Context, in *installed, v *Verdict, cause error) error {
	switch {
	case v.how == nil:
		return e.degrade(ctx, in, v, cause, e.takeLocal)
	case v.how.always:
		return e.chargeLater(ctx, in, v, cause)
	}
	return e.reserveLocal(ctx, in, v, cause)
}

// takeLocal takes from the store of this process, where clients begin with what they
// were last seen to have used.
func (e *Engine) takeLocal(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	e.seedAll(ctx, ops)
	return e.local.Take(ctx, dst, ops...)
}

// askLocal asks the store of this process for the rules that say local: all or none of
// those.
func (e *Engine) askLocal(ctx context.Context, in *installed, v *Verdict, results []Result, local askStore) error {
	v.ops = v.ops[:0]
	instances := max(1, e.instances())
	for i := range results {
		r := &results[i]
		if r.Rule.OnFailure != rule.Local {
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
		r := &results[i]
		if r.Rule.OnFailure == rule.Local {
			r.Decision, r.Quota, r.Leave, r.Asked = v.decisions[at], v.ops[at].Limit, v.ops[at].Leave, true
			at++
		}
	}
	v.local = true
	e.penalize(ctx, in, v)
	v.conclude()
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
