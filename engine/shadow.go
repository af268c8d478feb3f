package engine

import (
	"context"
	"errors"

	"github.com/weirhq/weir"
)

// chargeShadows charges the shadow rules of a request that is allowed; of one that is
// denied, those that count such, and the others are only looked at.
func (e *Engine) chargeShadows(ctx context.Context, v *Verdict) error {
	if v.Degraded != nil {
		return nil
	}
	if !v.Allowed && !v.always() {
		v.how = nil // there is no hold on what is denied
	}
	var quiet error
	if shadows := v.at(shadow); len(shadows) > 0 {
		quiet = e.chargeQuietShadows(ctx, v, shadows)
	}
	counting := v.at(countingShadow)
	if len(counting) == 0 || ctx.Err() != nil {
		return quiet
	}
	// Each is charged whatever the others say.
	return errors.Join(quiet, e.take(ctx, v, countingShadow, counting))
}

// chargeQuietShadows charges shadow rules that do not count denied requests. As a rule
// they all allow, and are one call. What one of them would deny costs the others nothing:
// they are charged again without it.
func (e *Engine) chargeQuietShadows(ctx context.Context, v *Verdict, shadows []Result) error {
	if !v.Allowed && !v.always() {
		return e.ask(ctx, e.store.Peek, v, shadows, v.opsOf(shadows))
	}
	err := e.take(ctx, v, shadow, shadows)
	for err == nil && !v.always() && !weir.Allowed(v.decisions) {
		at := passing(shadows)
		if len(at) == 0 {
			break
		}
		left := make([]Result, len(at))
		for i, from := range at {
			left[i] = shadows[from]
		}
		err = e.take(ctx, v, shadow, left)
		for i, from := range at {
			shadows[from] = left[i]
		}
	}
	return err
}

// passing are the places of results whose rules have not denied.
func passing(results []Result) (at []int) {
	for i := 0; i < len(results); {
		n, pass := i, true
		for ; n < len(results) && results[n].Rule == results[i].Rule && results[n].Demand == results[i].Demand; n++ {
			pass = pass && results[n].Allowed
		}
		for ; i < n; i++ {
			if pass {
				at = append(at, i)
			}
		}
	}
	return at
}
