package engine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/rule"
)

// DefaultMaxDelayed is the default maximum of requests that a gate delays, or lets wait for a
// place, at the same time.
const DefaultMaxDelayed = 1000

// Gate allows requests as an engine decides, and delays those that a rule shapes. A request that
// is denied because too many are in flight waits for a place, if the rule has [rule.Wait].
// Middleware of any protocol can use it. It is safe for concurrent use.
type Gate struct {
	engine   *Engine
	patience func(context.Context) time.Duration
	most     int64
	delayed  atomic.Int64
	shedder  *overload.Shedder // nil if nothing is shed
	protect  Protect
}

// NewGate returns a gate that delays at most maxDelayed requests at the same time, or
// DefaultMaxDelayed if that is 0. Those that wait for a place are among them. If patience is
// not nil, it returns the maximum delay of a request, besides the request's deadline.
func NewGate(e *Engine, maxDelayed int, patience func(context.Context) time.Duration) (*Gate, error) {
	switch {
	case maxDelayed < 0:
		return nil, fmt.Errorf("MaxDelayed: %d is negative; use 0 for the default of %d", maxDelayed, DefaultMaxDelayed)
	case maxDelayed == 0:
		maxDelayed = DefaultMaxDelayed
	}
	return &Gate{engine: e, most: int64(maxDelayed), patience: patience}, nil
}

// Delayed returns how many requests are delayed, or wait for a place, now.
func (g *Gate) Delayed() int { return int(g.delayed.Load()) }

// Allow decides a request as Check does, and waits until its turn. If a rule limits how many
// requests are in flight, call [Gate.Serve] then. It reports whether
// the request may proceed; if not, d describes why. The error is that of Check, or the
// context's error if it ended during the delay; d is set then, too.
func (g *Gate) Allow(ctx context.Context, req *rule.Request, v *Verdict, d *Denial) (bool, error) {
	return g.await(ctx, v, d, g.engine.check(ctx, req, v, plain, g.charge))
}

// Check is Allow for callers that do not see the end of a request. It does not wait for a place,
// because those that such callers take are free only after the rule's HoldTTL.
func (g *Gate) Check(ctx context.Context, req *rule.Request, v *Verdict, d *Denial) (bool, error) {
	return g.await(ctx, v, d, g.engine.check(ctx, req, v, plain, g.chargeNow))
}

// Continue is Allow for a further part of a request that was allowed, such as a message of a
// stream: it takes no place of rules that limit how many requests are in flight.
func (g *Gate) Continue(ctx context.Context, req *rule.Request, v *Verdict, d *Denial) (bool, error) {
	return g.await(ctx, v, d, g.engine.Continue(ctx, req, v))
}

// Reserve is Allow for callers that see the response. If a rule that applies settles by
// the response, what the request costs under it, and under rules with a unit, is reserved, and
// v.Hold is set: end it with [Engine.Settle], or see [Gate.Serve]. Other rules are charged. A
// ttl of 0 is weir.DefaultHoldTTL. A store that cannot hold units charges what the request
// costs.
func (g *Gate) Reserve(ctx context.Context, req *rule.Request, ttl time.Duration, v *Verdict, d *Denial) (bool, error) {
	if table, _ := g.engine.Rules(); !table.Settles() {
		return g.Allow(ctx, req, v, d)
	}
	return g.reserve(ctx, req, charging{ttl: ttl, served: true, settling: true}, v, d)
}

// ReserveAll is Reserve for callers that know the actual cost under any rule.
func (g *Gate) ReserveAll(ctx context.Context, req *rule.Request, ttl time.Duration, v *Verdict, d *Denial) (bool, error) {
	return g.reserve(ctx, req, charging{ttl: ttl, served: true}, v, d)
}

func (g *Gate) reserve(ctx context.Context, req *rule.Request, way charging, v *Verdict, d *Denial) (bool, error) {
	if g.engine.holds == nil {
		return g.Allow(ctx, req, v, d)
	}
	return g.await(ctx, v, d, g.engine.reserve(ctx, req, way, v, g.charge))
}

// Deny looks whether a request is denied whatever its body is, before that is read: it is blocked, or a
// limit that does not need the body denies it. It sets req.Unread. If it returns true, the request has
// been decided and counted as Check does it, and d describes why it is denied. Otherwise nothing is
// charged. It does not wait for a place, and does not deny what could.
func (g *Gate) Deny(ctx context.Context, req *rule.Request, v *Verdict, d *Denial) (bool, error) {
	req.Unread = true
	e, in := g.engine, g.engine.installed.Load()
	e.begin(v)
	if err := e.evaluate(ctx, in, req, v, peeked, e.peek); err != nil || v.Allowed {
		return false, err
	}
	if v.waitUpTo > 0 && !slices.ContainsFunc(v.inGroup(enforced), func(r Result) bool { return !r.Allowed && !r.waits() }) {
		return false, nil
	}
	if v.Reason != Blocked && v.Reason != UnknownClient {
		if err := e.evaluate(ctx, in, req, v, plain, e.charge); err != nil {
			return false, err
		}
		e.observeCharged(v, 1)
		if v.Allowed { // by now
			g.refund(ctx, v)
			return false, nil
		}
	}
	e.observe(req, v)
	*d = Describe(v)
	return true, nil
}

