package metrics

import (
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// What several gates of a process shed is added up; the usage is that of the process.
func TestProtection(t *testing.T) {
	m := newBench(t, several, Options{}).Metrics
	want(t, m, "weir_protect_usage")
	want(t, m, "weir_protect_shed_total")
	for _, p := range []engine.Protection{
		{CPU: 0.5, Memory: 0.25, Shed: map[rule.Priority]uint64{rule.Low: 7}},
		{CPU: 0.75, Memory: 0.125, Shed: map[rule.Priority]uint64{rule.Low: 3, rule.High: 1}},
	} {
		m.ObserveProtection(func() engine.Protection { return p })
	}
	want(t, m, "weir_protect_usage", `{resource="cpu"} 0.75`, `{resource="memory"} 0.25`)
	want(t, m, "weir_protect_shed_total", `{priority="critical"} 0`, `{priority="high"} 1`, `{priority="low"} 10`, `{priority="normal"} 0`)
}
