package metrics

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
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

// bench is an engine that is measured, on a store that can be lost.
type bench struct {
	*Metrics
	engine *engine.Engine
	store  *losable
}

// losable is a store that fails for a reason, if there is one.
type losable struct {
	weir.Store
	reason atomic.Pointer[error]
}

func (l *losable) lose(reason error) { l.reason.Store(&reason) }

func (l *losable) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if reason := l.reason.Load(); reason != nil {
		return dst, *reason
	}
	return l.Store.Take(ctx, dst, ops...)
}

func newBench(t testing.TB, rules string, o Options) *bench {
	t.Helper()
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Metrics: m, store: &losable{Store: memory.New(memory.Options{})}}
	if b.engine, err = engine.New(engine.Options{Store: b.store, Observers: []engine.Observer{m}}); err != nil {
		t.Fatal(err)
	}
	b.install(t, rules, 1)
	return b
}

func (b *bench) install(t testing.TB, rules string, version int64) {
	t.Helper()
	table := tableOf(t, rules)
	b.engine.Install(table, version)
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

var alice = rule.Request{User: "alice", IP: netip.MustParseAddr("203.0.113.7"), Method: "GET", Path: "/api/x"}

func (b *bench) check(t testing.TB, req rule.Request) {
	t.Helper()
	var v engine.Verdict
	if err := b.engine.Check(t.Context(), &req, &v); err != nil {
		t.Fatal(err)
	}
}

// scrape is what Prometheus would read.
func scrape(t testing.TB, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// series are the lines of a scrape that begin with a name, without the name.
func series(t testing.TB, m *Metrics, name string) string {
	t.Helper()
	var found []string
	for line := range strings.Lines(scrape(t, m)) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == '{' || rest[0] == ' ') {
			found = append(found, strings.TrimSpace(rest))
		}
	}
	slices.Sort(found)
	return strings.Join(found, "\n")
}

// want compares the series of a name, in whatever order.
func want(t testing.TB, m *Metrics, name string, lines ...string) {
	t.Helper()
	slices.Sort(lines)
	if got := series(t, m, name); got != strings.Join(lines, "\n") {
		t.Errorf("%s:\n%s\nwant:\n%s", name, got, strings.Join(lines, "\n"))
	}
}

var someTime = time.Date(2026, 1, 1, 0, 0, 0, 500_000_000, time.UTC)
