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
	"github.com/weirhq/weir/internal/clientip"
)

// Options of a middleware. The zero value is ready to use where no proxy stands in
// front.
type Options struct {
	// Store is where PerIP, PerHeader and Per keep what clients have used, and Name keeps
	// apart those that share a store. Defaults a store in memory, and "per-ip" or alike. A
	// middleware that New makes has the store of its engine, and the names of its rules.
	Store weir.Store
	Name  string

	// TrustedProxies are the networks of the proxies in front, which are believed
	// about whom they serve. Default none: the client is whoever holds the
	// connection. A Unix socket counts as 127.0.0.1.
	TrustedProxies []netip.Prefix

	// ProxyHeader is where these proxies write whom they serve. Default
	// EitherHeader.
	ProxyHeader ProxyHeader

	// User tells who is logged in, "" if nobody is. It must not believe what the
	// client merely claims. Default nobody: rules by user do not apply.
	User func(*http.Request) string

	// UserHeader and TierHeader are where the trusted proxies write who is logged in,
	// and the tier of the client; from anybody else they are not believed. The proxies
	// must remove what a client sends under these names. Of several users each is
	// counted; two tiers are answered 400. Default nowhere; they are not asked if User or
	// Tier is set.
	UserHeader, TierHeader string

	// APIKey tells the API key in clear, "" if there is none. Default the header
	// X-API-Key; if it is there several times, each value is counted.
	APIKey func(*http.Request) string

	// Tier tells the tier of the client, "" for the rules' own limits. Default "".
	Tier func(*http.Request) string

	// Attributes are the application's own words, such as action: post. Default
	// none.
	Attributes func(*http.Request) map[string]string

	// Cost tells what the request costs. What is below 1 leaves it to each rule,
	// and so does the default.
	Cost func(*http.Request) int64

	// Skip tells whether to let a request pass without judging it. Default never.
	Skip func(*http.Request) bool

	// Deny answers a denied request. The headers are set by then; it may change
	// them, and what it is given, and call Denial.Write in the end. Default
	// Denial.Write alone.
	Deny func(http.ResponseWriter, *http.Request, *Denial)

	// Headers are the families of headers to write. Default AllHeaders.
	Headers Headers

	// MaxDelayed is how many requests may be held at once until their turn has come.
	// Whoever comes beyond is answered 503. Default 1000.
	MaxDelayed int

	// Observe is told how each request went that Wrap allowed: the pattern
	// of the http.ServeMux below that took it, the status, and how long the handler
	// took; the error is of one that panicked. A *stats.Recorder takes it as its
	// ObserveUpstream. Default nobody.
	Observe func(pattern string, status int, took time.Duration, err error)

	// Logger is told of mistakes in the set-up. Default slog.Default().
	Logger *slog.Logger
}

// ProxyHeader is where trusted proxies write whom they serve.
type ProxyHeader uint8

const (
	// EitherHeader is X-Forwarded-For or Forwarded, whichever is there. If both are
	// and name different clients, one of them comes from the client, and neither is
	// believed: the request counts as the proxy's own. Where a client could gain
	// from that, name the one that your proxies write.
	EitherHeader  = ProxyHeader(clientip.Either)
	XForwardedFor = ProxyHeader(clientip.XForwardedFor)
	Forwarded     = ProxyHeader(clientip.Forwarded)
)

// New returns a middleware that asks the engine.
func New(e *engine.Engine, o Options) (*Middleware, error) {
	if e == nil {
		return nil, errors.New("httplimit: New needs an engine; engine.New makes one")
	}
	if o.Store != nil || o.Name != "" {
		return nil, errors.New("httplimit: Store and Name are for PerIP, PerHeader and Per; the engine has a store already")
	}
	clients, err := clientip.New(o.TrustedProxies, clientip.Header(o.ProxyHeader))
	if err != nil {
		return nil, fmt.Errorf("httplimit: TrustedProxies: %w", err)
	}
	if (o.UserHeader != "" || o.TierHeader != "") && len(o.TrustedProxies) == 0 {
		return nil, errors.New("httplimit: UserHeader and TierHeader are believed from trusted proxies only; name those in TrustedProxies")
	}
	gate, err := engine.NewGate(e, o.MaxDelayed, patience)
	if err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	o.Headers = cmp.Or(o.Headers, AllHeaders)
	o.UserHeader, o.TierHeader = http.CanonicalHeaderKey(o.UserHeader), http.CanonicalHeaderKey(o.TierHeader)
	return &Middleware{options: o, engine: e, gate: gate, clients: clients, mounts: mountsOf(e)}, nil
}

// Believes reports whether a header is one of UserHeader and TierHeader, which tell who
// the client is. Whoever passes requests on removes it from those that are not of a
// trusted proxy. The name is canonical.
func (m *Middleware) Believes(name string) bool {
	return name == m.options.UserHeader || name == m.options.TierHeader
}

// Reads reports whether a header tells clients apart: it is believed, it is X-API-Key,
// or a rule in force counts by it. The name is canonical.
func (m *Middleware) Reads(name string) bool {
	table, _ := m.engine.Rules()
	return m.Believes(name) || name == apiKeyHeader || table.CountsByHeader(name)
}

// apiKeyHeader is X-API-Key in its canonical form.
const apiKeyHeader = "X-Api-Key"
