package gateway

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/middleware/httplimit"
)

// Options of a gateway.
type Options struct {
	// Limit checks every request that has a route. Required.
	Limit *httplimit.Middleware

	// Routes say which upstreams there are, and for what. One is needed at least.
	Routes []Route

	// TrustedProxies are the networks of the proxies in front. What they say about
	// the client is passed on, also in the headers in which Limit believes them; what
	// anybody else says is replaced. They should be the same as those of Limit. Default
	// none.
	TrustedProxies []netip.Prefix

	// ProxyHeader is where these proxies write whom they serve; the other header is
	// then removed, since it can only be the client's. Default EitherHeader, which
	// passes both on unless they disagree.
	ProxyHeader httplimit.ProxyHeader

	// RewriteHost sends the upstream's own name as Host, instead of the one that the
	// client asked for. Default false.
	RewriteHost bool

	// DialTimeout is how long a connection to an upstream may take, with TLS. Default
	// 5 s.
	DialTimeout time.Duration

	// HeaderTimeout is how long an upstream may take to begin its answer, once it has
	// the whole request. Default 60 s; below 0 for ever.
	HeaderTimeout time.Duration

	// ContinueTimeout is how long a body with Expect: 100-continue waits for an
	// upstream to ask for it before it is sent anyway. Default 1 s.
	ContinueTimeout time.Duration

	// MaxInFlight is the maximum number of requests in flight to each upstream. Further
	// requests are answered with 503. The last quarter is for clients that have at most an eighth of it
	// in flight. Default 10000.
	MaxInFlight int

	// MaxBody is how many bytes the body of a request may have; what is longer is
	// answered 413. Default 0, no bound: bodies are streamed and take no room.
	MaxBody int64

	// Backoff is for how long an upstream is left out when no connection can be made.
	// It doubles each time, up to 30 s. Default 1 s.
	Backoff time.Duration

	// Health says how to look after upstreams while Run runs. Default not at all: an
	// upstream is found to be unavailable when a request cannot reach it.
	Health Health

	// TLS is how to speak to upstreams with https: whom to trust, and who we are.
	// Default the system's authorities.
	TLS *tls.Config

	// Observe is called after every request that was not denied by a limit. It must be
	// fast. Default none.
	Observe func(Outcome)

	// Logger is told when an upstream becomes unavailable and comes back. Default
	// slog.Default().
	Logger *slog.Logger
}

// Health is how upstreams are asked whether they are well.
type Health struct {
	// Path is what to GET; an answer of 200 to 399 is well. Default "", do not ask.
	Path string

	// Interval is the time between questions. Default 5 s.
	Interval time.Duration

	// Timeout is how long an answer may take. Default 2 s.
	Timeout time.Duration

	// Threshold is how many answers in a row must be bad before the upstream is left
	// out. One good one brings it back. Default 3.
	Threshold int
}

// Outcome is the result of a request. Its names come from the configuration, so metrics
// by these names are bounded.
type Outcome struct {
	Route    string // Route.Name; "" if there was none
	Upstream string // its scheme, host and port; "" if none was chosen
	Status   int    // what the client was told; 499 if it had left by then
	Tries    int    // upstreams that were tried

	Header time.Duration // until the answer of the upstream began; 0 if it never did
	Took   time.Duration // in all, without the time that the limiter held it

	// Err is why the upstream's answer did not reach the client, or not all of it.
	Err error
}

// withDefaults returns the options with everything said.
func (o Options) withDefaults() (Options, error) {
	if o.Limit == nil {
		return o, errors.New("gateway: Limit is required; create one with httplimit.New")
	}
	err := cmp.Or(
		usual("DialTimeout", &o.DialTimeout, 5*time.Second),
		usual("ContinueTimeout", &o.ContinueTimeout, time.Second),
		usual("Backoff", &o.Backoff, time.Second),
		usual("Health.Interval", &o.Health.Interval, 5*time.Second),
		usual("Health.Timeout", &o.Health.Timeout, 2*time.Second),
		usual("MaxInFlight", &o.MaxInFlight, 10_000),
		usual("Health.Threshold", &o.Health.Threshold, 3),
	)
	if err != nil {
		return o, err
	}
	switch {
	case o.HeaderTimeout < 0:
		o.HeaderTimeout = 0 // net/http's word for ever
	case o.HeaderTimeout == 0:
		o.HeaderTimeout = time.Minute
	}
	if o.MaxBody < 0 {
		return o, fmt.Errorf("gateway: MaxBody is %d; it must be above 0, or 0 for no maximum", o.MaxBody)
	}
	if p := o.Health.Path; p != "" && (p[0] != '/' || strings.ContainsFunc(p, func(c rune) bool { return c <= ' ' || c > '~' || c == '#' })) {
		return o, fmt.Errorf("gateway: Health.Path %q is not a path; write it as /healthz", clip(p))
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Observe == nil {
		o.Observe = func(Outcome) {}
	}
	return o, nil
}

// usual sets the default of a value.
func usual[T int | time.Duration](name string, value *T, def T) error {
	if *value < 0 {
		return fmt.Errorf("gateway: %s is %v; it must be above 0, or 0 for %v", name, *value, def)
	}
	*value = cmp.Or(*value, def)
	return nil
}

// newPeers rejects networks that would trust everybody.
func (o *Options) newPeers() (*peers, error) {
	clients, err := clientip.New(o.TrustedProxies, clientip.Header(o.ProxyHeader))
	if err != nil {
		return nil, fmt.Errorf("gateway: TrustedProxies: %w", err)
	}
	return &peers{clients: clients, limit: o.Limit, header: o.ProxyHeader}, nil
}
