package client

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/server/grpcapi"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
	"github.com/weirhq/weir/store/memory"
	"google.golang.org/grpc"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

const testRules = `
rules:
  - {id: login, match: {path: /login}, key: ip, algorithm: sliding_log, limit: 2/1h, deny: {code: 10007, message: too many logins}}
  - {id: api, match: {path: /api/**}, key: user, algorithm: sliding_log, limit: 1000/1h}
  - {id: queue, match: {path: /queue}, key: global, algorithm: leaky_bucket, limit: 1/1h, burst: 10, shape: true}
  - {id: tenant, key: "header:X-Tenant", algorithm: sliding_log, limit: 5/1h, mode: shadow}
exempt: {user: [healthcheck]}
block: {ip: [203.0.113.66]}
`

// nowhere is a repository for services without management.
type nowhere struct{ repo.Repository }

// newEngine is an engine with these rules.
func newEngine(t testing.TB, source string) *engine.Engine {
	t.Helper()
	set, err := rule.Usable("", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	e.Install(table, 1)
	return e
}

// service is a real one, that can be killed and started again at the same address.
type service struct {
	t       testing.TB
	address string
	engine  *engine.Engine
	options []grpc.ServerOption
	limiter pb.LimiterServer // instead of ours, if it is there

	register func(*grpc.Server) // more services; default none
	counters counter.Store
	tokens   *trust.List
	checks   *manage.Checks

	server *grpc.Server
	served chan error
}

func startService(t testing.TB, s *service) *service {
	t.Helper()
	s.t, s.address = t, "127.0.0.1:0"
	if s.engine == nil {
		s.engine = newEngine(t, testRules)
	}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *service) start() {
	s.t.Helper()
	listen, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = listen.Addr().String()
	api, err := grpcapi.New(grpcapi.Options{Service: manage.Service{
		Engine: s.engine, Rules: nowhere{}, Logger: slog.New(slog.DiscardHandler),
		Counters: s.counters, Tokens: func() *trust.List { return s.tokens }, Checks: s.checks,
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.server, s.served = grpc.NewServer(append(api.ServerOptions(), s.options...)...), make(chan error, 1)
	if s.limiter == nil {
		api.Register(s.server)
	} else {
		pb.RegisterLimiterServer(s.server, s.limiter)
	}
	if s.register != nil {
		s.register(s.server)
	}
	go func() { s.served <- s.server.Serve(listen) }()
}

// kill ends it as a crash would: no call is answered any more.
func (s *service) kill() {
	if s.server == nil {
		return
	}
	s.server.Stop()
	if err := <-s.served; err != nil {
		s.t.Error(err)
	}
	s.server = nil
}

// record is a log that several goroutines write.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// connect makes a client that is patient, unless told otherwise: the machine may be busy.
func connect(t testing.TB, s *service, o Options) *Client {
	t.Helper()
	if o.Address == "" {
		o.Address = s.address
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// until asks again and again, until the answer is as wanted.
func until(t testing.TB, c *Client, r *Request, done func(*Verdict) bool) *Verdict {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		v, err := c.Check(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		if done(v) {
			return v
		}
		<-tick.C
	}
}
