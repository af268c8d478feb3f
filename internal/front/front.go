// Package front has what is the same in every middleware in front of a handler, whatever its
// protocol: who the client is, the gate, the adaptive limit, and warnings about its configuration.
package front

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/rule"
)

// Options are those of a middleware.
type Options struct {
	Name     string    // of its package
	Mistakes []Mistake // the texts, by their number

	TrustedProxies []netip.Prefix
	ProxyHeader    clientip.Header
	MaxDelayed     int
	Patience       func(context.Context) time.Duration // as in engine.NewGate
	Adaptive       overload.Bounds
	Protect        engine.Protect
	Actual         bool // the program tells what a request has really used
	Logger         *slog.Logger
}

// Front is the part of a middleware that has no protocol.
type Front struct {
	Engine   *engine.Engine
	Gate     *engine.Gate
	Clients  *clientip.Resolver
	Adaptive *overload.Limiter // nil if there is none
	TTL      time.Duration     // of holds

	options Options
	began   time.Time // when the clock of the adaptive limit was 0
	told    []atomic.Bool
}

// New returns the front of an engine.
func New(e *engine.Engine, o Options) (*Front, error) {
	if e == nil {
		return nil, errors.New(o.Name + ": an engine is required; create one with engine.New")
	}
	clients, err := clientip.New(o.TrustedProxies, o.ProxyHeader)
	if err != nil {
		return nil, fmt.Errorf("%s: TrustedProxies: %w", o.Name, err)
	}
	gate, err := engine.NewGate(e, o.MaxDelayed, o.Patience)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	if err := gate.Protect(o.Protect, o.Logger); err != nil {
		return nil, fmt.Errorf("%s: Protect: %w", o.Name, err)
	}
	if err := o.Adaptive.Check(); err != nil {
		return nil, fmt.Errorf("%s: Adaptive: %w", o.Name, err)
	}
	f := &Front{
		Engine: e, Gate: gate, Clients: clients, Adaptive: o.Adaptive.Limiter(), TTL: weir.DefaultHoldTTL,
		options: o, began: time.Now(), told: make([]atomic.Bool, len(o.Mistakes)),
	}
	if f.Adaptive != nil {
		e.ObserveAdaptive(o.Name, f.AdaptiveLimit)
	}
	return f, nil
}

// Now is the time by the clock of the adaptive limit.
func (f *Front) Now() time.Duration { return time.Since(f.began) }

// AdaptiveLimit returns the state of the adaptive limit.
func (f *Front) AdaptiveLimit() engine.AdaptiveLimit {
	if f.Adaptive == nil {
		return engine.AdaptiveLimit{}
	}
	return engine.AdaptiveLimit(f.Adaptive.Stats())
}

// Waiting is the place of a request in an adaptive limit, of which it is known when it waits for its client:
// then it is no load, and can lose its place. One without a clock, or nil, is not limited.
type Waiting struct {
	overload.Place
	Now func() time.Duration // the clock of the limit
}

// Begin says that the request waits from now on.
func (w *Waiting) Begin() {
	if w != nil && w.Now != nil {
		w.Wait(w.Now())
	}
}

// End says that the client has moved so many bytes. It is false if there is no place any more.
func (w *Waiting) End(n int) bool { return w == nil || w.Now == nil || w.Resume(w.Now(), n) }

// Read reads what the client sends, and fails with lost if there is no place any more.
func (w *Waiting) Read(from io.Reader, to []byte, lost error) (int, error) {
	w.Begin()
	n, err := from.Read(to)
	if !w.End(n) {
		return 0, lost
	}
	return n, err
}

// Reserve asks the gate about a request of which the middleware sees the response.
func (f *Front) Reserve(ctx context.Context, req *rule.Request, v *engine.Verdict, d *engine.Denial) (bool, error) {
	if f.options.Actual {
		return f.Gate.ReserveAll(ctx, req, f.TTL, v, d)
	}
	return f.Gate.Reserve(ctx, req, f.TTL, v, d)
}

// Serve returns the hold of an allowed request, or nil if nothing is to be done after it.
func (f *Front) Serve(req *rule.Request, v *engine.Verdict) *engine.Hold {
	return f.Gate.Serve(req, f.TTL, v)
}

// Mistake is one in the configuration that shows only when requests come: what is wrong, and what to do.
type Mistake = struct{ Code, What, Remedy string }

// Mistakes of every middleware. Its own are from Own on.
const (
	ProxyNotTrusted = iota
	MountedTwice
	HeadersDisagree
	NoAddress
	NotChecked
	NotUsed
	Own
)

// Tell logs a mistake, the first time.
func (f *Front) Tell(number int, details ...any) {
	if f.told[number].Load() || f.told[number].Swap(true) {
		return
	}
	m := &f.options.Mistakes[number]
	cmp.Or(f.options.Logger, slog.Default()).Warn(f.options.Name+": "+m.Code+": "+m.What,
		append([]any{"code", m.Code, "remedy", m.Remedy}, details...)...)
}

// Doubt tells what is doubtful about the address of a client.
func (f *Front) Doubt(d clientip.Doubt, peer string) {
	switch d {
	case clientip.Ignored:
		f.Tell(ProxyNotTrusted, "peer", peer)
	case clientip.Contradiction:
		f.Tell(HeadersDisagree, "peer", peer)
	case clientip.NoAddress:
		f.Tell(NoAddress, "peer", peer)
	}
}

// Identify puts into a request what its token says. That is verified, so it replaces what others say.
func Identify(q *rule.Request, c *rule.Claims) {
	if c == nil {
		return
	}
	if c.User != "" {
		q.User, q.OtherUsers = c.User, nil
	}
	if c.Tier != "" {
		q.Tier = c.Tier
	}
	if c.Priority != 0 {
		q.Priority = c.Priority
	}
	if q.Attributes == nil {
		q.Attributes = c.Attributes
	} else if len(c.Attributes) > 0 {
		q.Attributes = maps.Clone(q.Attributes) // it may be shared, too
		maps.Copy(q.Attributes, c.Attributes)
	}
}

// Challenge is the value of the header WWW-Authenticate for a request without a valid token.
func Challenge(wrong *rule.TokenError) string {
	if wrong.Missing {
		return "Bearer"
	}
	return `Bearer error="invalid_token", error_description="` + wrong.Reason + `"`
}
