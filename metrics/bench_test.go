package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
)

// verdictOf is a verdict about the given number of rules, of a hundred.
func verdictOf(tb testing.TB, rules int) (*Metrics, *engine.Verdict) {
	tb.Helper()
	text := "rules:"
	for i := range 100 {
		text += fmt.Sprintf("\n  - {id: r%02d, key: user, limit: %d/1h}", i, 1000+i)
	}
	table := tableOf(tb, text)
	m, err := New(Options{})
	if err != nil {
		tb.Fatal(err)
	}
	m.Install(table, 1)
	v := &engine.Verdict{Allowed: true}
	for _, c := range table.Rules()[:rules] {
		v.Results = append(v.Results, engine.Result{Rule: c, Asked: true, Decision: weir.Decision{Allowed: true}})
	}
	return m, v
}

// Observing allocates nothing, neither when all is well nor when the store is unavailable.
func TestAllocations(t *testing.T) {
	for _, rules := range []int{0, 1, 5} {
		m, v := verdictOf(t, rules)
		for _, degraded := range []error{nil, fmt.Errorf("redis: %w", weir.ErrUnavailable)} {
			v.Degraded = degraded
			if n := testing.AllocsPerRun(200, func() { m.Observe(&alice, v, time.Microsecond) }); n > 0 && !testkit.Race {
				t.Errorf("%d rules, degraded %v: %v allocations", rules, degraded, n)
			}
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, rules := range []int{0, 1, 5} {
		m, v := verdictOf(b, rules)
		for name, took := range map[string]time.Duration{"memory": 700 * time.Nanosecond, "redis": 400 * time.Microsecond} {
			b.Run(fmt.Sprintf("rules=%d/%s", rules, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					m.Observe(&alice, v, took)
				}
			})
		}
	}
}

func BenchmarkObserveParallel(b *testing.B) {
	m, shared := verdictOf(b, 1)
	b.RunParallel(func(p *testing.PB) {
		v := new(engine.Verdict)
		*v = *shared
		for p.Next() {
			m.Observe(&alice, v, 700*time.Nanosecond)
		}
	})
}
