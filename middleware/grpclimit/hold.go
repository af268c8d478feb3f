package grpclimit

import (
	"context"
	"time"

	"google.golang.org/grpc/status"

	"github.com/weirhq/weir/engine"
)

// maxRefund is how long to try to give a place back. A store has a timeout of its own,
// which is shorter.
const maxRefund = time.Second

// Held is how many calls and messages wait for their turn.
func (l *Limiter) Held() int { return int(l.held.Load()) }

// hold keeps an admitted call until its turn has come. If it returns anything, the call
// has given its place up: a denial if it could not wait, an error if nobody waits.
func (l *Limiter) hold(ctx context.Context, v *engine.Verdict) (*Denial, error) {
	if deadline, ok := ctx.Deadline(); ok {
		// To hold what cannot be served any more would make others wait for nothing.
		if late := v.Delay - time.Until(deadline); late >= 0 {
			l.refund(ctx, v)
			return impatient(v, late), nil
		}
	}
	if l.held.Add(1) > int64(l.options.MaxHeld) {
		l.held.Add(-1)
		l.refund(ctx, v)
		return overloaded(v, "Too many calls wait for their turn; try again later.", v.Delay), nil
	}
	defer l.held.Add(-1)
	turn := time.NewTimer(v.Delay)
	defer turn.Stop()
	select {
	case <-turn.C:
		return nil, nil
	case <-ctx.Done():
		l.refund(ctx, v)
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// refund gives back what the verdict has charged, although the client may have left. If
// that cannot be done, it fades like any other charge.
func (l *Limiter) refund(ctx context.Context, v *engine.Verdict) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRefund)
	defer cancel()
	_ = l.engine.Refund(ctx, v)
}
