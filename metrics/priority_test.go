package metrics

import (
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// Each request counts under its priority, and under all.
func TestPriorities(t *testing.T) {
	b := newBench(t, "rules: [{id: all, key: user, limit: 4/1h, shares: {low: 50%}}]", Options{})
	low := alice
	low.Priority = rule.Low
	for range 3 {
		b.check(t, low)
	}
	for range 3 {
		b.check(t, alice)
	}
	b.Observe(&alice, &engine.Verdict{Allowed: true}, 1) // no rule, and no priority
	want(t, b.Metrics, "weir_requests_by_priority_total",
		`{outcome="allowed",priority="critical"} 0`, `{outcome="allowed",priority="high"} 0`,
		`{outcome="allowed",priority="normal"} 2`, `{outcome="allowed",priority="low"} 2`,
		`{outcome="denied",priority="critical"} 0`, `{outcome="denied",priority="high"} 0`,
		`{outcome="denied",priority="normal"} 1`, `{outcome="denied",priority="low"} 1`,
		`{outcome="no_rule",priority="normal"} 1`,
	)
	want(t, b.Metrics, "weir_requests_total", `{outcome="allowed"} 4`, `{outcome="denied"} 2`, `{outcome="no_rule"} 1`, `{outcome="blocked"} 0`,
		`{outcome="degraded_allowed"} 0`, `{outcome="degraded_denied"} 0`, `{outcome="exempt"} 0`, `{outcome="shadow_denied"} 0`, `{outcome="soft_denied"} 0`, `{outcome="unknown_client"} 0`)
}
