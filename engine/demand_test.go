package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// demand is a fixed window of n an hour.
func demand(id string, n int64, mode rule.Mode, countDenied bool) engine.Demand {
	limit, err := weir.Limit{Name: id, Algorithm: weir.FixedWindow, N: n, Period: time.Hour, CountDenied: countDenied}.Compile()
	if err != nil {
		panic(err)
	}
	return engine.Demand{
		Rule: &rule.Entry{Rule: &rule.Rule{ID: id, Mode: mode, CountDenied: countDenied, OnFailure: rule.Open}},
		Key:  "k", Limits: []*weir.Compiled{limit}, Cost: 1,
	}
}

// told is what each demand was told, in the order of the demands.
func told(v *engine.Verdict, n int) string {
	texts := make([]string, n)
	for _, r := range v.Results {
		texts[r.Demand] = fmt.Sprintf("%v %d", r.Allowed, r.Remaining)
	}
	return fmt.Sprint(v.Allowed, texts)
}

// Demands are charged as rules are: all or none, shadows aside, and where denied
// requests count, each by itself.
func TestCharge(t *testing.T) {
	for name, c := range map[string]struct {
		counting bool
		want     []string
	}{
		"all or none": {false, []string{
			"true [true 1 true 2 true 0]", "true [true 0 true 1 false 0]", "false [false 0 true 1 false 0]", "false [false 0 true 1 false 0]",
		}},
		"denied ones count": {true, []string{
			"true [true 1 true 2 true 0]", "true [true 0 true 1 false 0]", "false [false 0 true 0 false 0]", "false [false 0 false 0 false 0]",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "rules: []", nil)
			demands := []engine.Demand{
				demand("two", 2, rule.Enforce, c.counting), demand("three", 3, rule.Enforce, c.counting), demand("one", 1, rule.Shadow, c.counting),
			}
			for i, want := range c.want {
				var v engine.Verdict
				if err := b.Demand(t.Context(), demands, &v); err != nil {
					t.Fatal(err)
				}
				if got := told(&v, len(demands)); got != want {
					t.Errorf("request %d: %s, want %s", i+1, got, want)
				}
			}
		})
	}
}

// A demand without a cost looks, and denies what has no room for more.
func TestChargeLooks(t *testing.T) {
	b := newBench(t, "rules: []", nil)
	paid, looked := demand("paid", 5, rule.Enforce, true), demand("looked", 1, rule.Enforce, true)
	var v engine.Verdict
	charge := func(want string, demands ...engine.Demand) {
		t.Helper()
		if err := b.Demand(t.Context(), demands, &v); err != nil {
			t.Fatal(err)
		}
		if got := told(&v, len(demands)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	free := looked
	free.Cost = 0
	charge("true [true 1 true 4]", free, paid)
	if s := v.Speaker(); s == nil || s.Rule != paid.Rule {
		t.Errorf("%+v speaks", s)
	}
	charge("true [true 0]", looked)
	charge("false [false 0 true 3]", free, paid) // which counts denied requests
	if s := v.Speaker(); s == nil || s.Rule != free.Rule {
		t.Errorf("%+v speaks", s)
	}
	plain := demand("plain", 5, rule.Enforce, false)
	charge("false [false 0 true 5]", free, plain)
	charge("true [true 4]", plain)

	quiet := demand("quiet", 1, rule.Shadow, false)
	charge("true [true 0]", quiet)
	quiet.Cost = 0
	charge("true [true 3 false 0]", plain, quiet)

	before := b.store.calls.Load()
	charge("true [true 2]", plain)
	one := b.store.calls.Load() - before
	charge("false [false 0 true 2]", free, plain)
	if calls := b.store.calls.Load() - before - one; calls != one {
		t.Errorf("a look took %d calls of the store, and none takes %d", calls, one)
	}

	b.store.lost.Store(true)
	charge("true [true 0 true 0]", free, paid)
	if v.Degraded == nil {
		t.Error("it is not degraded")
	}
	closed := free
	closed.Rule = &rule.Entry{Rule: &rule.Rule{ID: "looked", OnFailure: rule.Closed}}
	charge("false [false 0 true 0]", closed, paid)
}

// A shadow rule that counts denied requests counts each once, whatever others say.
func TestShadowCountsDenied(t *testing.T) {
	b := newBench(t, `
rules:
  - {id: real, key: user, algorithm: fixed_window, limit: 3/1d}
  - {id: tight, key: user, algorithm: sliding_log, limit: 1/1d, mode: shadow}
  - {id: counting, key: user, algorithm: fixed_window, limit: 9/1d, mode: shadow, count_denied: true}
`, nil)
	for i := range 5 {
		v := b.check(t, alice)
		if got, want := v.Results[2].Remaining, int64(8-i); v.Results[2].Rule.ID != "counting" || got != want {
			t.Errorf("request %d: %s has %d left, want %d", i+1, v.Results[2].Rule.ID, got, want)
		}
	}
}

// Two clients of one shadow rule in one request are charged each by itself.
func TestShadowOfTwoClients(t *testing.T) {
	b := newBench(t, "rules: []", nil)
	one := demand("one", 1, rule.Shadow, false)
	other := one
	other.Key = "other"
	var v engine.Verdict
	for i, want := range []struct {
		demands []engine.Demand
		told    string
	}{
		{[]engine.Demand{one}, "true [true 0]"},
		{[]engine.Demand{one, other}, "true [false 0 true 0]"},
		{[]engine.Demand{other}, "true [false 0]"},
	} {
		if err := b.Demand(t.Context(), want.demands, &v); err != nil {
			t.Fatal(err)
		}
		if got := told(&v, len(want.demands)); got != want.told {
			t.Errorf("request %d: %s, want %s", i+1, got, want.told)
		}
	}
}

// A demand with Always is charged in full after the others, whatever they say, and has a
// say itself. Without a cost it only looks.
func TestDemandAlways(t *testing.T) {
	b := newBench(t, "rules: []", nil)
	requests, tokens := demand("requests", 2, rule.Enforce, false), demand("tokens", 10, rule.Enforce, false)
	tokens.Always = true
	tokens.Rule.OnFailure, requests.Rule.OnFailure = rule.Closed, rule.Closed // so nothing is remembered for an outage
	var v engine.Verdict
	ask := func(want, speaker string, cost int64) {
		t.Helper()
		tokens.Cost = cost
		if err := b.Demand(t.Context(), []engine.Demand{tokens, requests}, &v); err != nil {
			t.Fatal(err)
		}
		if got := told(&v, 2); got != want || v.Speaker() == nil || v.Speaker().Rule.ID != speaker || v.Allowed != (v.RetryAfter == 0) {
			t.Errorf("%s, want %s; %+v speaks", got, want, v.Speaker())
		}
	}
	ask("true [true 10 true 1]", "requests", 0)
	ask("true [true 4 true 0]", "requests", 6)
	ask("false [true 3 false 0]", "requests", 1)
	ask("false [false 0 false 0]", "requests", 4)
	b.pass(time.Hour)
	ask("false [false 0 true 1]", "tokens", 11)
	b.store.lost.Store(true)
	tokens.Rule.OnFailure, requests.Rule.OnFailure = rule.Local, rule.Local
	ask("true [true 9 true 1]", "requests", 1)
	ask("false [false 0 true 0]", "tokens", 20)
	ask("false [false 0 false 0]", "tokens", 0)
	if v.Degraded == nil {
		t.Error("it is not degraded")
	}
}
