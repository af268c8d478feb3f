package engine

import (
	"context"

	"github.com/weirhq/weir"
)

// cast charges the shadow rules of a request that has passed; of one that was
// refused, those that count such, and the others are only looked at. A shadow has no
// say: that the store could not be asked is no news by now.
func (e *Engine) cast(ctx context.Context, v *Verdict) error {
	if v.enforced == len(v.Results) || v.Degraded != nil {
		return nil
	}
	if err := e.castQuiet(ctx, v, v.Results[v.enforced:v.quiet]); err != nil {
		return err
	}
	counting := v.Results[v.quiet:]
	if len(counting) == 0 {
		return nil
	}
	// Each is charged whatever the others say.
	var err error
	if v.decisions, err = e.store.Take(ctx, v.decisions[:0], v.opsOf(counting)...); err != nil {
		return ctx.Err()
	}
	record(counting, v.decisions)
	return nil
}

// castQuiet charges shadow rules that do not count what is refused. As a rule they all
// admit, and are one call; otherwise each has its own, so that what one of them would
// refuse costs the others nothing.
func (e *Engine) castQuiet(ctx context.Context, v *Verdict, shadows []Result) error {
	if len(shadows) == 0 {
		return nil
	}
	ask := e.store.Take
	if !v.Allowed {
		ask = e.store.Peek
	}
	var err error
	if v.decisions, err = ask(ctx, v.decisions[:0], v.opsOf(shadows)...); err != nil {
		return ctx.Err()
	}
	record(shadows, v.decisions)
	if !v.Allowed || weir.Admitted(v.decisions) {
		return nil
	}
	for len(shadows) > 0 {
		n := 1
		for n < len(shadows) && shadows[n].Rule == shadows[0].Rule && shadows[n].Demand == shadows[0].Demand {
			n++
		}
		if v.decisions, err = e.store.Take(ctx, v.decisions[:0], v.opsOf(shadows[:n])...); err != nil {
			return ctx.Err()
		}
		record(shadows[:n], v.decisions)
		shadows = shadows[n:]
	}
	return nil
}
