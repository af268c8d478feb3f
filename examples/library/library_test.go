package library

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/memory"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

var ok = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// allowed is how many of n requests pass.
func allowed(h http.Handler, n int, change func(*http.Request)) int {
	passed := 0
	for range n {
		r := httptest.NewRequest("GET", "/", nil)
		if change != nil {
			change(r)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code == http.StatusOK {
			passed++
		}
	}
	return passed
}

func from(ip string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = ip + ":1234" }
}

func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func user(r *http.Request) string { return r.Header.Get("User") }

// A bucket of 100 a minute gets one more in 0.6 s, so a slow machine may see a few more.
func want100(t *testing.T, passed int) {
	t.Helper()
	if passed < 100 || passed > 140 {
		t.Errorf("%d of 150 requests passed, want 100", passed)
	}
}

func TestHandlers(t *testing.T) {
	server := testredis.Start(t)
	url := "redis://" + server.Addr + "?timeout=5s"
	inRedis := func() http.Handler {
		h, err := PerUserInRedis(ok, user, url)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for name, c := range map[string]struct {
		one, same     http.Handler // same shares its limits, if there is one
		alice, nobody func(*http.Request)
		bob           func(*http.Request)
	}{
		"ip":         {one: PerIP(ok), alice: from("192.0.2.1"), bob: from("192.0.2.2")},
		"API key":    {one: PerAPIKey(ok), alice: with("X-API-Key", "a"), bob: with("X-API-Key", "b"), nobody: with("X", "")},
		"user":       {one: PerUser(ok, user), alice: with("User", "a"), bob: with("User", "b"), nobody: with("X", "")},
		"user, both": {one: inRedis(), same: inRedis(), alice: with("User", "a"), bob: with("User", "b"), nobody: with("X", "")},
	} {
		t.Run(name, func(t *testing.T) {
			passed := allowed(c.one, 60, c.alice)
			if c.same == nil {
				c.same = c.one
			}
			want100(t, passed+allowed(c.same, 90, c.alice))
			if got := allowed(c.one, 10, c.bob); got != 10 {
				t.Errorf("%d of 10 requests of somebody else passed", got)
			}
			if c.nobody != nil {
				if got := allowed(c.one, 150, c.nobody); got != 150 {
					t.Errorf("%d of 150 requests without a client were allowed", got)
				}
			}
		})
	}
}

func rules(t *testing.T, path, limit string) {
	t.Helper()
	text := "rules: [{id: api, key: ip, algorithm: sliding_log, limit: " + limit + "/1d}]"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRulesFromFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	rules(t, path, "3")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	h, err := RulesFromFile(ctx, ok, path)
	if err != nil {
		t.Fatal(err)
	}
	if got := allowed(h, 10, from("192.0.2.1")); got != 3 {
		t.Errorf("%d requests passed, want 3", got)
	}
	rules(t, path, "5")
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if got := allowed(h, 10, from("192.0.2.1")); got == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the change was not seen")
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("something was written beside the rules: %v, %v", entries, err)
	}
	if _, err := RulesFromFile(ctx, ok, path+".not"); err == nil {
		t.Error("there is no such file, and no error")
	}
}

func TestGRPC(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	rules(t, path, "3")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	server, err := GRPC(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener)
	defer server.Stop()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range 5 {
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		want := codes.OK
		if i >= 3 {
			want = codes.ResourceExhausted
		}
		if status.Code(err) != want {
			t.Errorf("call %d: %v, want %v", i+1, err, want)
		}
	}
}

func TestLimiters(t *testing.T) {
	ctx := t.Context()
	if ok, err := Keys(ctx, "alice"); !ok || err != nil {
		t.Error(ok, err)
	}
	limiter, err := KeysInRedis("redis://" + testredis.Start(t).Addr + "?timeout=5s")
	if err != nil {
		t.Fatal(err)
	}
	if err := Wait(ctx, limiter, "alice"); err != nil {
		t.Error(err)
	}
	if d, err := limiter.Take(ctx, "alice", 75); err != nil || !d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
	if n, _, err := UpTo(ctx, limiter, "alice"); err != nil || n < 5 || n >= 20 {
		t.Errorf("took %d, %v", n, err)
	}
	if ok, decisions, err := AllOrNone(ctx, memory.New(memory.Options{}), "alice"); !ok || err != nil || decisions[1].Remaining != 999 {
		t.Error(ok, decisions, err)
	}
}

// A job takes no more lines than this, without the handling of errors.
func TestLines(t *testing.T) {
	most := map[string]int{
		"PerIP": 1, "PerAPIKey": 1, "PerUser": 1, "PerUserInRedis": 2, "RulesFromFile": 3, "GRPC": 3,
		"Keys": 2, "KeysInRedis": 2, "Wait": 1, "UpTo": 1, "AllOrNone": 1,
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), "library.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	counted := 0
	for _, d := range parsed.Decls {
		f, isFunc := d.(*ast.FuncDecl)
		if !isFunc {
			continue
		}
		lines := 0
		for _, s := range f.Body.List {
			if _, isIf := s.(*ast.IfStmt); !isIf {
				lines++
			}
		}
		counted++
		if lines > most[f.Name.Name] {
			t.Errorf("%s takes %d lines, at most %d are meant", f.Name.Name, lines, most[f.Name.Name])
		}
	}
	if counted != len(most) {
		t.Errorf("there are %d jobs, want %d", counted, len(most))
	}
}
