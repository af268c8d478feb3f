package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// holder is an engine that is measured, on a store that can hold units.
func holder(t *testing.T, rules string, o Options) *bench {
	t.Helper()
	m := testkit.Must(New(o))(t)
	e := testkit.Must(engine.New(engine.Options{Store: memory.New(memory.Options{}), Observers: []engine.Observer{m}}))(t)
	b := &bench{Metrics: m, engine: e}
	b.install(t, rules, 1)
	return b
}

func (b *bench) reserve(t *testing.T, cost int64) weir.HoldID {
	t.Helper()
	var v engine.Verdict
	req := alice
	req.Cost = cost
	if err := b.engine.Reserve(t.Context(), &req, time.Hour, &v); err != nil {
		t.Fatal(err)
	}
	return v.Hold
}

// Holds are counted by what became of them, and their units by rule. A repeated call counts
// no units twice, and a rule without holds has no series of them.
func TestHolds(t *testing.T) {
	b := holder(t, `
rules:
  - {id: a, key: user, algorithm: sliding_log, limit: 1000/1d}
  - {id: trial, key: user, algorithm: sliding_log, limit: 150/1d, mode: shadow}
`, Options{})
	want(t, b.Metrics, "weir_holds_total")
	settle := func(id weir.HoldID, used int64) {
		t.Helper()
		testkit.Must(b.engine.Settle(t.Context(), id, engine.Units(used)))(t)
	}
	less, more, none := b.reserve(t, 100), b.reserve(t, 50), b.reserve(t, 10) // the last one not by trial
	settle(less, 30)
	settle(less, 99)
	settle(more, 70)
	testkit.Must(b.engine.Extend(t.Context(), none, time.Hour))(t)
	testkit.Must(b.engine.Cancel(t.Context(), none))(t)
	settle(weir.NewHoldID(), 1)
	if id := b.reserve(t, 5000); id != (weir.HoldID{}) {
		t.Error("it was to be denied")
	}
	req := alice
	req.Cost = 20_000
	var v engine.Verdict
	if err := b.engine.Charge(t.Context(), &req, &v); err != nil {
		t.Fatal(err)
	}
	want(t, b.Metrics, "weir_hold_events_total",
		`{event="reserved"} 3`, `{event="settled"} 2`, `{event="cancelled"} 1`, `{event="extended"} 1`, `{event="repeated"} 1`,
		`{event="expired"} 0`, `{event="unknown"} 1`, `{event="pending"} 0`, `{event="lost"} 0`, `{event="charged"} 1`, `{event="unheld"} 0`, `{event="crowded"} 0`, `{event="stepped"} 0`, `{event="capped"} 0`)
	want(t, b.Metrics, "weir_holds_total",
		`{event="reserved",rule="a"} 3`, `{event="settled",rule="a"} 2`, `{event="cancelled",rule="a"} 1`,
		`{event="reserved",rule="trial"} 2`, `{event="settled",rule="trial"} 2`, `{event="cancelled",rule="trial"} 0`)
	want(t, b.Metrics, "weir_hold_overruns_total", `{rule="a"} 1`, `{rule="trial"} 1`)
	want(t, b.Metrics, "weir_hold_units_total",
		`{kind="reserved",rule="a"} 150`, `{kind="used",rule="a"} 100`, `{kind="refunded",rule="a"} 70`, `{kind="overrun",rule="a"} 20`,
		`{kind="cancelled",rule="a"} 10`, `{kind="charged",rule="a"} 20000`, `{kind="excess",rule="a"} 9100`,
		`{kind="reserved",rule="trial"} 150`, `{kind="used",rule="trial"} 100`, `{kind="refunded",rule="trial"} 70`, `{kind="overrun",rule="trial"} 20`,
		`{kind="cancelled",rule="trial"} 0`, `{kind="charged",rule="trial"} 20000`, `{kind="excess",rule="trial"} 18450`)
	want(t, b.Metrics, "weir_requests_total",
		`{outcome="allowed"} 2`, `{outcome="denied"} 1`, `{outcome="shadow_denied"} 1
{outcome="soft_denied"} 0`, `{outcome="unknown_client"} 0`, `{outcome="blocked"} 0`, `{outcome="exempt"} 0`,
		`{outcome="degraded_allowed"} 0`, `{outcome="degraded_denied"} 0`, `{outcome="no_rule"} 0`)
}

// A hold may end after its rule is gone. Then it counts with the others.
func TestHoldOfOthers(t *testing.T) {
	b := holder(t, "rules: [{id: a, key: user, limit: 1000/1h}]", Options{})
	id := b.reserve(t, 10)
	b.install(t, "rules: [{id: b, key: user, limit: 1000/1h}]", 2)
	testkit.Must(b.engine.Settle(t.Context(), id, engine.Units(4)))(t)
	want(t, b.Metrics, "weir_holds_total",
		`{event="reserved",rule="(other)"} 0`, `{event="settled",rule="(other)"} 1`, `{event="cancelled",rule="(other)"} 0`)
}

