package httplimit

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// begin is where the clock of these tests stands, half a second after a whole one.
var begin = time.Date(2026, 1, 1, 0, 0, 0, 500_000_000, time.UTC)

// bench is a middleware around a handler, on a clock that stands and a store that can
// be lost.
type bench struct {
	*Middleware
	http.Handler
	store  *losable
	served atomic.Int64
}

// losable is a store that can be lost.
type losable struct {
	weir.Store
	lost atomic.Bool
}

func (l *losable) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if l.lost.Load() {
		return dst, errors.New("the store is unavailable")
	}
	return l.Store.Take(ctx, dst, ops...)
}

// newBench has the time stand still at begin; newLiveBench has it go on.
func newBench(t testing.TB, rules string, o Options) *bench {
	t.Helper()
	return benchOn(t, rules, o, func() weir.Micros { return weir.MicrosOf(begin) })
}

func newLiveBench(t testing.TB, rules string, o Options) *bench {
	t.Helper()
	return benchOn(t, rules, o, nil)
}

func benchOn(t testing.TB, rules string, o Options, clock func() weir.Micros) *bench {
	t.Helper()
	b := &bench{store: &losable{Store: memory.New(memory.Options{Clock: clock})}}
	e, err := engine.New(engine.Options{Store: b.store, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	e.Install(tableOf(t, rules), 1)
	if b.Middleware, err = New(e, o); err != nil {
		t.Fatal(err)
	}
	b.Handler = b.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.served.Add(1) }))
	return b
}

func tableOf(t testing.TB, rules string) *rule.Table {
	t.Helper()
	set, problems := rule.Parse("test.yaml", []byte(rules))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// from makes a request of a client.
func from(remote, method, target string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = remote
	return r
}

// ask sends a request of one client and returns the answer.
func (b *bench) ask() *httptest.ResponseRecorder {
	return b.send(from("203.0.113.7:1234", "GET", "/"))
}

func (b *bench) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}
