package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/store/memory"
)

// field holds an upstream and the proxies in front of it, each on its own port. Cleanup
// closes the proxies before the upstream.
type field struct {
	testing.TB
	contestants []contestant
}

type contestant struct {
	name    string
	addr    string
	limited bool // its answers have headers about limits
}

const (
	bare     = "httputil.ReverseProxy"
	ours     = "weir gateway, one limit"
	counting = "weir gateway, tokens"
	places   = "weir gateway, one limit and concurrency"
)

// No client reaches these limits, and every request is charged for them.
const (
	rules       = "rules: [{id: everybody, key: ip, limit: 1000000000/1s}]"
	countPlaces = "rules: [{id: everybody, key: ip, limit: 1000000000/1s, concurrency: 1000}]"
	countTokens = "rules: [{id: tokens, key: ip, limit: 1000000000000/1s, tokens: {}}]"
)

// startProxies has the gateway beside a bare proxy.
func startProxies(t testing.TB) *field {
	h := &field{TB: t}
	target := testcall.Must(url.Parse(h.serve("the upstream itself", http.HandlerFunc(serve))))(t)
	transport := &http.Transport{ // with settings that every proxy should have
		MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: time.Minute, DisableCompression: true,
		ResponseHeaderTimeout: time.Minute, ExpectContinueTimeout: time.Second,
	}
	h.serve(bare, &httputil.ReverseProxy{ // as its documentation writes one
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Host = p.In.Host
			p.SetXForwarded()
		},
		Transport: transport, BufferPool: buffers{},
	})
	t.Cleanup(transport.CloseIdleConnections)

	h.serveGateway(ours, rules, target)
	return h
}

// startPlaces has the gateway that limits how many requests are in flight beside the one that does
// not.
func startPlaces(t testing.TB) *field {
	h := &field{TB: t}
	target := testcall.Must(url.Parse(h.serve("the upstream itself", http.HandlerFunc(serve))))(t)
	h.serveGateway(ours, rules, target)
	h.serveGateway(places, countPlaces, target)
	return h
}

// startModels has the gateway that counts tokens beside the one that does not.
func startModels(t testing.TB) *field {
	h := &field{TB: t}
	target := testcall.Must(url.Parse(h.serve("the upstream itself", http.HandlerFunc(serveModel))))(t)
	h.serveGateway(ours, rules, target)
	h.serveGateway(counting, countTokens, target)
	return h
}

func (h *field) serveGateway(name, rules string, target *url.URL) {
	g := newGateway(h, rules, target)
	h.serve(name, g)
	h.Cleanup(g.Close)
	h.contestants[len(h.contestants)-1].limited = true
}

func (h *field) serve(name string, handler http.Handler) (url string) {
	s := httptest.NewServer(handler)
	h.Cleanup(s.Close)
	h.contestants = append(h.contestants, contestant{name: name, addr: s.Listener.Addr().String()})
	return s.URL
}

// maxIdle is enough for every caller to have a connection of its own.
const maxIdle = 256

func newGateway(t testing.TB, rules string, target *url.URL) *gateway.Gateway {
	e := testcall.Must(engine.New(engine.Options{Store: memory.New(memory.Options{})}))(t)
	t.Cleanup(e.Close)
	testcall.OK(t, e.Load("bench", []byte(rules)))
	return testcall.Must(gateway.New(gateway.Options{
		Limit: testcall.Must(httplimit.New(e, httplimit.Options{}))(t), Routes: []gateway.Route{{Upstreams: []*url.URL{target}}},
		MaxIdle: maxIdle, Logger: slog.New(slog.DiscardHandler),
	}))(t)
}

// serve is the upstream: a short answer, or a long one.
func serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	if r.URL.Path == "/long" {
		_, _ = w.Write(long)
		return
	}
	_, _ = w.Write(short)
}

var (
	short = []byte(`{"id":1234567,"name":"a short answer, as most of them are","tags":["a","b","c"]}` + "\n")
	long  = []byte(strings.Repeat("0123456789abcdef", 4096))
)

// buffers spare the bare proxy the allocation that the gateway does not have either.
type buffers struct{}

var pool = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (buffers) Get() []byte  { return pool.Get().(*[32 << 10]byte)[:] }
func (buffers) Put(b []byte) { pool.Put((*[32 << 10]byte)(b)) }
