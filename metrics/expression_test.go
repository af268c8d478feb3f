package metrics

import (
	"testing"

	_ "github.com/weirhq/weir/rule/expression"
)

// Warnings are counted by rule; one that warns has the series from the beginning.
func TestWarnings(t *testing.T) {
	b := newBench(t, "rules: [{id: plan, key: user, algorithm: fixed_window, limit: 2/1h, warn: [50%, 100%]}, {id: plain, key: user, limit: 1000/1h}]", Options{})
	want(t, b.Metrics, "weir_warnings_total", `{rule="plan"} 0`)
	for range 4 {
		b.check(t, alice)
	}
	want(t, b.Metrics, "weir_warnings_total", `{rule="plan"} 2`)
}

// Expressions that fail are counted by rule, also when rules are installed again.
func TestExpressionFailures(t *testing.T) {
	const rules = `
rules:
  - {id: broken, key: user, limit: 1000/1h, match: {when: request.json.n == 1}}
  - {id: good, key: user, limit: 1000/1h, match: {when: request.user == "alice"}}
  - {id: plain, key: user, limit: 1000/1h}
`
	b := newBench(t, rules, Options{})
	want(t, b.Metrics, "weir_expression_failures_total", `{rule="broken"} 0`, `{rule="good"} 0`)
	b.check(t, alice)
	b.check(t, alice)
	b.Metrics.InstallDemands(nil) // the same rules
	want(t, b.Metrics, "weir_expression_failures_total", `{rule="broken"} 2`, `{rule="good"} 0`)
	b.install(t, rules, 2)
	b.check(t, alice)
	want(t, b.Metrics, "weir_expression_failures_total", `{rule="broken"} 3`, `{rule="good"} 0`)
	b.install(t, "rules: [{id: plain, key: user, limit: 1000/1h}]", 3)
	want(t, b.Metrics, "weir_expression_failures_total")
}
