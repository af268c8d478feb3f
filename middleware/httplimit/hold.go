package httplimit

import (
	"context"
	"net/http"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/middleware/field"
)

// maxRefund is how long to try to give a place back. A store has a timeout of its
// own, which is shorter.
const maxRefund = time.Second

// Held is how many requests wait for their turn.
func (m *Middleware) Held() int { return int(m.held.Load()) }

// hold keeps an admitted request until its turn has come. If it reports false, the
// request has given its place up and is answered.
func (m *Middleware) hold(w http.ResponseWriter, r *http.Request, p *pass) bool {
	ctx, v := r.Context(), &p.verdict
	if late := v.Delay - patience(ctx); late >= 0 {
		// As if the limit had been told how long the request can wait: it refuses,
		// and says from when the wait would be short enough.
		m.refund(ctx, v)
		p.denial = impatient(v, late)
		m.deny(w, r, p)
		return false
	}
	if m.held.Add(1) > int64(m.options.MaxHeld) {
		m.held.Add(-1)
		m.refund(ctx, v)
		p.denial = overloaded(v, "Too many requests wait for their turn; try again later.", v.Delay)
		m.deny(w, r, p)
		return false
	}
	defer m.held.Add(-1)
	turn := time.NewTimer(v.Delay)
	defer turn.Stop()
	select {
	case <-turn.C:
		return true
	case <-ctx.Done():
		m.refund(ctx, v)
		m.fail(w, r, p, ctx.Err())
		return false
	}
}

// refund gives up what the verdict has charged, although the client may have left. If
// it cannot be given back, it fades like any other charge.
func (m *Middleware) refund(ctx context.Context, v *engine.Verdict) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRefund)
	defer cancel()
	_ = m.engine.Refund(ctx, v)
}

// patience is how long a request can be held: until its deadline, and until the
// server would no longer write an answer.
func patience(ctx context.Context) time.Duration {
	left := time.Duration(1<<63 - 1)
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	if s, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 {
		left = min(left, s.WriteTimeout)
	}
	return left
}

// impatient is that the queue is longer than the request can wait.
func impatient(v *engine.Verdict, late time.Duration) Denial {
	d := Denial{
		Verdict: v, Status: http.StatusTooManyRequests, Type: quotaExceeded, Title: "Quota Exceeded",
		RetryAfter: max(late, 1),
	}
	slow := func(r *engine.Result) bool { return r.Delay == v.Delay }
	d.Policies = field.Names(v, slow)
	for i := range v.Results {
		if r := &v.Results[i]; !r.Shadow && slow(r) {
			d.speak(r)
			break
		}
	}
	return d
}
