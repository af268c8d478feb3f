package httplimit

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/rule"
)

// Options configures a middleware. The zero value is ready to use if there is no proxy
// in front.
type Options struct {
	// Store keeps the usage of PerIP, PerHeader and Per, and Name separates those that
	// share a store. Default a store in memory, and "per-ip" or similar. A middleware
	// of New uses the store of its engine and the names of its rules instead.
	Store weir.Store
	Name  string

	// TrustedProxies are the networks of proxies whose ProxyHeader is trusted. Default
	// none: the client's address is that of the connection. A Unix socket counts as
	// 127.0.0.1.
	TrustedProxies []netip.Prefix

	// ProxyHeader is the header in which these proxies send the client's address.
	// Default EitherHeader.
	ProxyHeader ProxyHeader

	// User returns the authenticated user, or "" if there is none. It must not trust
	// what the client claims without proof. Default none: rules by user do not apply.
	User func(*http.Request) string

	// UserHeader, TierHeader and PriorityHeader are the headers in which trusted proxies
	// send the authenticated user, the client's tier and the request's priority. They are
	// ignored from any other sender. The proxies must remove these headers from client
	// requests. If there are several users, each is counted; two tiers, two priorities and
	// an unknown priority are answered with 400. Default none; they are not used if User,
	// Tier or Priority is set.
	UserHeader, TierHeader, PriorityHeader string

	// Token tells who the client is by the values of the header Authorization, as Verify of
	// package middleware/jwt does; nil if there is no valid token. What it tells takes
	// precedence over the other functions and headers. A request for which it fails is denied: with
	// 401, if that is a [rule.TokenError]. Default none.
	Token func(authorization []string) (*rule.Claims, error)

	// APIKey returns the API key in clear text, or "" if there is none. Default the
	// header X-API-Key; if there are several values, each is counted.
	APIKey func(*http.Request) string

	// Tier returns the tier of the client, or "" for the default limits of the rules.
	// Default "".
	Tier func(*http.Request) string

	// Priority returns how important the request is, or 0 for the priority that the rules
	// give it. It must not trust what the client claims. Default 0.
	Priority func(*http.Request) rule.Priority

	// Attributes are defined by your application, such as action: post. Default none.
	Attributes func(*http.Request) map[string]string

	// Cost returns the cost of the request. If it returns less than 1, and by
	// default, each rule's own cost applies.
	Cost func(*http.Request) int64

	// Costs returns costs by the unit of a rule, at least 1 each. Rules with other
	// units, or without, cost what they would without Costs. A unit that no rule has is an error. Default none.
	Costs func(*http.Request) map[string]int64

	// Actual returns what a request has really used, such as engine.Units(7) or
	// engine.ByUnit. Cost, Costs or the rule's cost is then an estimate, which is
	// reserved. Wrap calls Actual once, when the handler has ended, with the request of
	// the handler; the status is 0 if the handler panicked before it answered, or answered
	// with an error to a client that had left. If Actual returns nil, the estimate stays charged. Rules that settle by the response do not
	// use it. Default none.
	Actual func(*http.Request, *rule.Response) engine.Used

	// Permit returns which rules and keys a request may be charged under, as in rule.Request; nil
	// for all. Others are answered with 403. Default all.
	Permit func(*http.Request) func(rule, key string) bool

	// Skip reports whether a request passes without a check. Default never.
	Skip func(*http.Request) bool

	// Deny answers a denied request. The headers are already set; Deny may change them
	// and the Denial, and then call Denial.Write. Default Denial.Write.
	Deny func(http.ResponseWriter, *http.Request, *Denial)

	// Headers selects the response headers to write. Default AllHeaders.
	Headers Headers

	// MaxDelayed is the maximum number of requests that are delayed, or wait for a place,
	// at the same time. Further requests that a rule shapes are answered with 503, and those
	// that would wait for a place are denied. Default 1000.
	MaxDelayed int

	// BodyTimeout and BodyRate are how fast the body of a request must come if a rule reads it: all
	// of it within BodyTimeout, and after 10 s, BodyRate bytes a second on average since then. A
	// slower one is answered with 408. They do not matter if no rule reads the body. Default 5
	// minutes, and 1024.
	// What a request has reserved is kept only while its body comes at BodyRate, as long as the
	// handler waits for it; see [engine.Hold.Upload].
	BodyTimeout time.Duration
	BodyRate    int64

	// Adaptive limits the requests in flight in the handlers of Wrap by how many they can
	// answer. {Min: 5, Max: 1000} suits most. Default none.
	Adaptive Adaptive

	// Protect sheds requests while the process uses too much CPU or memory: {CPU: 0.85, Memory:
	// 0.9} suits most. They are answered with 503. Default none.
	Protect engine.Protect

	// Observe is called after each request that Wrap allowed, with the matching pattern
	// of the http.ServeMux below, the status, and the duration of the handler; err is
	// set if the handler panicked. Use ObserveUpstream of a *stats.Recorder. Default
	// none.
	Observe func(pattern string, status int, took time.Duration, err error)

	// Logger receives warnings about likely mistakes in the configuration. Default
	// slog.Default().
	Logger *slog.Logger
}

