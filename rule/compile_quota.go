package rule

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/duration"
)

// quotas compiles all limits of a rule.
func (c *compiler) quotas(out *Entry) (err error) {
	r := out.Rule
	if out.quota, err = c.quota(r, r.Quota); err != nil {
		return err
	}
	out.tiers = make(map[string]quota, len(r.Tiers))
	for _, tier := range slices.Sorted(maps.Keys(r.Tiers)) {
		if out.tiers[tier], err = c.quota(r, r.Tiers[tier]); err != nil {
			return fmt.Errorf("tiers: %s: %w", tier, err)
		}
	}
	out.overrides = make(map[string]quota, len(r.Overrides))
	for _, text := range slices.Sorted(maps.Keys(r.Overrides)) {
		identity, err := canonicalIdentity(out.key, text)
		if err != nil {
			return fmt.Errorf("overrides: %s: %w", discreet(out.key, text), err)
		}
		if _, twice := out.overrides[identity]; twice {
			return fmt.Errorf("overrides: %s is there twice, in different spellings; remove one", identity)
		}
		if out.overrides[identity], err = c.quota(r, r.Overrides[text]); err != nil {
			return fmt.Errorf("overrides: %s: %w", identity, err)
		}
	}
	return nil
}

func (c *compiler) quota(r *Rule, q Quota) (quota, error) {
	switch {
	case q.Unlimited && len(q.Rates) > 0:
		return nil, errors.New("limit: it is both unlimited and limited; remove one")
	case q.Unlimited:
		return nil, nil
	case len(q.Rates) == 0:
		return nil, errors.New("limit: it is missing; write for example 100/1m, or unlimited")
	}
	var out quota
	for _, rate := range q.Rates {
		limit, err := c.limit(weir.Limit{
			Name: r.ID, Algorithm: r.Algorithm, N: rate.N, Period: rate.Period,
			Burst: q.Burst, Buckets: r.Buckets, Shape: r.Shape, CountDenied: r.CountDenied,
		})
		if err != nil {
			return nil, err
		}
		for _, other := range out {
			if other.Kind() == limit.Kind() {
				return nil, fmt.Errorf("limits: two are for %s, and would count every request twice; keep the smaller", duration.Format(rate.Period))
			}
		}
		out = append(out, limit)
	}
	return out, nil
}

func (c *compiler) limit(l weir.Limit) (*weir.Compiled, error) {
	if known := c.limits[l]; known != nil {
		return known, nil
	}
	compiled, err := l.Compile()
	if err != nil {
		return nil, err
	}
	c.limits[l] = compiled
	return compiled, nil
}
