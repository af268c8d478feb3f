package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

const unitRules = `
rules:
  - {id: requests, key: user, algorithm: fixed_window, limit: 1000/1h}
  - {id: model, key: user, algorithm: fixed_window, limit: 10000/1h, tokens: {}}
  - {id: upload, match: {path: /files}, key: user, algorithm: fixed_window, limit: 100/1h, unit: bytes}
  - {id: idle, key: user, limit: 100/1h, unit: pages, mode: "off"}
  - {id: trial, key: user, algorithm: fixed_window, limit: 100/1h, unit: seconds, mode: shadow}
  - {id: money, match: {path: /paid}, key: user, algorithm: fixed_window, limit: 10000/1h, tokens: {weights: {output: 4}}}
  - id: named
    match: {path: /named}
    key: user
    algorithm: fixed_window
    limit: 10000/1h
    unit: cents
    tokens: {models: {a*: {input: 2}}}
  - {id: tried, match: {path: /tried}, key: user, algorithm: fixed_window, limit: 10000/1h, mode: shadow, tokens: {weights: {output: 4}}}
`

// ask makes each kind of call that has a cost.
var costly = map[string]func(*holdBench, *testing.T, *rule.Request, *engine.Verdict) error{
	"check": func(b *holdBench, t *testing.T, r *rule.Request, v *engine.Verdict) error {
		return b.Check(t.Context(), r, v)
	},
	"peek": func(b *holdBench, t *testing.T, r *rule.Request, v *engine.Verdict) error {
		return b.Peek(t.Context(), r, v)
	},
	"charge": func(b *holdBench, t *testing.T, r *rule.Request, v *engine.Verdict) error {
		return b.Charge(t.Context(), r, v)
	},
	"continue": func(b *holdBench, t *testing.T, r *rule.Request, v *engine.Verdict) error {
		return b.Continue(t.Context(), r, v)
	},
	"reserve": func(b *holdBench, t *testing.T, r *rule.Request, v *engine.Verdict) error {
		return b.Reserve(t.Context(), r, time.Minute, v)
	},
}

func costOf(v *engine.Verdict, id string) int64 {
	for i := range v.Results {
		if v.Results[i].Rule.ID == id {
			return v.Results[i].Cost
		}
	}
	return 0
}

// A unit that no rule has is an error that names those there are, and so is a number of
// tokens for a rule that has a price for each.
func TestUnits(t *testing.T) {
	b := newHoldBench(t, unitRules, inMemory)
	for name, call := range costly {
		for _, c := range []struct {
			path  string
			cost  int64
			costs map[string]int64
			rule  string
			want  int64  // that it costs under the rule
			wrong string // a part of the error
		}{
			{"/", 0, map[string]int64{"tokens": 3}, "model", 3, ""},
			{"/", 5, nil, "model", 5, ""},
			{"/", 0, map[string]int64{"tokens": 3}, "requests", 1, ""},
			{"/", 0, map[string]int64{"bytes": 3, "tokens": 4}, "model", 4, ""}, // although upload does not apply
			{"/", 0, map[string]int64{"pages": 3}, "model", 1, ""},
			{"/", 0, map[string]int64{"seconds": 3}, "trial", 3, ""},
			{"/", 0, map[string]int64{"tokns": 3}, "", 0, `no rule has the unit "tokns"; there are bytes, cents, pages, seconds, tokens`},
			{"/", 0, map[string]int64{"tokens": 3, "": 3}, "", 0, `no rule has the unit ""`},
			{"/paid", 3, nil, "", 0, "money"},
			{"/paid", 0, map[string]int64{"tokens": 3}, "", 0, "money"},
			{"/paid", 0, map[string]int64{"seconds": 3}, "money", 1, ""},
			{"/named", 0, map[string]int64{"tokens": 3}, "", 0, `{"cents": …}`},
			{"/named", 3, nil, "", 0, `{"cents": …}`},
			{"/named", 0, map[string]int64{"tokens": 3, "cents": 7}, "named", 7, ""},
			{"/tried", 0, map[string]int64{"tokens": 3}, "tried", 0, ""}, // a rule on trial denies nothing
			{"/tried", 0, map[string]int64{"tokens": 3}, "model", 3, ""},
		} {
			var v engine.Verdict
			before := b.remaining(t)["requests"]
			err := call(b, t, &rule.Request{User: "alice", Path: c.path, Cost: c.cost, Costs: c.costs}, &v)
			invalid, ok := errors.AsType[*weir.InvalidError](err)
			switch {
			case c.wrong == "" && (err != nil || costOf(&v, c.rule) != c.want):
				t.Errorf("%s %s %d %v: costs %d under %s, want %d; %v", name, c.path, c.cost, c.costs, costOf(&v, c.rule), c.rule, c.want, err)
			case c.wrong != "" && (!ok || invalid.Field != "cost" || !strings.Contains(invalid.Reason, c.wrong)):
				t.Errorf("%s %s %d %v: %v, want %s", name, c.path, c.cost, c.costs, err, c.wrong)
			case c.wrong != "" && b.remaining(t)["requests"] != before:
				t.Errorf("%s %s %d %v is charged", name, c.path, c.cost, c.costs)
			}
			if v.Hold != (weir.HoldID{}) {
				testkit.Must(b.Cancel(t.Context(), v.Hold))(t)
			}
		}
	}
}

