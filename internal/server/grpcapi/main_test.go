package grpcapi

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	countermemory "github.com/weirhq/weir/counter/memory"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/repo"
	filerepo "github.com/weirhq/weir/internal/rules/repo/file"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
	"github.com/weirhq/weir/store/memory"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

var begin = time.Date(2026, 1, 1, 0, 0, 0, 500_000_000, time.UTC)

const testRules = `# Rules of the tests.
rules:
  # logins
  - {id: login, match: {method: POST, path: /api/login}, key: ip, algorithm: sliding_log, limit: 2/1m, deny: {code: 10007, message: too many logins}}
  - id: api
    match: {path: /api/**}
    key: user
    limit: 100/1m # refills
    tiers: {pro: 1000/1m, enterprise: unlimited}
  - {id: tenant, key: "header:X-Tenant", limit: 50/1m, mode: shadow}
  - {id: session, key: [cookie:lang, query:page], limit: 3/1m}
  - {id: action, match: {attributes: {action: post}}, key: attr:action, limits: [3/1s, 5/1m], algorithm: fixed_window}
  - {id: secret, match: {path: /secret}, key: api_key, limit: 2/1h}
  - {id: safe, match: {path: /safe}, key: global, limit: 10/1s, on_failure: closed}
  - {id: queue, match: {path: /queue}, key: global, algorithm: leaky_bucket, limit: 10/1s, shape: true}
  - {id: spend, match: {path: /money}, key: user, limit: 0.0001usd/day}
  - {id: things, match: {path: [/things, "/things/{id}"]}, key: [attr:owner, method, route], limit: 5/1h}
exempt: {user: [healthcheck]}
block: {ip: [203.0.113.66]}
`

// clock stands still until it is moved.
type clock struct{ now atomic.Int64 } // microseconds

func (c *clock) micros() weir.Micros   { return weir.Micros(c.now.Load()) }
func (c *clock) time() time.Time       { return time.UnixMicro(c.now.Load()) }
func (c *clock) move(by time.Duration) { c.now.Add(by.Microseconds()) }

// losable is a store that can be lost.
type losable struct {
	weir.HoldStore
	lost atomic.Bool
}

var errLost = errors.New("the store is unavailable")

func (l *losable) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if l.lost.Load() {
		return dst, errLost
	}
	return l.HoldStore.Take(ctx, dst, ops...)
}

func (l *losable) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if l.lost.Load() {
		return dst, errLost
	}
	return l.HoldStore.Peek(ctx, dst, ops...)
}

func (l *losable) Reset(ctx context.Context, ops ...weir.Op) error {
	if l.lost.Load() {
		return errLost
	}
	return l.HoldStore.Reset(ctx, ops...)
}

func (l *losable) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	if l.lost.Load() {
		return dst, errLost
	}
	return l.HoldStore.Reserve(ctx, dst, r, ops...)
}

func (l *losable) Settle(ctx context.Context, s weir.Settlement) (weir.Settled, error) {
	if l.lost.Load() {
		return weir.Settled{}, errLost
	}
	return l.HoldStore.Settle(ctx, s)
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

// stand is the API over a real engine, a real document in a file and a store that can be
// lost, behind a real gRPC server.
type stand struct {
	*Server
	clock
	engine *engine.Engine
	rules  repo.Repository
	store  *losable
	log    record
	grpc   *grpc.Server
	conn   *grpc.ClientConn

	limiter  pb.LimiterClient
	admin    pb.RulesClient
	keys     pb.KeysClient
	counters pb.CountersClient
	health   healthpb.HealthClient

	directory pb.ClientsClient
}

// newEngine is an engine on a store of its own.
func newEngine(t testing.TB, c *clock) (*engine.Engine, *losable) {
	t.Helper()
	store := &losable{HoldStore: memory.New(memory.Options{Clock: c.micros})}
	e, err := engine.New(engine.Options{Store: store, Clock: c.micros})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, store
}

// installer puts versions into force.
func installer(e *engine.Engine) func(repo.Version) error {
	return func(v repo.Version) error {
		set, err := rule.Usable("", v.Source)
		if err != nil {
			return err
		}
		table, err := rule.Compile(set, rule.Options{})
		if err != nil {
			return err
		}
		e.Install(table, v.Number)
		return nil
	}
}

// newStand starts the API on TCP. What the options leave out is filled in.
func newStand(t testing.TB, o Options, more ...grpc.ServerOption) *stand {
	t.Helper()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return standOn(t, o, listen, listen.Addr().String(), more)
}

// newPipe starts it on a pipe in this process.
func newPipe(t testing.TB, o Options) *stand {
	t.Helper()
	listen := bufconn.Listen(1 << 20)
	dial := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listen.DialContext(ctx) })
	return standOn(t, o, listen, "passthrough:///pipe", nil, dial)
}

