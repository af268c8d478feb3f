package engine

import (
	"context"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// maxSettle is how long to try to settle. A store has a timeout of its own, which is
// shorter, and after it the engine goes on by itself.
const maxSettle = time.Second

// Hold is what the rules have reserved for a request that is being served. It does not
// expire before it ends.
type Hold struct {
	Parts []HoldPart

	engine  *Engine
	id      weir.HoldID
	ttl     time.Duration
	request *rule.Request
	begin   time.Time

	mu    sync.Mutex
	timer *time.Timer // extends the hold
	ended bool
}

// HoldPart is what was reserved under one rule.
type HoldPart struct {
	Rule     *rule.Entry
	Reserved int64
}

// Serve returns the hold of a request that [Gate.Reserve] allowed, or nil if it has none.
// Call End when it is served; the request must not change until then.
func (g *Gate) Serve(req *rule.Request, ttl time.Duration, v *Verdict) *Hold {
	if v.Hold == (weir.HoldID{}) {
		return nil
	}
	h := &Hold{engine: g.engine, id: v.Hold, ttl: ttl, request: req, begin: time.Now()}
	for i := range v.Results {
		if r := &v.Results[i]; len(h.Parts) == 0 || h.Parts[len(h.Parts)-1].Rule != r.Rule {
			h.Parts = append(h.Parts, HoldPart{r.Rule, r.Cost})
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(ttl/2, h.extend)
	return h
}

// extend keeps the hold alive, as long as the handler runs.
func (h *Hold) extend() {
	ctx, cancel := context.WithTimeout(context.Background(), maxSettle)
	defer cancel()
	_, _ = h.engine.Extend(ctx, h.id, h.ttl) // if it fails, the next time may do
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.timer.Reset(h.ttl / 2)
	}
}

// End settles with what the response shows, unless the handler has settled. It sets the
// duration of the response. Rules that settle by the response do so; for others actual
// returns what was used. If actual or its result is nil, what was reserved stays charged.
func (h *Hold) End(resp *rule.Response, actual func(*rule.Response) Used) {
	if !h.finish() {
		return
	}
	resp.Duration = time.Since(h.begin)
	var others Used
	if actual != nil {
		others = actual(resp)
	}
	// Now, because it may be settled only when the request is gone.
	settling := make([]settlingPart, 0, len(h.Parts))
	for _, p := range h.Parts {
		if p.Rule.Settles() {
			// On an error, what was reserved counts.
			n, _ := p.Rule.Actual(h.request, resp, p.Reserved)
			settling = append(settling, settlingPart{p.Rule.ID, n})
		}
	}
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if h.engine.memory == nil { // which never waits
		ctx, cancel = context.WithTimeout(ctx, maxSettle)
	}
	defer cancel()
	// If it fails, the hold expires.
	_, _ = h.engine.Settle(ctx, h.id, func(rule, unit string, reserved int64) int64 {
		for _, p := range settling {
			if p.rule == rule {
				return p.used
			}
		}
		if others != nil {
			return others(rule, unit, reserved)
		}
		return reserved
	})
}

// settlingPart is what was used under a rule that settles by the response.
type settlingPart struct {
	rule string
	used int64
}

// finish ends the extensions. It reports whether the hold is still to be settled.
func (h *Hold) finish() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := !h.ended
	h.ended = true
	h.timer.Stop()
	return first
}

// Settle ends the hold with what the handler knows better than the response shows, such as
// Units(7). A handler that does not call it need not do anything.
func (h *Hold) Settle(ctx context.Context, used Used) (Settled, error) {
	h.finish()
	return h.engine.Settle(ctx, h.id, used)
}

type holdKey struct{}

// Context returns a context from which the handler gets its hold.
func (h *Hold) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, holdKey{}, h)
}

// HoldOf returns the hold of the request that is served with this context, or nil: a request
// has one only if middleware that sees the response has reserved what it costs.
func HoldOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}