// What is reserved for requests that are open is shown by rule and model, with what they may use besides, and then what was used: in
// money under rules that count that, and never in both.
func TestReserved(t *testing.T) {
	b := holder(t, `rules:
  - {id: a, key: user, limit: 1000/1d, tokens: {reserve: {output: 20}}}
  - {id: spend, key: user, limit: 0.5usd/day, tokens: {weights: {output: 250}, reserve: {output: 20}}}
`, Options{})
	gate := testkit.Must(engine.NewGate(b.engine, 0, nil))(t)
	req := alice
	req.Prompt = &rule.Prompt{Model: "gpt-4o", Input: 10, MaxOutput: 100}
	var v engine.Verdict
	var d engine.Denial
	serve := func() *engine.Hold {
		t.Helper()
		if ok, err := gate.Reserve(t.Context(), &req, time.Hour, &v, &d); !ok || err != nil {
			t.Fatal(d, err)
		}
		return gate.Serve(&req, time.Hour, &v)
	}
	hold := serve()
	want(t, b.Metrics, "weir_reserved_units", `{model="gpt-4o",rule="a"} 30`)
	want(t, b.Metrics, "weir_reserved_exceed_units", `{model="gpt-4o",rule="a"} 80`)
	want(t, b.Metrics, "weir_reserved_money", `{currency="usd",model="gpt-4o",rule="spend"} 0.00501`)
	want(t, b.Metrics, "weir_reserved_exceed_money", `{currency="usd",model="gpt-4o",rule="spend"} 0.02`)
	resp := rule.Response{Status: 200, Tokens: &rule.Usage{Input: 10, Output: 5}}
	if err := hold.End(&resp, nil); err != nil {
		t.Fatal(err)
	}
	req.Prompt = &rule.Prompt{Input: 10, MaxOutput: 100}
	if err := serve().End(&resp, nil); err != nil {
		t.Fatal(err)
	}
	want(t, b.Metrics, "weir_reserved_units", `{model="(none)",rule="a"} 0`, `{model="gpt-4o",rule="a"} 0`)
	b.ObserveReserved(func() []engine.Reserved { // of another engine
		return []engine.Reserved{{Rule: "a", Model: "gpt-4o", Units: 1, Excess: 2, Used: 3, Refunded: 4}, {Rule: "gone", Model: "gpt-4o", Units: 1}}
	})
	want(t, b.Metrics, "weir_reserved_units", `{model="(none)",rule="a"} 0`, `{model="gpt-4o",rule="a"} 1`)
	want(t, b.Metrics, "weir_reserved_exceed_units", `{model="(none)",rule="a"} 0`, `{model="gpt-4o",rule="a"} 2`)
	want(t, b.Metrics, "weir_settled_units_total", `{kind="refunded",model="(none)",rule="a"} 15`, `{kind="refunded",model="gpt-4o",rule="a"} 19`,
		`{kind="used",model="(none)",rule="a"} 15`, `{kind="used",model="gpt-4o",rule="a"} 18`)
	want(t, b.Metrics, "weir_settled_money_total", `{currency="usd",kind="refunded",model="(none)",rule="spend"} 0.00375`, `{currency="usd",kind="refunded",model="gpt-4o",rule="spend"} 0.00375`,
		`{currency="usd",kind="used",model="(none)",rule="spend"} 0.00126`, `{currency="usd",kind="used",model="gpt-4o",rule="spend"} 0.00126`)
	want(t, b.Metrics, "weir_spent_money_total", `{currency="usd",kind="charged",model="(none)",rule="spend"} 0.00126`, `{currency="usd",kind="refunded",model="(none)",rule="spend"} 0`,
		`{currency="usd",kind="charged",model="gpt-4o",rule="spend"} 0.00126`, `{currency="usd",kind="refunded",model="gpt-4o",rule="spend"} 0`)
}

// What was spent is shown in money, by rule and model. Models beyond a bound are counted together, and a rule that is removed
// leaves no series.
func TestSpent(t *testing.T) {
	const rules = "rules: [{id: spend, key: user, limit: 0.5usd/day}, {id: a, key: user, limit: 1000/1d}]"
	b := holder(t, rules, Options{})
	name := "weir_spent_money_total"
	want(t, b.Metrics, name)
	req := alice
	req.Costs = map[string]int64{"usd": 1}
	ask := func(model string) *engine.Verdict {
		t.Helper()
		req.Attributes = map[string]string{"model": model}
		v := new(engine.Verdict)
		if err := b.engine.Check(t.Context(), &req, v); err != nil || !v.Allowed {
			t.Fatal(err, v.Allowed)
		}
		return v
	}
	ask("m")
	if err := b.engine.Refund(t.Context(), ask("m")); err != nil {
		t.Fatal(err)
	}
	want(t, b.Metrics, name, `{currency="usd",kind="charged",model="m",rule="spend"} 2e-06`, `{currency="usd",kind="refunded",model="m",rule="spend"} 1e-06`)
	for i := range maxModels + 2 {
		ask(fmt.Sprint("model-", i))
	}
	if got := series(t, b.Metrics, name); strings.Count(got, "\n")+1 != 2*(maxModels+1) || !strings.Contains(got, `{currency="usd",kind="charged",model="(other)",rule="spend"} 3e-06`) {
		t.Errorf("%s", got)
	}
	b.install(t, "rules: [{id: spend, key: user, limit: 0.5eur/day}, {id: a, key: user, limit: 1000/1d}]", 2)
	req.Costs = map[string]int64{"eur": 5}
	ask("m")
	if got := series(t, b.Metrics, name); !strings.Contains(got, `{currency="eur",kind="charged",model="m",rule="spend"} 5e-06`) || !strings.Contains(got, `{currency="usd",kind="charged",model="m",rule="spend"} 2e-06`) {
		t.Errorf("after a change of the currency: %s", got)
	}
	b.install(t, "rules: [{id: a, key: user, limit: 1000/1d}]", 3)
	want(t, b.Metrics, name)
}
