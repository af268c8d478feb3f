package grpclimit

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/rule"
)

// Options configures a limiter. The zero value is ready to use if there is no proxy in
// front. The functions get the full method, as in /shop.v1.Orders/Create; the context
// contains the metadata.
type Options struct {
	// TrustedProxies are the networks of proxies whose ProxyHeader is trusted. Default
	// none: the client's address is that of the connection. A Unix socket counts as
	// 127.0.0.1.
	TrustedProxies []netip.Prefix

	// ProxyHeader is the header in which these proxies send the client's address.
	// Default EitherHeader.
	ProxyHeader ProxyHeader

	// User returns the authenticated user, or "" if there is none. It must not trust
	// what the client claims without proof. Default none: rules by user do not apply.
	User func(ctx context.Context, method string) string

	// Token tells who the client is by the values of the metadata authorization, as Verify of
	// package middleware/jwt does; nil if there is no valid token. What it tells takes
	// precedence over the other functions. A call for which it fails is denied: with
	// Unauthenticated, if that is a [rule.TokenError]. Default none.
	Token func(authorization []string) (*rule.Claims, error)

	// APIKey returns the API key in clear text, or "" if there is none. Default the
	// metadata x-api-key; if there are several values, each is counted.
	APIKey func(ctx context.Context, method string) string

	// Tier returns the tier of the client, or "" for the default limits of the rules.
	// Default "".
	Tier func(ctx context.Context, method string) string

	// Priority returns how important the call is, or 0 for the priority that the rules give
	// it. It must not trust what the client claims. Default 0.
	Priority func(ctx context.Context, method string) rule.Priority

	// Attributes are defined by your application, such as action: post. Default none.
	Attributes func(ctx context.Context, method string) map[string]string

	// Cost returns the cost of the call, and with PerMessage of each message. If it
	// returns less than 1, and by default, each rule's own cost applies.
	Cost func(ctx context.Context, method string) int64

	// Costs returns costs by the unit of a rule, at least 1 each. Rules with other
	// units, or without, cost what they would without Costs. A unit that no rule has is an error. Default none.
	Costs func(ctx context.Context, method string) map[string]int64

	// Actual returns what a call has really used, such as engine.Units(7) or
	// engine.ByUnit. Cost, Costs or the rule's cost is then an estimate, which is
	// reserved. Actual is called once, when the handler has ended; the status is 0 if
	// the handler panicked, or failed after the client had left. If Actual returns nil, the estimate stays charged. Rules
	// that settle by the response do not use it. Default none.
	Actual func(ctx context.Context, method string, resp *rule.Response) engine.Used

	// Skip reports whether a call passes without a check. Default never.
	Skip func(ctx context.Context, method string) bool

	// PerMessage makes every message of a client's stream count, not only the call. The
	// call pays for the first message, so a stream of one message costs as much as a
	// unary call. Default false.
	PerMessage bool

	// Deny returns the error of a denied call. It may change the Denial and return its
	// Err. Default Denial.Err.
	Deny func(ctx context.Context, method string, d *Denial) error

	// Headers selects the metadata to send. Default AllHeaders.
	Headers Headers

	// MaxDelayed is the maximum number of calls that are delayed, or wait for a place, at the
	// same time. Further calls that a rule shapes get Unavailable, and those that would wait
	// for a place are denied. Default 1000.
	MaxDelayed int

	// Adaptive limits the calls in flight by how many the handlers can answer. {Min: 5,
	// Max: 1000} suits most. Default none.
	Adaptive Adaptive

	// Protect sheds calls while the process uses too much CPU or memory: {CPU: 0.85, Memory:
	// 0.9} suits most. They get Unavailable. Default none.
	Protect engine.Protect

	// Logger receives warnings about likely mistakes in the configuration. Default
	// slog.Default().
	Logger *slog.Logger
}

// Headers selects groups of metadata in the answer.
type Headers uint8

const (
	// XRateLimit is x-ratelimit-limit, -remaining and -reset, in units and Unix
	// seconds, and x-ratelimit-degraded: 1 if the store is unavailable.
	XRateLimit Headers = front.XRateLimit

	// RateLimit is ratelimit-policy and ratelimit, the structured fields of
	// draft-ietf-httpapi-ratelimit-headers.
	RateLimit Headers = front.RateLimit

	// RetryAfter is retry-after, in seconds, for denied calls.
	RetryAfter Headers = front.RetryAfter

	// NoHeaders disables all of them.
	NoHeaders Headers = 1 << 3

	AllHeaders = XRateLimit | RateLimit | RetryAfter
)

// ProxyHeader is the header in which trusted proxies send the client's address.
type ProxyHeader uint8

const (
	// EitherHeader is x-forwarded-for or forwarded, whichever is present. If both are
	// present and name different clients, neither is trusted: the proxy counts as the
	// client.
	EitherHeader  = ProxyHeader(clientip.Either)
	XForwardedFor = ProxyHeader(clientip.XForwardedFor)
	Forwarded     = ProxyHeader(clientip.Forwarded)
)

// New returns a limiter that uses the engine.
func New(e *engine.Engine, o Options) (*Limiter, error) {
	f, err := front.New(e, front.Options{
		Name: "grpclimit", Mistakes: mistakes[:], TrustedProxies: o.TrustedProxies, ProxyHeader: clientip.Header(o.ProxyHeader),
		MaxDelayed: o.MaxDelayed, Adaptive: overload.Bounds(o.Adaptive), Protect: o.Protect, Actual: o.Actual != nil, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	o.Headers = cmp.Or(o.Headers, AllHeaders)
	return &Limiter{options: o, engine: e, front: f}, nil
}

// mistakes say what is wrong, in a sentence, and what to do.
var mistakes = [front.Own]front.Mistake{
	front.ProxyNotTrusted: {"G001", "metadata of a proxy received, but no proxy is trusted",
		"If a proxy is in front, add its network to TrustedProxies; otherwise all clients behind the proxy count as one. If there is no proxy, a client forged the metadata, and they were ignored."},
	front.MountedTwice: {"G002", "call limited twice",
		"Add the interceptor to the chain once. The call was charged once."},
	front.HeadersDisagree: {"G003", "x-forwarded-for and forwarded name different clients",
		"Set ProxyHeader to the one that your proxies set, and make them remove the other. The call was counted for the address of the proxy."},
	front.NoAddress: {"G004", "connection without IP address",
		"All such connections are limited as one client, 0.0.0.0. Use a listener whose connections have the address of the client."},
	front.NotChecked: {"G005", "call not checked",
		"The call failed with InvalidArgument. The error has the cause, in the rules or in the functions of Options."},
	front.NotUsed: {"G006", "result of Actual not used",
		"Return units that rules have. The error has the cause. The call was charged as estimated."},
}
