package lease

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// The suite leases of test/bench runs TestFigures with a file for the rows of its tables.
var rowsFile = flag.String("rows", "", "file for all figures of the simulation")

// The suite fleet runs TestFleet with a file for the requests, to have processes decide them, too.
var (
	fleetFile = flag.String("fleet", "", "file for the requests of TestFleet, and what they came to")
	fleetSpan = flag.Duration("span", time.Second, "how long they come")
)

var windows = []string{"fixed_window", "sliding_window", "sliding_log", "sliding_buckets"}

// on returns a trace with a demand that is so many times the limit.
func on(limit string, instances int, trip time.Duration, load float64) trace {
	l := weir.MustCompile(limit).Limit()
	return trace{limit: limit, instances: instances, trip: trip, rate: load * float64(l.N) / l.Period.Seconds(), span: max(30*time.Second, 3*l.Period), seed: 1}
}

// figure is a trace with what is expected of it.
type figure struct {
	table, what  string
	trace        trace
	total, worst float64 // least
}

// figures are all of them. Those with something expected run in every test.
func figures() (all []figure) {
	skewed := func(tr trace) trace { tr.skew = true; return tr }
	killed := func(tr trace) trace { tr.kills = true; return tr }
	add := func(table, what string, tr trace, total, worst float64) {
		all = append(all, figure{table, what, tr, total, worst})
	}
	for _, name := range append(windows, "token_bucket", "leaky_bucket") {
		limit := name + " 500/1s"
		add("scenarios", "2 instances, 1.6 × the limit", on(limit, 2, time.Millisecond, 1.6), 0.98, 0.9)
		add("scenarios", "4 instances, 1.6 × the limit", on(limit, 4, time.Millisecond, 1.6), 0.95, 0.85)
		add("scenarios", "2 instances, 9:1, another one each second", skewed(on(limit, 2, time.Millisecond, 1.6)), 0.95, 0)
		add("scenarios", "10 instances, 9:1, another one each second", skewed(on(limit, 10, time.Millisecond, 1.6)), 0.95, 0)
		add("scenarios", "4 instances, one is killed each second", killed(on(limit, 4, time.Millisecond, 1.6)), 0.5, 0)
	}
	for _, trip := range []time.Duration{time.Millisecond, 150 * time.Millisecond} {
		for _, limit := range []string{"fixed_window 30000/1m", "sliding_window 30000/1m", "sliding_log 5000/15s", "token_bucket 30000/1m"} {
			for _, load := range []float64{0.5, 0.8, 1.6, 5} {
				total, worst := 0.0, 0.0
				if load == 1.6 {
					total, worst = 0.98, 0.9
				}
				add("periods of at least 100 round trips", fmt.Sprint(load, " × the limit"), on(limit, 2, trip, load), total, worst)
			}
		}
	}
	for _, trip := range []time.Duration{time.Millisecond, 150 * time.Millisecond} {
		for _, name := range append(windows, "token_bucket") {
			for _, load := range []float64{0.5, 0.8, 1.6, 5} {
				add("a period of one second", fmt.Sprint(load, " × the limit"), on(name+" 500/1s", 2, trip, load), 0, 0)
			}
		}
	}
	for _, instances := range []int{1, 10, 100, 1000} {
		for _, rate := range []float64{1000, 10_000, 50_000} {
			add("1,000 keys, Zipf, 10 s", fmt.Sprint(bigCount(rate), " requests/s"), trace{
				limit: "sliding_window 10000/1m", instances: instances, trip: time.Millisecond, rate: rate, keys: 1000, span: 10 * time.Second, seed: 1,
			}, 0, 0)
		}
	}
	return all
}

func bigCount(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f,%03.0f", x/1000, 0.0)
	}
	return fmt.Sprint(x)
}

// In virtual time, leases allow nearly what the exact limiter does, and never more.
func TestFigures(t *testing.T) {
	var rows strings.Builder
	for _, f := range figures() {
		if *rowsFile == "" {
			if f.total == 0 {
				continue
			}
			f.trace.span /= 3
		}
		o := simulate(f.trace)
		name := fmt.Sprintf("%s, %s, %v", f.trace.limit, f.what, f.trace.trip)
		if o.over > 0 {
			t.Errorf("%s: %d units over the limit", name, o.over)
		}
		if o.ratio() < f.total || o.worst < f.worst {
			t.Errorf("%s: %.3f of what the limit allows, at least %.3f of each window", name, o.ratio(), o.worst)
		}
		worst := fmt.Sprintf("%.3f", o.worst)
		if o.worst > 1e6 || f.trace.kills {
			worst = "–"
		}
		fmt.Fprintf(&rows, "%s|%s|%s|%d|%v|%.3f|%s|%d|%.3f|%.1f %%|%v|%v|%d|%d\n", f.table, f.trace.limit, f.what, f.trace.instances, f.trace.trip,
			o.ratio(), worst, o.over, o.perCheck(), 100*o.waitedShare(), o.p50, o.p99, o.idle, o.killed)
	}
	if *rowsFile != "" {
		testkit.OK(t, os.WriteFile(*rowsFile, []byte(rows.String()), 0o644))
	}
}

