package deploy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/metrics"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/expression"
	_ "github.com/weirhq/weir/rule/rulefile"
	"github.com/weirhq/weir/store/lease"
	"github.com/weirhq/weir/store/memory"
)

// exposed is what weir can say: names of series, their labels, and the values of these.
type exposed map[string]map[string]map[string]bool

// free are labels whose values are not weir's to say.
var free = map[string]bool{"job": true, "instance": true, "le": true, "route": true, "upstream": true, "rule": true, "queue": true, "version": true}

// everything is what a registry exposes to which everything has happened.
func everything(t *testing.T) exposed {
	t.Helper()
	m, err := metrics.New(metrics.Options{
		Keys: func() memory.Stats { return memory.Stats{} },

		StoreFunctions: func() bool { return true },
		Leases:         func() lease.Stats { return lease.Stats{Names: []lease.NameStats{{}}} },

		Queues:     func() []metrics.Queue { return []metrics.Queue{{Name: "mail"}} },
		Counters:   func() metrics.Counters { return metrics.Counters{} },
		Statistics: func() metrics.Statistics { return metrics.Statistics{} },
		EnvoyXDS:   func() metrics.EnvoyXDS { return metrics.EnvoyXDS{Version: "1"} },
		Adaptive:   func() []engine.UpstreamLimit { return []engine.UpstreamLimit{{Upstream: "http://a"}} },
		Tokens:     func() map[string]int64 { return map[string]int64{"valid": 1, "missing": 0, "expired": 0} },
		RESP: func() metrics.RESP {
			return metrics.RESP{Commands: []metrics.Commands{{Command: "ping"}, {Command: "ping", Failed: true}}}
		},
		Files: func() []metrics.File { return []metrics.File{{Name: "queues.snapshot", Saved: time.Unix(1, 0)}} },
	})
	if err != nil {
		t.Fatal(err)
	}
	play(t, m)
	m.ObserveProtection(func() engine.Protection { return engine.Protection{} })
	m.ObserveReserved(func() []engine.Reserved {
		return []engine.Reserved{{Rule: "open"}, {Rule: "open", Currency: "usd"}}
	})
	m.ObserveSpend(engine.Spend{Rule: "open", Currency: "usd", Units: 1})
	m.ObserveHold(engine.HoldEvent{Kind: engine.SettledHold, Parts: []engine.SettledPart{{Rule: "open", Reserved: 2, Used: 1}}})
	for _, status := range []int{100, 200, 300, 400, 500} {
		m.ObserveHTTP("/", status, time.Second)
		m.ObserveUpstream("/", "shop", status, nil, time.Second)
	}
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, errors.New("EOF")} {
		m.ObserveUpstream("/", "shop", 0, err, time.Second)
	}
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := exposed{"up": {}}
	for _, f := range families {
		names := []string{f.GetName()}
		if f.GetType() == dto.MetricType_HISTOGRAM {
			names = []string{f.GetName() + "_bucket", f.GetName() + "_sum", f.GetName() + "_count"}
		}
		for _, name := range names {
			labels := map[string]map[string]bool{}
			for _, metric := range f.GetMetric() {
				for _, l := range metric.GetLabel() {
					if labels[l.GetName()] == nil {
						labels[l.GetName()] = map[string]bool{}
					}
					labels[l.GetName()][l.GetValue()] = true
				}
			}
			all[name] = labels
		}
	}
	return all
}

// losable is a store that can be lost.
type losable struct {
	weir.Store
	lost atomic.Bool
}

func (l *losable) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if l.lost.Load() {
		return dst, weir.ErrUnavailable
	}
	return l.Store.Take(ctx, dst, ops...)
}

// play has an engine decide in each way that there is.
func play(t *testing.T, m *metrics.Metrics) {
	t.Helper()
	store := &losable{Store: memory.New(memory.Options{})}
	e, err := engine.New(engine.Options{Store: store, Observers: []engine.Observer{m}})
	if err != nil {
		t.Fatal(err)
	}
	set, problems := rule.Parse("test.yaml", []byte(`
levels: [team]
rules:
  - {id: budget, key: levels, levels: {team: 9/1h}}
  - {id: open, key: user, algorithm: sliding_log, limit: 2/1d}
  - {id: places, match: {path: /slow}, key: user, concurrency: 5}
  - {id: closed, key: ip, limit: 5/1h, on_failure: closed}
  - {id: trial, key: user, algorithm: sliding_log, limit: 1/1d, mode: shadow, warn: 80%, match: {when: "true"}}
`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.Install(table, 1)
	m.InstallSource([]byte("rules: []"))
	var v engine.Verdict
	for i := range 6 {
		req := rule.Request{User: "alice"}
		if store.lost.Store(i >= 4); i == 5 {
			req.IP = netip.MustParseAddr("203.0.113.7") // so that the closed rule applies
		}
		if err := e.Check(t.Context(), &req, &v); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	named    = regexp.MustCompile(`\b(?:weir|go|process)[_:][a-z0-9_:]*`)
)

// wrong returns what a query uses and weir does not expose.
func (all exposed) wrong(query string, records map[string]bool) (wrong []string) {
	for _, name := range named.FindAllString(query, -1) {
		if all[name] == nil && !records[name] {
			wrong = append(wrong, "there is no "+name)
		}
	}
	for _, s := range selector.FindAllStringSubmatch(query, -1) {
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			values := all[s[1]][m[1]]
			if free[m[1]] {
				continue
			}
			if values == nil {
				wrong = append(wrong, fmt.Sprintf("%s has no label %s", s[1], m[1]))
				continue
			}
			for value := range strings.SplitSeq(m[3], "|") {
				if !values[value] {
					wrong = append(wrong, fmt.Sprintf("the %s of %s is never %q", m[1], s[1], value))
				}
			}
		}
	}
	return wrong
}

// The check of the queries finds what is wrong with one.
func TestWrong(t *testing.T) {
	all := everything(t)
	for query, want := range map[string]int{
		`sum(rate(weir_requests_total{outcome="denied"}[5m]))`:                    0,
		`sum(rate(weir_decisions_total{outcome=~"degraded_allowed|denied"}[5m]))`: 0,
		`weir_decisions_total{outcome=~"degraded_denied|shadow_denied"}`:          0,
		`sum(rate(weir_request_total[5m]))`:                                       1,
		`weir_requests_total{outcome="slowed"}`:                                   1,
		`weir_requests_total{result="denied"}`:                                    1,
		`weir_upstream_seconds_count{class=~"5xx|failed"} / weir:nothing:x`:       2,
	} {
		if wrong := all.wrong(query, nil); len(wrong) != want {
			t.Errorf("%s: %q, want %d", query, wrong, want)
		}
	}
}

// docs/reference/metrics.md has every metric of ours, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := everything(t)
	for name := range all {
		family := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "weir_") && !strings.Contains(string(doc), "\n### `"+family) {
			t.Errorf("docs/reference/metrics.md has no heading for %s", family)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^### `(weir_[a-z_]+)").FindAllStringSubmatch(string(doc), -1) {
		if all[m[1]] == nil && all[m[1]+"_count"] == nil {
			t.Errorf("docs/reference/metrics.md describes %s, which does not exist", m[1])
		}
	}
}