func standOn(t testing.TB, o Options, listen net.Listener, target string, more []grpc.ServerOption, dial ...grpc.DialOption) *stand {
	t.Helper()
	s := new(stand)
	s.now.Store(begin.UnixMicro())
	s.engine, s.store = newEngine(t, &s.clock)
	if o.Rules == nil {
		o.Rules = openRules(t, testRules)
	}
	s.rules = o.Rules
	current, err := s.rules.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	install := installer(s.engine)
	if err := install(current); err != nil {
		t.Fatal(err)
	}
	o.Engine = s.engine
	if o.Counters == nil {
		o.Counters = countermemory.New(countermemory.Options{Clock: s.micros})
	}
	if o.Clients == nil {
		o.Clients = registry(t)
	}
	if o.Apply == nil {
		o.Apply = install
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(&s.log, nil))
	}
	if s.Server, err = New(o); err != nil {
		t.Fatal(err)
	}
	s.poll = 10 * time.Millisecond
	s.grpc = grpc.NewServer(append(s.ServerOptions(), more...)...)
	s.Register(s.grpc)
	served := make(chan error, 1)
	go func() { served <- s.grpc.Serve(listen) }()
	s.conn, err = grpc.NewClient(target, append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.conn.Close()
		s.grpc.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	s.limiter, s.admin, s.keys = pb.NewLimiterClient(s.conn), pb.NewRulesClient(s.conn), pb.NewKeysClient(s.conn)
	s.directory = pb.NewClientsClient(s.conn)
	s.counters, s.health = pb.NewCountersClient(s.conn), healthpb.NewHealthClient(s.conn)
	return s
}

// openRules puts a document into a file, as version 2.
func openRules(t testing.TB, source string) *filerepo.Repository {
	t.Helper()
	repository, err := filerepo.Open(filepath.Join(t.TempDir(), "rules.yaml"), filerepo.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	first, err := repository.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = repository.Write(t.Context(), repo.Draft{Base: first.Number, Author: "test", Source: []byte(source)}); err != nil {
		t.Fatal(err)
	}
	return repository
}

const (
	adminToken  = "an-admin-token-of-the-tests"
	readerToken = "a-reader-token-of-the-tests"
	userToken   = "a-user-token-of-the-tests"
)

// tokens is a list with alice, who may do everything, bob, who may look, and carol, who may
// also count.
func tokens(t testing.TB) func() *trust.List {
	t.Helper()
	list, err := trust.ParseTokens([]byte("alice admin " + adminToken + "\nbob read " + readerToken + "\ncarol use " + userToken + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return func() *trust.List { return list }
}

func as(ctx context.Context, bearer string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+bearer)
}

// problem is what an error says in its details.
type problem struct {
	info   *errdetails.ErrorInfo
	bad    *errdetails.BadRequest
	retry  *errdetails.RetryInfo
	id     string
	fields []string
	text   string
}

func read(err error) problem {
	st := status.Convert(err)
	p := problem{text: st.Message()}
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			p.info = d
		case *errdetails.BadRequest:
			p.bad = d
			for _, v := range d.FieldViolations {
				p.fields = append(p.fields, v.Field)
			}
		case *errdetails.RetryInfo:
			p.retry = d
		case *errdetails.RequestInfo:
			p.id = d.RequestId
		}
	}
	return p
}

// want fails unless the error is of this kind, and says these words.
func want(t testing.TB, err error, k *fault.Kind, words ...string) problem {
	t.Helper()
	p := read(err)
	if status.Code(err) != k.Code || p.info == nil || p.info.Reason != k.Reason || p.info.Domain != "weir" {
		t.Fatalf("the error is %v with %v, want %s %s", err, p.info, k.Code, k.Reason)
	}
	for _, word := range words {
		if !strings.Contains(p.text, word) {
			t.Errorf("%q does not say %q", p.text, word)
		}
	}
	if !strings.HasSuffix(p.text, ".") && !strings.HasSuffix(p.text, "…") {
		t.Errorf("%q is no sentence", p.text)
	}
	return p
}

// about fails unless the error names just this field.
func (p problem) about(t testing.TB, field string) {
	t.Helper()
	if !slices.Equal(p.fields, []string{field}) {
		t.Errorf("the fields are %v, want %s", p.fields, field)
	}
}