// The same requests come to the same instances, whatever the algorithm.
func TestFleet(t *testing.T) {
	var rows, before strings.Builder
	for _, name := range append(windows, "token_bucket", "leaky_bucket") {
		var requests strings.Builder
		tr := on(name+" 500/1s", 4, time.Millisecond, 1.6)
		tr.span, tr.arrived = *fleetSpan, func(at time.Duration, instance int) { fmt.Fprintln(&requests, "request", int64(at), instance) }
		o := simulate(tr)
		if before.Len() == 0 {
			before.WriteString(requests.String())
		}
		if requests.String() != before.String() || int64(strings.Count(requests.String(), "\n")) != o.requests {
			t.Errorf("%s: other requests than those of the first algorithm, or not %d", name, o.requests)
		}
		fmt.Fprintln(&rows, "limit", name, o.requests, o.allowed, o.asked, o.messages)
	}
	if *fleetFile != "" {
		testkit.OK(t, os.WriteFile(*fleetFile, []byte(rows.String()+before.String()), 0o644))
	}
}

// Two runs with the same seed are the same.
func TestSimulationIsDeterministic(t *testing.T) {
	tr := on("sliding_window 500/1s", 3, 5*time.Millisecond, 1.3)
	tr.keys, tr.kills, tr.span = 20, true, 5*time.Second
	a, b := simulate(tr), simulate(tr)
	tr.seed++
	if c := simulate(tr); a != b || a == c || a.calls == 0 || a.waited == 0 || a.waited == a.requests {
		t.Errorf("%+v\n%+v\n%+v", a, b, c)
	}
}

// What is foreseen is about what the simulation does.
func TestForesee(t *testing.T) {
	for _, f := range figures() {
		tr := f.trace
		if f.table == "scenarios" || f.table == "a period of one second" && tr.trip > time.Millisecond || tr.keys > 0 || strings.HasPrefix(f.what, "5") || strings.HasPrefix(f.what, "0.8") {
			continue
		}
		tr.span = max(6*time.Second, 2*min(weir.MustCompile(tr.limit).Limit().Period, 15*time.Second))
		o, limit := simulate(tr), weir.MustCompile(tr.limit)
		got := Foresee(limit, Load{Processes: tr.instances, Rate: tr.rate, RoundTrip: tr.trip, Term: time.Second})
		calls := float64(o.calls-o.first) / (tr.span - time.Second).Seconds()
		if !got.Leased || got.Calls < calls/2 || got.Calls > calls*2 || o.idle > 2*got.Unused || got.Unused*2 > 8*o.idle {
			t.Errorf("%s, %s, %v: %.1f calls/s, foreseen %.1f; %d unused, foreseen %d", tr.limit, f.what, tr.trip, calls, got.Calls, o.idle, 2*got.Unused)
		}
	}
	tr := on("sliding_window 1000/1m", 20, time.Millisecond, 0.8)
	if got, o := Foresee(weir.MustCompile(tr.limit), Load{Processes: 20, Rate: tr.rate, RoundTrip: tr.trip, Term: time.Second}), simulate(tr); got.Leased || got.Calls != tr.rate || o.perCheck() < 0.9 {
		t.Errorf("%+v, simulated %.2f calls a check", got, o.perCheck())
	}
	for _, of := range []struct { // docs/guides/leases.md
		term  time.Duration
		calls string
		lost  int64
	}{{time.Second, "4.2", 21}, {10 * time.Second, "0.4", 201}, {time.Minute, "0.1", 1201}} {
		got := Foresee(weir.MustCompile("1000000/1h"), Load{Processes: 3, Rate: 30, RoundTrip: time.Millisecond, Term: of.term})
		if fmt.Sprintf("%.1f", got.Calls) != of.calls || got.Unused != of.lost {
			t.Errorf("leases of %v: %+v", of.term, got)
		}
	}
}
