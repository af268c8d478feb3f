package engine

import (
	"context"

	"github.com/weirhq/weir"
)

// chargeShadows charges the shadow rules of a request that is allowed; of one that is
// denied, those that count such, and the others are only looked at. A shadow has no say:
// that the store could not be asked is no news by now.
func (e *Engine) chargeShadows(ctx context.Context, v *Verdict) error {
	if v.Degraded != nil {
		return nil
	}
	if shadows := v.at(shadow); len(shadows) > 0 {
		if err := e.chargeQuietShadows(ctx, v, shadows); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	counting := v.at(countingShadow)
	if len(counting) == 0 {
		return nil
	}
	// Each is charged whatever the others say.
	if err := e.ask(ctx, e.store.Take, v, counting, v.opsOf(counting)); err != nil {
		return ctx.Err()
	}
	return nil
}

// chargeQuietShadows charges shadow rules that do not count denied requests. As a rule
// they all allow, and are one call; otherwise each has its own, so that what one of them
// would deny costs the others nothing.
func (e *Engine) chargeQuietShadows(ctx context.Context, v *Verdict, shadows []Result) error {
	store := e.store.Take
	if !v.Allowed {
		store = e.store.Peek
	}
	if err := e.ask(ctx, store, v, shadows, v.opsOf(shadows)); err != nil {
		return err
	}
	if !v.Allowed || weir.Allowed(v.decisions) {
		return nil
	}
	for len(shadows) > 0 {
		n := 1
		for n < len(shadows) && shadows[n].Rule == shadows[0].Rule && shadows[n].Demand == shadows[0].Demand {
			n++
		}
		if err := e.ask(ctx, e.store.Take, v, shadows[:n], v.opsOf(shadows[:n])); err != nil {
			return err
		}
		shadows = shadows[n:]
	}
	return nil
}
