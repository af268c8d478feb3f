package grpclimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/headerfield"
)

// Options of a limiter. The zero value is ready to use where no proxy stands in front.
// The functions are given the full method, as in /shop.v1.Orders/Create; metadata are
// in the context.
type Options struct {
	// TrustedProxies are the networks of the proxies in front, which are believed
	// about whom they serve. Default none: the client is whoever holds the
	// connection. A Unix socket counts as 127.0.0.1.
	TrustedProxies []netip.Prefix

	// ProxyHeader is where these proxies write whom they serve. Default
	// EitherHeader.
	ProxyHeader ProxyHeader

	// User tells who is logged in, "" if nobody is. It must not believe what the
	// client merely claims. Default nobody: rules by user do not apply.
	User func(ctx context.Context, method string) string

	// APIKey tells the API key in clear, "" if there is none. Default the metadata
	// x-api-key; if they have it several times, each value is counted.
	APIKey func(ctx context.Context, method string) string

	// Tier tells the tier of the client, "" for the rules' own limits. Default "".
	Tier func(ctx context.Context, method string) string

	// Attributes are the application's own words, such as action: post. Default
	// none.
	Attributes func(ctx context.Context, method string) map[string]string

	// Cost tells what the call costs, and with PerMessage each message. What is
	// below 1 leaves it to each rule, and so does the default.
	Cost func(ctx context.Context, method string) int64

	// Skip tells whether to let a call pass without judging it. Default never.
	Skip func(ctx context.Context, method string) bool

	// PerMessage makes every message of a client's stream count, not only the call.
	// The first one is paid for by the call itself, so that a stream of one message
	// costs what a unary call does. Default false.
	PerMessage bool

	// Deny makes the error of a denied call. It may change what it is given, and
	// return its Err. Default Denial.Err alone.
	Deny func(ctx context.Context, method string, d *Denial) error

	// Headers are the families of metadata to write. Default AllHeaders.
	Headers Headers

	// MaxDelayed is how many calls may be held at once until their turn has come.
	// Whoever comes beyond is told Unavailable. Default 1000.
	MaxDelayed int

	// Logger is told of mistakes in the set-up. Default slog.Default().
	Logger *slog.Logger
}

// Headers are families of metadata in the answer.
type Headers uint8

const (
	// XRateLimit is x-ratelimit-limit, -remaining and -reset, in units and Unix
	// seconds, and x-ratelimit-degraded: 1 when the store could not be asked.
	XRateLimit Headers = headerfield.XRateLimit

	// RateLimit is ratelimit-policy and ratelimit, the structured fields of
	// draft-ietf-httpapi-ratelimit-headers.
	RateLimit Headers = headerfield.RateLimit

	// RetryAfter is retry-after, in seconds, of a call that was denied.
	RetryAfter Headers = headerfield.RetryAfter

	// NoHeaders switches all of them off.
	NoHeaders Headers = 1 << 3

	AllHeaders = XRateLimit | RateLimit | RetryAfter
)

// ProxyHeader is where trusted proxies write whom they serve.
type ProxyHeader uint8

const (
	// EitherHeader is x-forwarded-for or forwarded, whichever is there. If both are
	// and name different clients, neither is believed: the call counts as the
	// proxy's own.
	EitherHeader  = ProxyHeader(clientip.Either)
	XForwardedFor = ProxyHeader(clientip.XForwardedFor)
	Forwarded     = ProxyHeader(clientip.Forwarded)
)

// New returns a limiter that asks the engine.
func New(e *engine.Engine, o Options) (*Limiter, error) {
	if e == nil {
		return nil, errors.New("grpclimit: New needs an engine; engine.New makes one")
	}
	clients, err := clientip.New(o.TrustedProxies, clientip.Header(o.ProxyHeader))
	if err != nil {
		return nil, fmt.Errorf("grpclimit: TrustedProxies: %w", err)
	}
	gate, err := engine.NewGate(e, o.MaxDelayed, nil)
	if err != nil {
		return nil, fmt.Errorf("grpclimit: %w", err)
	}
	o.Headers = cmp.Or(o.Headers, AllHeaders)
	return &Limiter{options: o, engine: e, gate: gate, clients: clients}, nil
}
