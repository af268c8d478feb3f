package envoy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// The tables of services with leases, of some that do nothing: all are asked, and half of their requests say that they waited.
func TestLeasedTables(t *testing.T) {
	var asked atomic.Int64
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "weir_lease_checks_total{how=\"asked\"} %d\nweir_lease_checks_total{how=\"local\"} 7\n", asked.Add(1)-1)
	}))
	defer metrics.Close()
	f := &fleet{
		field:         field{Run: bench.Test(t), redis: testredis.Start(t), options: options{values: 10, inFlight: []int{2}, rounds: 3, round: 10 * time.Millisecond}},
		leasedOptions: leasedOptions{demands: []float64{0.4}, far: 10 * time.Millisecond, checks: 100},
	}
	address := listen(t, nothing{})
	for _, name := range []string{
		weirMemory, weirRedis, weirLeased, weirLonger, at(weirLeased, nearTrip, 0), at(weirLeased, nearTrip, 1), at(weirRedis, nearTrip, 0), at(weirLeased, farTrip, 0), at(weirRedis, farTrip, 0),
	} {
		f.add(name, address).metrics = strings.TrimPrefix(metrics.URL, "http://")
	}
	w := f.File("leased.txt")
	o := fleetOptions{rates: []float64{400}, instances: []int{1, 2}, cell: 20 * time.Millisecond}
	s := &simulated{instances: 2, due: []time.Duration{0, 1000, 2000}, to: []int{1, 0, 1}, outcomes: []outcome{{"token_bucket", 3, 2, 1, 4}}}
	for i, measure := range []func(context.Context, *bench.Table){
		f.measureClosed, f.measureOpen,
		func(ctx context.Context, t *bench.Table) { f.measureGrid(ctx, o, t) },
		func(ctx context.Context, t *bench.Table) { f.compare(ctx, s, t) },
	} {
		table := bench.NewTable([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}[:[]int{7, 8, 5, 9}[i]]...)
		measure(t.Context(), table)
		w.WriteString(table.String())
	}
	for _, want := range []string{"| 2 in flight ", "| weir, leases |", "| 1ms ", "| 150ms ", "| 400 ", "100.0 |", "| token_bucket |   3 | 1.000 | 1.500 |"} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("%q is missing in\n%s", want, w)
		}
	}
	if rows := strings.Count(w.String(), "\n"); rows != 4*2+4+6+2+1 {
		t.Errorf("%d lines:\n%s", rows, w)
	}
	checks := f.checkEngines(memory.New(memory.Options{}))
	if x := checks.Ratio(1, 0, bench.Round.CallerNanos); len(checks.Names) != 2 || x <= 0 {
		t.Errorf("%+v", checks)
	}
}

// Only what has asked the store counts, of each service.
func TestAsked(t *testing.T) {
	text := ""
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }))
	defer metrics.Close()
	f := &fleet{field: field{Run: bench.Test(t), contestants: map[string]*contestant{"a": {metrics: strings.TrimPrefix(metrics.URL, "http://")}}}}
	for said, want := range map[string]float64{
		"": 0, "weir_lease_checks_total{how=\"local\"} 3\n": 0, "weir_lease_checks_total{how=\"local\"} 3\nweir_lease_checks_total{how=\"asked\"} 1200\n": 1200,
	} {
		if text = said; f.asked("a") != want {
			t.Errorf("%q: %v", said, f.asked("a"))
		}
	}
}

// Calls are those of functions, whatever else asks Redis meanwhile.
func TestCallsOfTheStore(t *testing.T) {
	server := bench.NewServer(t, testredis.Start(t).Addr)
	server.Do("FUNCTION", "LOAD", "#!lua name=counted\nredis.register_function('counted', function() return 1 end)")
	calls := server.Measure(func() {
		for range 3 {
			server.Do("FCALL", "counted", "0")
		}
		server.Do("EVAL", "return 1", "0")
	})
	if calls.Functions != 3 || calls.Count != 4 {
		t.Errorf("%+v", calls)
	}
}

// What the simulation says is read in full, or is an error.
func TestSimulated(t *testing.T) {
	s, err := readSimulated([]byte("limit token_bucket 2 1 7 8\nrequest 0 0\nrequest 1500 3\n"))
	if err != nil || s.instances != 4 || !slices.Equal(s.due, []time.Duration{0, 1500}) || !slices.Equal(s.to, []int{0, 3}) || s.outcomes[0] != (outcome{"token_bucket", 2, 1, 7, 8}) {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := readSimulated([]byte("request 1\n")); err == nil {
		t.Error("half a request is read")
	}
}
