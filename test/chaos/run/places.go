package run

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/plan"
)

// crowds are clients with more requests than places, each one after the other.
type crowds struct {
	*holders
	rules plan.Rules
}

const crowdsAtOnce = 4

// start lets crowds come until the context ends.
func (h *crowds) start(ctx context.Context, seed uint64) {
	for n := range crowdsAtOnce {
		r := rand.New(rand.NewPCG(seed, uint64(1<<21+n)))
		h.running.Go(func() {
			for number := n; ctx.Err() == nil; number += crowdsAtOnce {
				a := plan.DrawCrowd(r, h.rules, number)
				known := h.play(ctx, r, &a)
				if ctx.Err() == nil {
					h.checker.NoteCrowd(known)
				}
			}
		})
	}
}

// play lets a crowd come and go, and reads what is taken when all places must be free.
func (h *crowds) play(ctx context.Context, r *rand.Rand, a *plan.Crowd) check.Crowd {
	known := check.Crowd{Begun: h.now(), Path: a.Path, User: a.User, Stays: make([]check.Stay, len(a.Visits))}
	var all sync.WaitGroup
	for i := range a.Visits {
		own := rand.New(rand.NewPCG(r.Uint64(), uint64(i)))
		all.Go(func() { known.Stays[i] = h.visit(ctx, own, a, &a.Visits[i]) })
	}
	all.Wait()
	h.sleep(ctx, h.checker.FreeBy(&known)-h.now())
	for until := h.now() + readsWithin; known.Last == nil && h.now() < until && ctx.Err() == nil; h.sleep(ctx, readsEvery) {
		known.Last = h.read(h.any(r), &plan.Account{Path: a.Path, User: a.User})
	}
	return known
}

// visit takes a place and, unless it is killed, gives it back.
func (h *crowds) visit(ctx context.Context, r *rand.Rand, a *plan.Crowd, p *plan.Visit) (known check.Stay) {
	h.sleep(ctx, p.After)
	var s said
	ttl := plan.PlaceTTL.Milliseconds()
	known.Reserve = h.call(h.any(r), "/v1/reserve", map[string]any{"path": a.Path, "user": a.User, "ttl_ms": ttl}, &s)
	known.Reserve.Allowed, known.Reserve.Degraded = s.Allowed, s.Degraded
	if s.Hold == "" || known.Reserve.Status != http.StatusOK {
		return known
	}
	for range p.Extends {
		h.sleep(ctx, time.Duration(500+r.Int64N(800))*time.Millisecond)
		var extended said
		c := h.call(h.any(r), "/v1/extend", map[string]any{"hold": s.Hold, "ttl_ms": ttl}, &extended)
		if c.Status == http.StatusOK {
			c.State = extended.State
		} else if c.Status == http.StatusServiceUnavailable { // as documented while the store is unavailable
			c.Status = http.StatusAccepted
		}
		known.Extends = append(known.Extends, c)
	}
	h.sleep(ctx, p.Work)
	if !p.Killed {
		known.Ends = append(known.Ends, h.settle(h.any(r), s.Hold, 0))
	}
	return known
}