// A unit that neither a rule nor the hold has is an error, and the hold stays open. A unit that the
// hold has is settled, although no rule has it any more.
func TestSettleUnits(t *testing.T) {
	onStores(t, tokenRules, func(t *testing.T, b *holdBench) {
		refused := func(err error, want string) {
			t.Helper()
			if invalid, ok := errors.AsType[*weir.InvalidError](err); !ok || invalid.Field != "used" || !strings.Contains(invalid.Reason, want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		reserved := map[string]int64{"requests": 9, "tokens": 300, "trial": 100, "counting": 200}
		first := b.reserve(t, tokens700, 10*time.Second)
		_, err := b.Settle(t.Context(), first.Hold, engine.ByUnit{"tokns": 150})
		refused(err, `no rule has the unit "tokns"; there are tokens`)
		b.expect(t, "refused", reserved)
		b.now.Add(int64(weir.DefaultHoldTTL/time.Microsecond) - 1)
		b.expect(t, "still open", reserved)

		// Other rules have come, here and in the other instance.
		for _, e := range []*engine.Engine{b.Engine, b.other} {
			e.Install(table(t, "rules: [{id: pages, key: user, limit: 10/1h, unit: pages}]"), 2)
		}
		for _, used := range []engine.ByUnit{{"tokns": 150}, {"tokens": 150, "tokns": 1}} {
			_, err = b.other.Settle(t.Context(), first.Hold, used)
			refused(err, `no rule has the unit "tokns"; there are pages, tokens`)
		}
		done := testkit.Must(b.other.Settle(t.Context(), first.Hold, engine.ByUnit{"tokens": 150}))(t)
		if done.State != weir.HoldSettled || len(done.Parts) != 4 || done.Parts[1].Used != 150 {
			t.Errorf("%+v", done)
		}
		again := testkit.Must(b.Settle(t.Context(), first.Hold, engine.ByUnit{"tokens": 5}))(t)
		if !again.Repeated || again.Parts[1].Used != 150 {
			t.Errorf("%+v", again)
		}
		if s := testkit.Must(b.Settle(t.Context(), weir.NewHoldID(), engine.ByUnit{"tokens": 5}))(t); s.State != weir.HoldUnknown {
			t.Errorf("%+v", s)
		}
	})
}

// A settlement that is refused is no event of a hold, and leaves it the life that it has.
func TestRefusedSettlement(t *testing.T) {
	const life = 30 * time.Minute
	for _, outage := range []bool{false, true} {
		onStores(t, tokenRules+"  - {id: flights, key: user, concurrency: 2, hold_ttl: 2h, on_failure: local}\n", func(t *testing.T, b *holdBench) {
			b.store.lost.Store(outage)
			v := b.reserve(t, tokens700, life)
			b.store.lost.Store(false)
			if _, err := b.Settle(t.Context(), v.Hold, engine.ByUnit{"tokns": 150}); err == nil {
				t.Error("it is settled")
			}
			_, _ = b.Settle(t.Context(), weir.NewHoldID(), engine.ByUnit{"tokns": 150})
			b.now.Add(int64(life/time.Microsecond) - 1)
			if s := testkit.Must(b.Settle(t.Context(), v.Hold, engine.ByUnit{"tokens": 150}))(t); s.State != weir.HoldSettled {
				t.Errorf("%+v", s)
			}
			if saw := b.saw(); !slices.Equal(saw, []string{"unknown", "settled"}) {
				t.Errorf("the observer saw %v", saw)
			}
		})
	}
}

// While the store is unavailable, what cannot be looked at is settled later, and not refused.
func TestSettleUnitsLater(t *testing.T) {
	b := newHoldBench(t, tokenRules, inMemory)
	v := b.reserve(t, tokens700, time.Minute)
	b.Install(table(t, "rules: [{id: pages, key: user, limit: 10/1h, unit: pages}]"), 2)
	b.store.lost.Store(true)
	if s := testkit.Must(b.Settle(t.Context(), v.Hold, engine.ByUnit{"tokens": 150}))(t); s.State != weir.HoldPending {
		t.Errorf("%+v", s)
	}
	b.store.lost.Store(false)
	b.Close() // which tries once more
	b.Install(table(t, tokenRules), 3)
	b.expect(t, "settled", map[string]int64{"requests": 9, "tokens": 850, "trial": 650, "counting": 750})
}

// One number does not settle a rule that has a price for each kind of token.
func TestSettleWeights(t *testing.T) {
	b := newHoldBench(t, unitRules, inMemory)
	named := rule.Request{User: "alice", Path: "/named", Costs: map[string]int64{"tokens": 3, "cents": 7}}
	v := b.reserve(t, named, time.Minute)
	if _, err := b.Settle(t.Context(), v.Hold, engine.Units(5)); err == nil || !strings.Contains(err.Error(), `used: the rule named has weights, so a number of tokens does not tell what they cost; send {"cents": …}`) {
		t.Error(err)
	}
	s := testkit.Must(b.Settle(t.Context(), v.Hold, engine.ByUnit{"tokens": 2}))(t)
	if len(s.Parts) != 4 || s.Parts[1].Used != 2 || s.Parts[2].Used != 7 {
		t.Errorf("%+v", s)
	}
	// A rule without weights is settled by one number, and every rule by none.
	v = b.reserve(t, rule.Request{User: "alice", Path: "/"}, time.Minute)
	if s := testkit.Must(b.Settle(t.Context(), v.Hold, engine.Units(5)))(t); s.Parts[1].Used != 5 {
		t.Errorf("%+v", s)
	}
	v = b.reserve(t, named, time.Minute)
	if s := testkit.Must(b.Settle(t.Context(), v.Hold, engine.Units(0)))(t); s.Parts[2].Used != 0 {
		t.Errorf("%+v", s)
	}
}