// ProxyHeader is the header in which trusted proxies send the client's address.
type ProxyHeader uint8

const (
	// EitherHeader is X-Forwarded-For or Forwarded, whichever is present. If both are
	// present and name different clients, one of them comes from the client, so neither
	// is trusted: the proxy counts as the client. If a client could gain from that,
	// name the header that your proxies write.
	EitherHeader  = ProxyHeader(clientip.Either)
	XForwardedFor = ProxyHeader(clientip.XForwardedFor)
	Forwarded     = ProxyHeader(clientip.Forwarded)
)

// New returns a middleware that uses the engine.
func New(e *engine.Engine, o Options) (*Middleware, error) {
	if o.Store != nil || o.Name != "" {
		return nil, errors.New("httplimit: Store and Name are for PerIP, PerHeader and Per; the engine already has a store")
	}
	if o.trustsHeaders() && len(o.TrustedProxies) == 0 {
		return nil, errors.New("httplimit: UserHeader, TierHeader and PriorityHeader are accepted from trusted proxies only; list them in TrustedProxies")
	}
	if o.BodyTimeout < 0 || o.BodyRate < 0 {
		return nil, fmt.Errorf("httplimit: BodyTimeout is %v and BodyRate %d; they must be above 0, or 0 for the defaults of %v and %d", o.BodyTimeout, o.BodyRate, budget.Usual.Timeout, budget.Usual.Rate)
	}
	o.BodyTimeout = cmp.Or(o.BodyTimeout, budget.Usual.Timeout)
	o.BodyRate = cmp.Or(o.BodyRate, budget.Usual.Rate)
	o.Headers = cmp.Or(o.Headers, AllHeaders)
	for _, name := range []*string{&o.UserHeader, &o.TierHeader, &o.PriorityHeader} {
		*name = http.CanonicalHeaderKey(*name)
	}
	f, err := front.New(e, front.Options{
		Name: "httplimit", Mistakes: mistakes[:], TrustedProxies: o.TrustedProxies, ProxyHeader: clientip.Header(o.ProxyHeader),
		MaxDelayed: o.MaxDelayed, Patience: patience, Adaptive: overload.Bounds(o.Adaptive), Protect: o.Protect, Actual: o.Actual != nil, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &Middleware{options: o, engine: e, front: f, mounts: mountsOf(e)}, nil
}

// Protection returns the state of Options.Protect. Observers of the engine that are an
// [engine.ProtectionObserver], such as metrics, show it, too.
func (m *Middleware) Protection() engine.Protection { return m.front.Gate.Protection() }

// trustsHeaders reports whether trusted proxies tell of clients in headers.
func (o *Options) trustsHeaders() bool {
	return o.UserHeader != "" || o.TierHeader != "" || o.PriorityHeader != ""
}

// Believes reports whether a header is UserHeader, TierHeader or PriorityHeader, in which
// trusted proxies tell of the client. Code that forwards requests removes it unless the
// request comes from a trusted proxy. The name is canonical.
func (m *Middleware) Believes(name string) bool {
	return name == m.options.UserHeader || name == m.options.TierHeader || name == m.options.PriorityHeader
}

// Reads reports whether a header tells of clients: it is UserHeader, TierHeader, PriorityHeader
// or X-API-Key, or a rule in force counts by it. The name is canonical.
func (m *Middleware) Reads(name string) bool {
	table, _ := m.engine.Rules()
	return m.Believes(name) || name == apiKeyHeader || table.CountsByHeader(name)
}

// apiKeyHeader is X-API-Key in its canonical form.
const apiKeyHeader = "X-Api-Key"
