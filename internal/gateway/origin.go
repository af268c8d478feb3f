package gateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/overload"
)

// maxPause is the longest time for which an upstream that could not be reached is left
// out, and quiet the shortest between two messages about it.
const (
	maxPause = 30 * time.Second
	quiet    = 10 * time.Second
)

// instant is how long the gateway has been there. It does not jump when somebody sets
// the clock.
type instant = time.Duration

// origin is one upstream, whichever routes use it: what it has to do, and how it is.
type origin struct {
	name   string // scheme://host:port, as the operator wrote it
	scheme string // http or https
	host   string
	h2c    bool

	inFlight atomic.Int64
	down     atomic.Bool  // by its own answers to health checks
	until    atomic.Int64 // left out until then, an instant; 0 if it is not

	mu       sync.Mutex
	failures int     // in a row: connections that could not be made
	told     instant // when the log had it last; 0 for never
	open     bool    // the log has that it is unavailable, and not yet that it is back

	bounds   overload.Bounds
	adaptive *overload.Limiter // nil if there is none
	shed     atomic.Int64      // when the log had last that it is overloaded, an instant
}

// pause is for how long to leave an upstream out after so many failures in a row.
func pause(first time.Duration, failures int) time.Duration {
	for range min(failures-1, 30) {
		if first *= 2; first >= maxPause {
			break
		}
	}
	return min(first, maxPause)
}

// well reports whether requests may go there without more ado.
func (o *origin) well(now instant) bool {
	return !o.down.Load() && o.until.Load() <= int64(now)
}

// claim is for a request that is about to try an upstream whose time out is over. Only
// one is to find out; the others find it left out for another while.
func (o *origin) claim(now instant, first time.Duration) bool {
	until := o.until.Load()
	if until > int64(now) {
		return false
	}
	o.mu.Lock()
	next := int64(now + pause(first, o.failures+1))
	o.mu.Unlock()
	return o.until.CompareAndSwap(until, next)
}

// failed is that no connection could be made. Many requests find out at once; only the
// first of them counts, or the one that had claimed to try again.
func (o *origin) failed(now instant, first time.Duration, claimed bool, log *slog.Logger, why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !claimed && o.until.Load() > int64(now) {
		return
	}
	o.failures++
	o.until.Store(int64(now + pause(first, o.failures)))
	if !o.open && (o.told == 0 || now-o.told >= quiet) {
		o.open, o.told = true, now
		log.Warn("upstream unavailable", "upstream", o.name, "error", why.Error())
	}
}

// reached is that an upstream which was left out has answered.
func (o *origin) reached(log *slog.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failures = 0
	o.until.Store(0)
	if o.open {
		o.open = false
		log.Info("upstream available again", "upstream", o.name)
	}
}

// wait is how long to wait before it makes sense to ask for this upstream again.
func (o *origin) wait(now instant) time.Duration {
	return max(time.Second, instant(o.until.Load())-now)
}

// choice is an upstream that was chosen for a request.
type choice struct {
	*target
	claimed bool // it is the one to find out whether a lost upstream is back
	out     bool // it is left out, and was chosen for want of another
}

// pick chooses an upstream that was not tried yet: the available one with the fewest
// requests in flight; equal ones take turns. If none is available, the first attempt
// goes to the one whose pause ends next, because it may already be available again. It
// returns false if all were tried.
func (r *route) pick(now instant, first time.Duration, tried []*target) (choice, bool) {
	n := len(r.targets)
	start := 0
	if n > 1 {
		start = int(r.next.Add(1) % uint32(n))
	}
	for {
		var best, last *target
		var least int64
		for i := range n {
			t := r.targets[(start+i)%n]
			if contains(tried, t) {
				continue
			}
			if t.well(now) {
				if load := t.inFlight.Load(); best == nil || load < least {
					best, least = t, load
				}
			} else if last == nil || t.until.Load() < last.until.Load() {
				last = t
			}
		}
		switch {
		case best == nil && (last == nil || len(tried) > 0):
			return choice{}, false
		case best == nil:
			return choice{target: last, out: true}, true
		case best.until.Load() == 0:
			return choice{target: best}, true
		case best.claim(now, first):
			return choice{target: best, claimed: true}, true
		}
		// Another request was quicker to claim it, so it is left out now. Each turn of
		// the loop finds one more like it.
	}
}