// await goes on with a verdict, unless there is an error.
func (g *Gate) await(ctx context.Context, v *Verdict, d *Denial, err error) (bool, error) {
	if err != nil {
		*d = DescribeError(v, err)
		return false, err
	}
	switch {
	case !v.Allowed:
		*d = Describe(v)
		return false, nil
	case v.Delay > 0:
		return g.delay(ctx, v, d)
	}
	return true, nil
}

// delay keeps an allowed request until its turn has come. One that cannot wait gives its
// turn up.
func (g *Gate) delay(ctx context.Context, v *Verdict, d *Denial) (bool, error) {
	if late := v.Delay - g.patienceLeft(ctx); late >= 0 {
		// As if the limit had been told how long the request can wait: it denies, and
		// says from when the wait would be short enough.
		g.refund(ctx, v)
		*d = impatient(v, late)
		return false, nil
	}
	defer g.delayed.Add(-1)
	if g.delayed.Add(1) > g.most {
		g.refund(ctx, v)
		*d = Denial{
			Verdict: v, Cause: ReducedCapacity, RetryAfter: v.Delay,
			Detail: "Too many requests wait for their turn; try again later.",
		}
		return false, nil
	}
	turn := time.NewTimer(v.Delay)
	defer turn.Stop()
	var renew <-chan time.Time
	if often := v.lifetime() / 3; often < v.Delay { // so that Serve has time to go on with it
		ticker := time.NewTicker(often)
		defer ticker.Stop()
		renew = ticker.C
	}
	for {
		select {
		case <-turn.C:
			return true, nil
		case <-renew:
			g.engine.renewDelayed(v)
		case <-ctx.Done():
			g.refund(ctx, v)
			*d = unavailable(v)
			return false, ctx.Err()
		}
	}
}

// patienceLeft is how long a request can be delayed: to delay what cannot be served any more would
// make others wait for nothing.
func (g *Gate) patienceLeft(ctx context.Context) time.Duration {
	left := time.Duration(1<<63 - 1)
	if g.patience != nil {
		left = g.patience(ctx)
	}
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline))
	}
	return left
}

// refund gives back what the verdict has charged, although the client may have left. If
// that cannot be done, it fades like any other charge.
func (g *Gate) refund(ctx context.Context, v *Verdict) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxSettle)
	defer cancel()
	_ = g.engine.Refund(ctx, v)
}

// Protect is how much of its CPU time and memory a process may use, as shares from 0 to 1, before
// requests are shed: first those of low priority, never critical ones. 0 is no limit. What a
// process has is limited by its cgroup, by those above, and by the machine; the limit of which the
// largest share is used counts. It needs Linux.
type Protect struct{ CPU, Memory float64 }

// Protection is the state of a process that sheds requests.
type Protection struct {
	CPU, Memory float64                  // what is used, as a share of what there is, smoothed
	Limits      Protect                  // above which requests are shed
	Shed        map[rule.Priority]uint64 // requests since the start
}

// Protect lets the gate shed requests, before anything is charged. Clients that are exempt are
// not shed, nor is a further part of a request. Call it before the first request. The logger gets
// a record of what limits were found, and when requests are shed; nil is slog.Default().
func (g *Gate) Protect(p Protect, logger *slog.Logger) error {
	s, err := overload.NewShedder(overload.Limits(p), cmp.Or(logger, slog.Default()))
	if s == nil || err != nil {
		return err
	}
	g.shedder, g.protect = s, p
	for _, o := range only[ProtectionObserver](g.engine.observers) {
		o.ObserveProtection(g.Protection)
	}
	return nil
}

// Protection returns the state after [Gate.Protect].
func (g *Gate) Protection() Protection {
	s := g.shedder.Stats()
	p := Protection{CPU: s.CPU, Memory: s.Memory, Limits: g.protect, Shed: map[rule.Priority]uint64{}}
	for priority := rule.Low; priority <= rule.Critical; priority++ {
		p.Shed[priority] = s.Shed[priority]
	}
	return p
}

// sheds reports whether a request is shed, and then says so in its verdict.
func (g *Gate) sheds(v *Verdict) bool {
	if g.shedder.Allow(overload.Priority(v.Priority)) {
		return false
	}
	v.clearResults()
	v.Reason = Overloaded
	return true
}
