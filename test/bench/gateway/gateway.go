// Package gateway measures weir's gateway beside a bare httputil.ReverseProxy in front of
// the same upstream.
package gateway

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

type options struct {
	callers  int
	requests int // of each caller in a round
	rounds   int
}

var (
	full  = options{callers: 32, requests: 400, rounds: 21}
	quick = options{callers: 32, requests: 100, rounds: 3}
)

// contestant is a proxy in front of the upstream, or the upstream itself.
type contestant struct {
	name  string
	rules string // of a gateway; no client reaches the limits, and every request is charged for them
}

var (
	itself   = contestant{name: "the upstream itself"}
	bare     = contestant{name: "httputil.ReverseProxy"}
	ours     = contestant{"weir gateway, one limit", "rules: [{id: everybody, key: ip, limit: 1000000000/1s}]"}
	counting = contestant{"weir gateway, tokens", "rules: [{id: tokens, key: ip, limit: 1000000000000/1s, tokens: {}}]"}
	places   = contestant{"weir gateway, one limit and concurrency", "rules: [{id: everybody, key: ip, limit: 1000000000/1s, concurrency: 1000}]"}
)

// groups are comparisons of contestants in front of one upstream, in which the subject is to have
// at least aim of the reference's rate.
var groups = []struct {
	name               string
	upstream           http.HandlerFunc
	questions          []question
	subject, reference contestant
	aim                float64
}{
	{"the gateway beside a bare proxy", serveThings, things(), ours, bare, 0.97},
	{"the gateway with and without counting of tokens", serveModel, chats(), counting, ours, 0.90},
	{"the gateway with and without a limit of requests in flight", serveThings, things(), places, ours, 0.92},
}

// Run writes the table.
func Run(r *bench.Run) { run(r, bench.Pick(r, full, quick)) }

func run(r *bench.Run, o options) {
	table := bench.NewTable("<contestant", "<request", "requests a second", "×", "first byte", "allocs")
	var aims []bench.Aim
	for _, g := range groups {
		all := []contestant{itself, g.reference, g.subject}
		addresses := start(r, g.upstream, all)
		aim := bench.Aim{What: g.name, Bound: g.aim, AtLeast: true}
		for _, q := range g.questions {
			together := bench.Contest{What: g.name + ": " + q.name, Rounds: o.rounds, Load: bench.Load{Callers: o.callers, Count: o.requests}}
			alone := bench.Contest{What: together.What + ", one caller", Rounds: o.rounds}
			for i, c := range all {
				together.Contestants = append(together.Contestants, bench.Contestant{Name: c.name, Ask: q.ask(r, addresses[i], c, o.callers)})
				alone.Contestants = append(alone.Contestants, bench.Contestant{Name: c.name, Play: q.first(r, addresses[i], c, o)})
			}
			res, firsts := together.Run(r), alone.Run(r)
			for i, name := range res.Names {
				table.Row("%s|%s|%.0f|%.2f|%d µs|%.0f", name, q.name, res.Median(i, bench.Round.Rate), res.Ratio(i, 1, bench.Round.Rate),
					time.Duration(firsts.Median(i, bench.Round.FirstNanos)).Microseconds(), res.Median(i, bench.Round.Allocs))
			}
			aim.Worst(res.Ratio(2, 1, bench.Round.Rate), q.name)
		}
		aims = append(aims, aim)
	}
	r.Write("gateway.txt", bench.Describe(), fmt.Sprintf(`%d callers with a connection each; each sends its next request after the answer; median of %d rounds
that take turns. Callers, proxy and upstream share the machine.
×: rate divided by the rate of the reference in the same round; median of the rounds. The reference is
a bare proxy with the same connections, timeouts and buffers; for tokens, the gateway that counts none.
first byte: from the request to the first byte of the body, with one caller alone; median.
allocs: allocations of a request, including those of the server and the upstream.`, o.callers, o.rounds), table, bench.Aims("worst with", aims))
}

// ask has each caller ask on a connection of its own.
func (q question) ask(t testing.TB, address string, c contestant, callers int) func(int) func(int) error {
	return bench.AskHTTP(t, address, callers, func(int, int) []byte { return q.text }, func(a bench.Answer) error { return q.right(a, c) })
}

// first measures the time until the first byte, with one caller alone.
func (q question) first(t testing.TB, address string, c contestant, o options) func(int) (bench.Round, error) {
	var firsts []time.Duration
	ask := bench.AskHTTP(t, address, 1, func(int, int) []byte { return q.text }, func(a bench.Answer) error {
		firsts = append(firsts, a.First)
		return q.right(a, c)
	})
	return func(int) (bench.Round, error) {
		firsts = nil
		round, err := bench.Load{Callers: 1, Count: max(1, o.requests/4)}.Run(ask)
		if err == nil {
			round.First = bench.Median(firsts, func(d time.Duration) float64 { return float64(d) })
		}
		return round, err
	}
}

// right requires the right answer of a contestant.
func (q question) right(a bench.Answer, c contestant) error {
	switch limited := c.rules != ""; {
	case a.Status != http.StatusOK:
		return fmt.Errorf("the status is %d, want 200", a.Status)
	case a.Limited != limited:
		return fmt.Errorf("the answer has headers about limits: %v, want %v", a.Limited, limited)
	case a.Length != q.body:
		return fmt.Errorf("the answer has %d bytes, want %d", a.Length, q.body)
	}
	return nil
}

// start serves the upstream, which is the first, and the proxies in front of it. Cleanup closes
// the proxies before the upstream.
func start(t testing.TB, upstream http.Handler, all []contestant) []string {
	addresses := []string{bench.Serve(t, upstream)}
	target := &url.URL{Scheme: "http", Host: addresses[0]}
	for _, c := range all[1:] {
		var handler http.Handler
		if c == bare {
			handler = newProxy(t, target)
		} else {
			g := newGateway(t, c.rules, target)
			t.Cleanup(g.Close)
			handler = g
		}
		addresses = append(addresses, bench.Serve(t, handler))
	}
	return addresses
}

// maxIdle is enough for every caller to have a connection of its own, and what the gateway has.
const maxIdle = 256

// newProxy is a proxy as its documentation writes one, with settings that every proxy should have.
func newProxy(t testing.TB, target *url.URL) http.Handler {
	transport := &http.Transport{
		MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: time.Minute, DisableCompression: true,
		ResponseHeaderTimeout: time.Minute, ExpectContinueTimeout: time.Second,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Host = p.In.Host
			p.SetXForwarded()
		},
		Transport: transport, BufferPool: buffers{},
	}
}

// buffers spare the bare proxy the allocation that the gateway does not have either.
type buffers struct{}

var pool = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (buffers) Get() []byte  { return pool.Get().(*[32 << 10]byte)[:] }
func (buffers) Put(b []byte) { pool.Put((*[32 << 10]byte)(b)) }

func newGateway(t testing.TB, rules string, target *url.URL) *gateway.Gateway {
	e := bench.NewEngine(t, memory.New(memory.Options{}), rules)
	return testkit.Must(gateway.New(gateway.Options{
		Limit: testkit.Must(httplimit.New(e, httplimit.Options{}))(t), Routes: []gateway.Route{{Upstreams: []*url.URL{target}}},
		Logger: slog.New(slog.DiscardHandler),
	}))(t)
}
