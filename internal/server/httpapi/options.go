// Package httpapi is the HTTP API: protocol to engine and back, nothing else.
//
//	handler, err := httpapi.New(httpapi.Options{Service: manage.Service{Engine: engine, Rules: repository}})
//	http.ListenAndServe("127.0.0.1:8080", handler)
//
// Calls below /v1 are checks, for applications that count and queue, or management. They need a
// token as soon as there is a list of tokens, checks by that of [manage.Checks]. What needs none
// is protected against requests from web pages of other sites.
// docs/reference/api.md is the reference; openapi.yaml, which the handler serves, is
// the same for programs, and a test compares it with the code.
//
// Every error is a [Problem]. A denial by a limit is none: /v1/check answers it with
// 200, and /v1/authz as package httplimit would.
package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/queue"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/store/lease"
)

// Options of a handler.
type Options struct {
	// Service is what all servers need. While no token is asked for, browsers are kept from
	// calling by accident. Calls that only look are logged for debugging.
	manage.Service

	// Hosts are names by which the server may be called while no token is asked for,
	// besides localhost and addresses. Any other name may be one that somebody has
	// pointed here in order to make a browser talk to the server. Default none.
	Hosts []string

	// SignIn is sign-in by a proxy in front. Default none.
	SignIn SignIn

	// Trouble is what is wrong although requests should come; nil if nothing is. GET
	// /readyz says it. Default nothing ever.
	Trouble func() error

	// Stats answers /v1/stats. Default none: 404.
	Stats *stats.Recorder

	// StoreKind is "memory" or "redis", for /v1/now. Default not known.
	StoreKind string

	// Outage is since when the store of limits has been unavailable, and why, for
	// /v1/stats; the zero time if it is available. Default always available.
	Outage func() (since time.Time, cause error)

	// NotLoaded is since when the stored rules cannot be loaded, and why, for /v1/stats and
	// /v1/rules; the zero time if they are in force. Default always in force.
	NotLoaded func() (since time.Time, cause error)

	// Adaptive returns the adaptive limits of upstreams, for /v1/stats. Default none.
	Adaptive func() []engine.UpstreamLimit

	// Protect returns what a gateway that protects its process sees and sheds, for /v1/stats;
	// nil if it does not. Default none.
	Protect func() *StatsProtect

	// Leases answers /v1/leases. Default none: 404.
	Leases func() lease.Stats

	// Alerts answers /v1/alerts. Default none: 404.
	Alerts *alert.List

	// TestAlerts answers POST /v1/alerts/test: it sends an alert to all who are told.
	// Default none: 404.
	TestAlerts func(context.Context) (alert.Alert, []alert.Delivery)

	// Stopping is closed when the server stops, so that streams end: a server that stops
	// in order waits for them. Default never.
	Stopping <-chan struct{}

	// CounterUsage is how full the store of counters is, for /v1/counters/names; nil if it has no
	// maximum. Default none.
	CounterUsage func() CounterUsage

	// Queues answers /v1/queues. QueueNames are those that the list of them has.
	// Default none: 404.
	Queues     queue.Store
	QueueNames []string

	// Envoy is the configuration of Envoy's rate limit service that is in force, nil if
	// none was loaded yet, for /rlconfig. Default there is no such service: 404.
	Envoy func() *envoyconfig.Config

	// Profiles serves /debug/pprof/, for tokens with the right admin. Default false: 404.
	Profiles bool

	// Metrics serves /metrics. Default none: 404.
	Metrics http.Handler

	// Home serves every path that is not the API's. While no token is asked for, whatever
	// is not a GET is kept from browsers as the API is. Default a page in plain text that
	// says what this is.
	Home http.Handler

	// Observe is called for every answer, with the context of the request. The route is
	// one of a fixed list, such as "POST /v1/check", whatever the client requested.
	// Default none.
	Observe func(ctx context.Context, route string, status int, took time.Duration)

	// Authz is how /v1/authz limits, and which proxies in front are believed about whom
	// they serve, also when calls of the management are counted. Its Deny is not asked, and
	// its Logger is the one below. Default no proxies, and all families of headers.
	Authz httplimit.Options

	// Clock tells the time. Default the system's.
	Clock func() time.Time
}

// Handler serves the API. It is safe for concurrent use.
type Handler struct {
	options Options
	routes  map[shape][]*mounted
	clients *clientip.Resolver
	origins *http.CrossOriginProtection
	authz   http.Handler

	bodies     bodies
	simulating atomic.Int32  // calls of POST /v1/simulate that are being worked on
	replaying  atomic.Int32  // calls of POST /v1/rules/replay that are being worked on
	exporting  exports       // calls of GET /v1/clients/export that are being answered
	profiling  atomic.Bool   // a profile is being taken
	consulting chan struct{} // has an element for each call that reads statistics
	patience   time.Duration // how long a follower may take to read an event
	replayTime time.Duration // how long a replay may take

	waiting atomic.Int32 // calls that wait for work
	foreign atomic.Bool  // the log has that somebody calls by a name that is not known
	warned  fault.Seldom // of a store
}

// New returns the API of an engine and its rules.
func New(o Options) (*Handler, error) {
	if o.Outage == nil {
		o.Outage = func() (time.Time, error) { return time.Time{}, nil }
	}
	if o.NotLoaded == nil {
		o.NotLoaded = func() (time.Time, error) { return time.Time{}, nil }
	}
	if o.Adaptive == nil {
		o.Adaptive = func() []engine.UpstreamLimit { return nil }
	}
	if o.Protect == nil {
		o.Protect = func() *StatsProtect { return nil }
	}
	if o.Trouble == nil {
		o.Trouble = func() error { return nil }
	}
	if o.Clock == nil {
		c := clock.New()
		o.Clock = func() time.Time { return time.UnixMicro(c.Now()) }
	}
	if o.Limits.Clock == nil {
		o.Limits.Clock = func() weir.Micros { return weir.MicrosOf(o.Clock()) }
	}
	if err := o.Complete("httpapi"); err != nil {
		return nil, err
	}
	if err := o.SignIn.check(&o); err != nil {
		return nil, err
	}
	clients, err := clientip.New(o.Authz.TrustedProxies, clientip.Header(o.Authz.ProxyHeader))
	if err != nil {
		return nil, fmt.Errorf("httpapi: TrustedProxies: %w", err)
	}
	h := &Handler{options: o, clients: clients, origins: http.NewCrossOriginProtection(), bodies: newBodies()}
	h.consulting, h.patience, h.replayTime = make(chan struct{}, maxConsulting), followerPatience, maxReplayTime
	if h.authz, err = newAuthz(&o); err != nil {
		return nil, err
	}
	all := routes()
	if o.Profiles {
		all = append(all, profileRoutes...)
	}
	h.mount(all)
	return h, nil
}
