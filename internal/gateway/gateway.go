// Package gateway is a reverse proxy with the limiter in front.
//
//	g, err := gateway.New(gateway.Options{Limit: limit, Routes: routes})
//	go g.Run(ctx)
//	http.ListenAndServe(addr, g)
//
// The gateway first checks a request; a denied request never reaches an upstream. Then
// it finds the route with the longest host and path, and the upstream with the fewest
// requests in flight. It forwards path and query unchanged, and streams bodies in both
// directions without buffering, so a body can have any size.
//
// # What is sent twice
//
// Nothing that an upstream may have seen. A request goes to another upstream only if no
// connection could be made; once a byte of it is under way it is answered 502 or 504
// instead, be it a GET. (net/http alone would send a GET again when a connection that
// was kept alive ends without an answer.)
//
// # Whom to believe
//
// The gateway trusts only the peers in Options.TrustedProxies. From all other peers it
// removes headers that name the client or its original request, before it writes its
// own.
package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/match"
	"github.com/weirhq/weir/middleware/httplimit"
)

// Gateway is a handler that passes on what the limiter allows. It is safe for
// concurrent use.
type Gateway struct {
	options   Options
	limit     *httplimit.Proxy
	table     *table
	peers     *peers
	transport *transport
	began     time.Time
	clock     func() instant // now

	// name is this gateway's in Via; another of the same program has another. via is
	// the whole entry, by the version of the protocol.
	name string
	via  map[int][]string

	// inFlight is how many requests clients have, by a hash of the client. Those that share one count
	// together, which matters only if that is very many.
	inFlight [1024]atomic.Int64
	seed     maphash.Seed

	streams streams
}

// New returns a gateway. It makes no connection yet.
func New(o Options) (*Gateway, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	g := &Gateway{options: o, began: time.Now(), seed: maphash.MakeSeed()}
	if g.table, err = newTable(o.Routes); err != nil {
		return nil, err
	}
	if g.peers, err = o.newPeers(); err != nil {
		return nil, err
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // it never fails
	g.name = "weir-" + hex.EncodeToString(id[:])
	g.via = map[int][]string{10: {"1.0 " + g.name}, 11: {"1.1 " + g.name}, 20: {"2.0 " + g.name}}
	g.transport = newTransport(g, &g.options)
	g.limit, g.clock = o.Limit.Proxy(), g.now
	return g, nil
}

// ServeHTTP finds the route of a request, checks the request and forwards it. A request
// without a route is not charged.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{Context: r.Context(), gateway: g, w: w, in: r}
	if a := g.reject(x, r); a != nil {
		x.began = time.Now()
		x.answer(a, nil)
		x.ended = true
		x.end()
		return
	}
	g.limit.Serve(w, r.WithContext(x), &x.limited, x)
}

// Close ends the connections that are not in use. Those that are end with their
// requests.
func (g *Gateway) Close() {
	for _, t := range []*http.Transport{g.transport.usual, g.transport.fresh, g.transport.h2c} {
		t.CloseIdleConnections()
	}
}

// WaitStreams returns when no stream is open: no WebSocket, and no response that has begun and has
// no length or is of events. It returns how many are open when the context ends.
func (g *Gateway) WaitStreams(ctx context.Context) int { return g.streams.wait(ctx) }

// Ready is nil if every route has an upstream that could be reached when it was last
// tried.
func (g *Gateway) Ready() error {
	now := g.now()
	for _, r := range g.table.routes {
		if slices.ContainsFunc(r.targets, func(t *target) bool { return t.well(now) }) {
			continue
		}
		return fmt.Errorf("gateway: no upstream of the route %q is available; check %s", r.name, r.targets[0].name)
	}
	return nil
}

func (g *Gateway) now() instant { return time.Since(g.began) }

// ServeHTTP forwards the request of the exchange, which was allowed.
func (x *exchange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := x.gateway
	x.w, x.began = w, time.Now() // the limiter may have held it
	x.tried = x.few[:0]
	x.client, _ = g.peers.clients.Client(r.RemoteAddr, r.Header)
	x.ofClient = &g.inFlight[maphash.Comparable(g.seed, clientip.Network(x.client))%uint64(len(g.inFlight))]
	x.ofClient.Add(1)
	defer x.end()
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		// Without it, the server would throw away what has not been read of the body
		// as soon as the answer begins, and the upstream would get a body with a hole.
		_ = http.NewResponseController(w).EnableFullDuplex()
	}
	x.forward(r)
	x.ended = true
}

// reject finds the route, or says why the request goes nowhere.
func (g *Gateway) reject(x *exchange, r *http.Request) *answer {
	if r.Method == http.MethodConnect {
		return noTunnel
	}
	path := r.URL.EscapedPath()
	if r.URL.Opaque != "" || path != "" && path[0] != '/' {
		return badTarget // mailto:x, or *: to an upstream it would be another request than to the rules
	}
	if !wellFormed(r.Host) {
		return badHost
	}
	for _, v := range r.Header["Via"] {
		if strings.Contains(v, g.name) {
			return loop
		}
	}
	if x.route = g.table.findRoute(r.Host, match.CanonicalPath(path)); x.route == nil {
		return noRoute
	}
	if g.options.MaxBody > 0 && r.ContentLength > g.options.MaxBody {
		return bigBody
	}
	if x.route.based && climbs(r) {
		return climbing
	}
	return nil
}
