package engine

import (
	"context"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Refund gives back what a verdict has charged, for a request that came to nothing
// after it was admitted. Shadow rules keep it: for them the request took place.
func (e *Engine) Refund(ctx context.Context, v *Verdict) error {
	if !v.Allowed {
		return nil
	}
	v.ops = v.ops[:0]
	for i := range v.Results[:v.enforced] {
		if r := &v.Results[i]; r.Receipt != 0 {
			v.ops = append(v.ops, weir.Op{Key: r.Key, Limit: r.Limit, Cost: r.Cost, Receipt: r.Receipt})
		}
	}
	if len(v.ops) == 0 {
		return nil
	}
	if v.local {
		return e.local.Refund(ctx, v.ops...)
	}
	return e.store.Refund(ctx, v.ops...)
}

// Inspect puts a client's standing under every rule into v, whether or not the
// rule's conditions are met: whoever asks for a user wants to see all of its limits.
// Rules that need an identity which the request lacks are left out.
func (e *Engine) Inspect(ctx context.Context, req *rule.Request, v *Verdict) error {
	v.clear()
	in := e.installed.Load()
	v.Version = in.version
	switch {
	case in.table.Exempt(req):
		v.Reason = Exempt
	case in.table.Blocked(req):
		v.Reason = Blocked
	}
	for _, c := range in.table.Rules() {
		if c.Rule.Mode != rule.Off {
			v.add(c, req)
		}
	}
	v.enforced = len(v.Results)
	for results := v.Results; len(results) > 0; {
		part := results[:min(len(results), weir.MaxOps)]
		ops := v.opsOf(part)
		for i := range ops {
			ops[i].Cost = 0
		}
		var err error
		if v.decisions, err = e.store.Peek(ctx, v.decisions[:0], ops...); err != nil {
			return fmt.Errorf("engine: %w", err)
		}
		record(part, v.decisions)
		results = results[len(part):]
	}
	v.conclude()
	return nil
}

// Reset forgives one client under one rule, all of it.
func (e *Engine) Reset(ctx context.Context, id, key string) error {
	table, _ := e.Rules()
	for _, c := range table.Rules() {
		if c.Rule.ID != id {
			continue
		}
		for limits := c.Every(); len(limits) > 0; {
			part := limits[:min(len(limits), weir.MaxOps)]
			ops := make([]weir.Op, len(part))
			for i, limit := range part {
				ops[i] = weir.Op{Key: key, Limit: limit}
			}
			if err := e.store.Reset(ctx, ops...); err != nil {
				return fmt.Errorf("engine: %w", err)
			}
			if err := e.local.Reset(ctx, ops...); err != nil {
				return fmt.Errorf("engine: %w", err)
			}
			limits = limits[len(part):]
		}
		return nil
	}
	return &NoRuleError{ID: id}
}

// NoRuleError is a rule that is not there.
type NoRuleError struct{ ID string }

func (e *NoRuleError) Error() string { return fmt.Sprintf("engine: there is no rule %q", e.ID) }
