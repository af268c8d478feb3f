package stats

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/store/memory"
)

// verdictOf is a verdict about the given number of rules, of a hundred.
func verdictOf(tb testing.TB, rules int) (*Recorder, *engine.Verdict) {
	tb.Helper()
	text := "rules:"
	for i := range 100 {
		text += fmt.Sprintf("\n  - {id: r%02d, key: user, limit: %d/1h, tiers: {pro: %d/1h}}", i, 1000+i, 2000+i)
	}
	table := tableOf(tb, text)
	a, err := archive.NewMemory(archive.Keep{})
	if err != nil {
		tb.Fatal(err)
	}
	r := newRecorder(tb, Options{Archive: a})
	r.Install(table, 1)
	v := &engine.Verdict{Allowed: true}
	for _, c := range table.Rules()[:rules] {
		l := c.Limits("", "pro")[0]
		v.Results = append(v.Results, engine.Result{
			Rule: c, Compiled: l, Asked: true, Key: "user:somebody@example.com",
			Decision: weir.Decision{Allowed: true, Limit: l.Capacity(), Remaining: 17},
		})
	}
	return r, v
}

var pro = rule.Request{User: "somebody@example.com", Tier: "pro"}

// Observing allocates nothing, neither when all is well nor when the store is unavailable.
func TestAllocations(t *testing.T) {
	for _, rules := range []int{0, 1, 5} {
		r, v := verdictOf(t, rules)
		for _, degraded := range []error{nil, errLost} {
			v.Degraded = degraded
			if n := testing.AllocsPerRun(200, func() { r.Observe(&pro, v, time.Microsecond) }); n > 0 && !testkit.Race {
				t.Errorf("%d rules, degraded %v: %v allocations", rules, degraded, n)
			}
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, rules := range []int{0, 1, 5} {
		b.Run(fmt.Sprintf("rules=%d", rules), func(b *testing.B) {
			r, v := verdictOf(b, rules)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				r.Observe(&pro, v, 700*time.Nanosecond)
				if n++; n%250_000 == 0 { // a million requests a second
					r.tick(time.Unix(int64(n/1_000_000), 0))
				}
			}
		})
	}
}

// BenchmarkObserveDenied is a client that is denied all the time, so that samples are taken
// of its denials, too.
func BenchmarkObserveDenied(b *testing.B) {
	r, v := verdictOf(b, 1)
	v.Allowed, v.Results[0].Allowed = false, false
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		r.Observe(&pro, v, 700*time.Nanosecond)
		if n++; n%250_000 == 0 { // a million requests a second
			r.tick(time.Unix(int64(n/1_000_000), 0))
		}
	}
}

func BenchmarkObserveParallel(b *testing.B) {
	r, shared := verdictOf(b, 1)
	b.RunParallel(func(p *testing.PB) {
		v := new(engine.Verdict)
		*v = *shared
		for p.Next() {
			r.Observe(&pro, v, 700*time.Nanosecond)
		}
	})
}

// BenchmarkCheck is the engine with and without a recorder, in turns, so that a noisy
// machine is as noisy for both. "engine" has no observer. "clock" has an observer that
// does nothing, and shows what measuring the duration costs. "recorder" shows what a
// recorder costs in addition. All numbers are medians.
func BenchmarkCheck(b *testing.B) {
	table := tableOf(b, "rules: [{id: api, key: user, limit: 1000/1s}]")
	a, err := archive.NewMemory(archive.Keep{})
	if err != nil {
		b.Fatal(err)
	}
	r := newRecorder(b, Options{Archive: a})
	r.Install(table, 1)
	var engines []*engine.Engine
	for _, o := range [][]engine.Observer{nil, {nobody{}}, {r}} {
		e, err := engine.New(engine.Options{Store: memory.New(memory.Options{}), Observers: o})
		if err != nil {
			b.Fatal(err)
		}
		e.Install(table, 1)
		engines = append(engines, e)
	}
	const checks = 1000
	took := make([][]float64, len(engines))
	var v engine.Verdict
	round := 0
	for b.Loop() {
		for i := range engines {
			e := engines[(i+round)%len(engines)] // each is first as often
			start := time.Now()
			for range checks {
				if err := e.Check(b.Context(), &alice, &v); err != nil {
					b.Fatal(err)
				}
			}
			n := (i + round) % len(engines)
			took[n] = append(took[n], float64(time.Since(start))/checks)
		}
		if round++; round%250 == 0 { // a million requests a second
			r.tick(time.Unix(int64(round/1000), 0))
		}
	}
	median := func(of func(round int) float64) float64 {
		all := make([]float64, round)
		for i := range all {
			all[i] = of(i)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(func(i int) float64 { return took[0][i] }), "engine-ns")
	b.ReportMetric(median(func(i int) float64 { return took[1][i] - took[0][i] }), "clock-ns")
	b.ReportMetric(median(func(i int) float64 { return took[2][i] - took[1][i] }), "recorder-ns")
}

type nobody struct{}

func (nobody) Observe(*rule.Request, *engine.Verdict, time.Duration) {}

// What it costs to count a request in flight, from its place to its end.
func BenchmarkPlaces(b *testing.B) {
	d := newDesk(b, inFlightRules)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			c := d.Places("api")
			c.Reach(5)
			c.Take()
			c.Leave(time.Millisecond)
		}
	})
}
