package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/repo"
	filerepo "github.com/weirhq/weir/internal/rules/repo/file"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
	"github.com/weirhq/weir/store/memory"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// begin is where the clock of these tests stands, half a second after a whole one.
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
  - {id: safe, match: {path: /safe}, key: global, limit: 10/1s, on_failure: closed}
  - {id: queue, match: {path: /queue}, key: global, algorithm: leaky_bucket, limit: 10/1s, shape: true}
exempt: {user: [healthcheck]}
block: {ip: [203.0.113.66]}
`

// stand is an API over a real engine, a real document in a file and a store that can
// be lost, on a clock that stands still until it is moved.
type stand struct {
	*Handler
	t      testing.TB
	engine *engine.Engine
	rules  repo.Repository
	store  *losable
	log    *bytes.Buffer
	now    atomic.Int64 // microseconds
	server *httptest.Server

	deadline time.Time // of calls without a server, if there is one
	drawn    string    // the id that the last example was answered with
	held     string    // and the hold
}

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

// newStand starts the API with the rules above. What the options leave out is filled
// in.
func newStand(t testing.TB, o Options) *stand {
	t.Helper()
	s := &stand{t: t, log: new(bytes.Buffer)}
	s.now.Store(begin.UnixMicro())
	clock := func() weir.Micros { return weir.Micros(s.now.Load()) }
	s.store = &losable{HoldStore: memory.New(memory.Options{Clock: clock})}
	var err error
	if s.engine = o.Engine; s.engine == nil {
		judging := engine.Options{Store: s.store, Clock: clock}
		if o.Stats != nil {
			judging.Observers = []engine.Observer{steady{o.Stats}}
		}
		if s.engine, err = engine.New(judging); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.engine.Close)
	}
	if o.Rules == nil {
		o.Rules = openRules(t, testRules)
	}
	s.rules = o.Rules
	current, err := s.rules.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	install := func(v repo.Version) error {
		set, err := rule.Usable("", v.Source)
		if err != nil {
			return err
		}
		table, err := rule.Compile(set, rule.Options{})
		if err != nil {
			return err
		}
		s.engine.Install(table, v.Number)
		return nil
	}
	if err := install(current); err != nil {
		t.Fatal(err)
	}
	o.Engine = s.engine
	if o.Apply == nil {
		o.Apply = install
	}
	if o.Clock == nil {
		o.Clock = func() time.Time { return time.UnixMicro(s.now.Load()) }
	}
	switch o.Overrides {
	case nil:
		o.Overrides = overridesOf(t, s, o.Clock)
	case none:
		o.Overrides = nil
	}
	switch o.Clients {
	case nil:
		o.Clients = registry(t)
	case noClients:
		o.Clients = nil
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if s.Handler, err = New(o); err != nil {
		t.Fatal(err)
	}
	return s
}

// openRules puts a document into a file.
func openRules(t testing.TB, source string) *filerepo.Repository {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	repository, err := filerepo.Open(path, filerepo.Options{Create: true})
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

// serve starts a server, so that calls go over the wire.
func (s *stand) serve() *stand {
	s.server = httptest.NewServer(s)
	s.t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.server.Close()
	})
	return s
}

// reply is an answer.
type reply struct {
	*http.Response
	body []byte
}

// call sends "METHOD /path" with a body and headers, each "Name: value". Without a
// server the handler is called directly, from the loopback.
func (s *stand) call(what, body string, headers ...string) *reply {
	s.t.Helper()
	method, target, _ := strings.Cut(what, " ")
	if s.server == nil {
		if s.deadline.IsZero() {
			return direct(s, method, target, body, headers...)
		}
		return direct(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithDeadline(r.Context(), s.deadline)
			defer cancel()
			s.ServeHTTP(w, r.WithContext(ctx))
		}), method, target, body, headers...)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+target, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	setHeaders(r, headers)
	answer, err := s.server.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return &reply{answer, text}
}

// direct calls a handler from the loopback.
func direct(h http.Handler, method, target, body string, headers ...string) *reply {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host, r.RemoteAddr = "127.0.0.1:8080", "127.0.0.1:50000"
	setHeaders(r, headers)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return &reply{w.Result(), w.Body.Bytes()}
}

func setHeaders(r *http.Request, headers []string) {
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch name {
		case "Host":
			r.Host = value
		case "From":
			r.RemoteAddr = value
		default:
			r.Header.Add(name, value)
		}
	}
}

// want fails unless the answer has this status, and reads its body.
func (r *reply) want(t testing.TB, status int, into any) *reply {
	t.Helper()
	if r.StatusCode != status {
		t.Fatalf("the status is %d, want %d; the body is %s", r.StatusCode, status, r.body)
	}
	if into != nil {
		if err := json.Unmarshal(r.body, into); err != nil {
			t.Fatalf("%v in %s", err, r.body)
		}
	}
	return r
}

// wantProblem fails unless the answer is this kind of problem.
func (r *reply) wantProblem(t testing.TB, k *fault.Kind, words ...string) *Problem {
	t.Helper()
	var p Problem
	r.want(t, k.Status, &p)
	if p.Type != problemPrefix+k.Name || p.Status != k.Status || p.Title != k.Title || r.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("it is %+v, want %s", p, k.Name)
	}
	if p.RequestID == "" || p.RequestID != r.Header.Get("X-Request-Id") {
		t.Errorf("the request id is %q in the body and %q in the header", p.RequestID, r.Header.Get("X-Request-Id"))
	}
	if r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("a cache may keep the problem: %v", r.Header)
	}
	for _, word := range words {
		if !strings.Contains(p.Detail, word) {
			t.Errorf("%q does not say %q", p.Detail, word)
		}
	}
	return &p
}

const (
	adminToken  = "an-admin-token-of-the-tests"
	readerToken = "a-reader-token-of-the-tests"
)

// tokens is a list with alice, who may do everything, and bob, who may look.
func tokens(t testing.TB) func() *trust.List {
	t.Helper()
	list, err := trust.ParseTokens([]byte("alice admin " + adminToken + "\nbob read " + readerToken + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return func() *trust.List { return list }
}

func as(bearer string) string { return "Authorization: Bearer " + bearer }