func contains(list []*target, t *target) bool {
	return slices.ContainsFunc(list, func(one *target) bool { return one.origin == t.origin })
}

// maxHealthBody is how much of a response is read, so that its connection can be
// reused. The content is ignored.
const maxHealthBody = 64 << 10

// Run asks upstreams how they are until the context ends, which is its error. Without
// Options.Health.Path there is nothing to ask, and it only waits.
func (g *Gateway) Run(ctx context.Context) error {
	var all sync.WaitGroup
	if g.options.Health.Path != "" {
		for _, o := range g.table.origins {
			all.Go(func() { g.watch(ctx, o) })
		}
	}
	<-ctx.Done()
	all.Wait()
	return ctx.Err()
}

// watch asks one upstream again and again. What it has found out does not outlive it.
func (g *Gateway) watch(ctx context.Context, o *origin) {
	defer o.down.Store(false)
	ticks := time.NewTicker(g.options.Health.Interval)
	defer ticks.Stop()
	var p pulse
	for {
		err := g.ask(ctx, o)
		if ctx.Err() != nil {
			return
		}
		switch changed := p.feel(err, g.options.Health.Threshold); {
		case changed && err != nil:
			o.down.Store(true)
			g.options.Logger.Warn("upstream unhealthy", "upstream", o.name, "error", err.Error())
		case changed:
			o.down.Store(false)
			g.options.Logger.Info("upstream healthy again", "upstream", o.name)
		}
		if err == nil && o.until.Load() != 0 {
			o.reached(g.options.Logger)
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

// pulse counts bad answers in a row.
type pulse int

// feel reports whether an answer makes an upstream unwell that was well, or well again.
func (p *pulse) feel(err error, threshold int) bool {
	if err == nil {
		wasDown := int(*p) >= threshold
		*p = 0
		return wasDown
	}
	*p++
	return int(*p) == threshold
}

// ask returns nil if the upstream is well.
func (g *Gateway) ask(ctx context.Context, o *origin) error {
	ctx, cancel := context.WithTimeout(ctx, g.options.Health.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.scheme+"://"+o.host+g.options.Health.Path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "weir-health")
	t := g.transport.usual
	if o.h2c {
		t = g.transport.h2c
	}
	res, err := t.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxHealthBody)
	if res.StatusCode < 200 || res.StatusCode > 399 {
		return fmt.Errorf("gateway: the health check returned status %d", res.StatusCode)
	}
	return nil
}

// setAdaptive gives an upstream its limiter. Its capacity is one, whichever routes use it.
func (o *origin) setAdaptive(b overload.Bounds, first bool) error {
	switch {
	case first:
		o.bounds, o.adaptive = b, b.Limiter()
	case o.bounds != b:
		return fmt.Errorf("gateway: two routes to %s have different adaptive limits; write the same for both", o.name)
	}
	return nil
}

// overloaded writes to the log from time to time.
func (o *origin) overloaded(now instant, g *Gateway) {
	last := o.shed.Load()
	if last != 0 && now-instant(last) < quiet || !o.shed.CompareAndSwap(last, int64(max(now, 1))) {
		return
	}
	s := o.adaptive.Stats()
	g.options.Logger.Warn("upstream overloaded", "upstream", o.name, "limit", s.Limit, "in_flight", s.InFlight, "denied", s.Denied)
}

// AdaptiveLimits returns the adaptive limits of all upstreams that have one.
func (g *Gateway) AdaptiveLimits() (all []engine.UpstreamLimit) {
	for _, o := range g.table.origins {
		if o.adaptive != nil {
			all = append(all, engine.UpstreamLimit{Upstream: o.name, AdaptiveLimit: engine.AdaptiveLimit(o.adaptive.Stats())})
		}
	}
	return all
}
