package metrics

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

// flight is a request in flight.
func (b *bench) flight(t *testing.T) *engine.Hold {
	t.Helper()
	gate := testkit.Must(engine.NewGate(b.engine, 0, nil))(t)
	var v engine.Verdict
	var d engine.Denial
	req := alice
	if !testkit.Must(gate.Allow(t.Context(), &req, &v, &d))(t) {
		t.Fatal(d.Detail)
	}
	return gate.Serve(&req, time.Minute, &v)
}

// Requests in flight are those that have begun and not ended, in whichever stripe. Rules that do
// not limit them have no such series.
func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "rules: [{id: api, key: user, concurrency: 100}, {id: rate, key: user, limit: 1000/1h}]", Options{})
		want(t, b.Metrics, "weir_in_flight", `{rule="api"} 0`)
		want(t, b.Metrics, "weir_in_flight_seconds_count", `{rule="api"} 0`)
		var all []*engine.Hold
		for range 40 {
			all = append(all, b.flight(t))
		}
		want(t, b.Metrics, "weir_in_flight", `{rule="api"} 40`)
		for i, h := range all {
			if i == 30 {
				time.Sleep(40 * time.Millisecond)
			}
			h.End(&rule.Response{}, nil)
		}
		want(t, b.Metrics, "weir_in_flight", `{rule="api"} 0`)
		want(t, b.Metrics, "weir_in_flight_seconds_count", `{rule="api"} 40`)
		want(t, b.Metrics, "weir_in_flight_seconds_sum", `{rule="api"} 0.4`)
		got := series(t, b.Metrics, "weir_in_flight_seconds_bucket")
		for _, line := range []string{`{rule="api",le="0.025"} 30`, `{rule="api",le="0.05"} 40`, `{rule="api",le="+Inf"} 40`} {
			if !strings.Contains(got, line) {
				t.Errorf("no %s in %s", line, got)
			}
		}
	})
}

// A request that ends after its rule was removed, and came back, leaves no wrong number behind.
func TestInFlightOfRemoved(t *testing.T) {
	const rules, others = "rules: [{id: api, key: user, concurrency: 100}]", "rules: [{id: b, key: user, concurrency: 100}]"
	b := newBench(t, rules, Options{})
	first := b.flight(t)
	b.install(t, others, 2)
	want(t, b.Metrics, "weir_in_flight", `{rule="b"} 0`)
	b.install(t, rules, 3)
	second := b.flight(t)
	first.End(&rule.Response{}, nil)
	want(t, b.Metrics, "weir_in_flight", `{rule="api"} 1`)
	second.End(&rule.Response{}, nil)
	want(t, b.Metrics, "weir_in_flight", `{rule="api"} 0`)
}

// A hold is in flight from the reservation until it is settled, or has expired.
func TestInFlightOfHolds(t *testing.T) {
	now := someTime
	b := holder(t, "rules: [{id: api, key: user, concurrency: 5}]", Options{Clock: func() time.Time { return now }})
	now = time.Now() // as the store's
	settled := b.reserve(t, 1)
	b.reserve(t, 1) // which nobody settles
	want(t, b.Metrics, "weir_in_flight", `{rule="api"} 2`)
	testkit.Must(b.engine.Settle(t.Context(), settled, engine.Units(1)))(t)
	want(t, b.Metrics, "weir_in_flight", `{rule="api"} 1`)
	want(t, b.Metrics, "weir_in_flight_seconds_count", `{rule="api"} 1`)
	now = now.Add(24 * time.Hour)
	want(t, b.Metrics, "weir_in_flight", `{rule="api"} 0`)
	want(t, b.Metrics, "weir_in_flight_seconds_count", `{rule="api"} 1`)
}
