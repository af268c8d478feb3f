package engine

import (
	"context"

	"github.com/weirhq/weir"
)

// cast charges the shadow rules of a request that has passed; of one that was
// refused, they are only looked at. As a rule they all admit, and are one call;
// otherwise each has its own, so that what one of them would refuse costs the others
// nothing. A shadow has no say: that the store could not be asked is no news by now.
func (e *Engine) cast(ctx context.Context, v *Verdict) error {
	shadows := v.Results[v.enforced:]
	if len(shadows) == 0 || v.Degraded != nil {
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
		for n < len(shadows) && shadows[n].Rule == shadows[0].Rule {
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
