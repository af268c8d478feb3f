package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// besideCount has a rule that settles, and plain ones for keys that all clients share.
const besideCount = `
rules:
  - {id: all, key: global, limit: 100000/1h, algorithm: fixed_window}
  - {id: places, key: global, concurrency: 100000}
  - {id: watched, key: global, limit: 100000/1h, algorithm: fixed_window, mode: shadow}
  - {id: failures, key: user, limit: 10/1h, algorithm: fixed_window, count: {status: 401}}
`

// used is what is used under each rule.
func (b *holdBench) used(t *testing.T, key string) map[string]int64 {
	t.Helper()
	var v engine.Verdict
	testkit.Must(b.Standing(t.Context(), "", key, "", &v))(t)
	used := map[string]int64{}
	for i := range v.Results {
		used[v.Results[i].Rule.ID] = v.Results[i].Used()
	}
	return used
}

func mustUse(t *testing.T, got map[string]int64, rules ...any) {
	t.Helper()
	for i := 0; i < len(rules); i += 2 {
		if id := rules[i].(string); got[id] != int64(rules[i+1].(int)) {
			t.Errorf("%s: %d units are used, want %d", id, got[id], rules[i+1])
		}
	}
}

// More requests can be in flight than a key has holds, if it is the key of plain rules.
func TestPlainBesideHolds(t *testing.T) {
	onStores(t, besideCount, func(t *testing.T, b *holdBench) {
		gate := testkit.Must(engine.NewGate(b.Engine, 0, nil))(t)
		var holds []*engine.Hold
		var v engine.Verdict
		var d engine.Denial
		const most = 1010 // Redis has room for 1,000, until instances have agreed on more
		for i := range most {
			req := &rule.Request{User: fmt.Sprint(i)}
			if !testkit.Must(gate.Reserve(t.Context(), req, time.Minute, &v, &d))(t) {
				t.Fatalf("request %d: %+v", i, d)
			}
			holds = append(holds, gate.Serve(req, time.Minute, &v))
		}
		if p := holds[0].Parts; len(p) != 1 || p[0].Rule.ID != "failures" {
			t.Errorf("the parts of a hold: %+v", p)
		}
		mustUse(t, b.used(t, "global"), "all", most, "places", most, "watched", most)
		mustUse(t, b.used(t, "user:7"), "failures", 1)
		for i, h := range holds {
			h.End(&rule.Response{Status: 200 + 201*(i%2)}, nil)
		}
		mustUse(t, b.used(t, "global"), "all", most, "places", 0, "watched", most)
		mustUse(t, b.used(t, "user:7"), "failures", 1)
		mustUse(t, b.used(t, "user:8"), "failures", 0)
	})
}

// A request that is given up gives back what is held, and what is not.
func TestRefundBesideHold(t *testing.T) {
	onStores(t, besideCount, func(t *testing.T, b *holdBench) {
		gate := testkit.Must(engine.NewGate(b.Engine, 0, nil))(t)
		var v engine.Verdict
		var d engine.Denial
		testkit.Must(gate.Reserve(t.Context(), &rule.Request{User: "alice"}, time.Minute, &v, &d))(t)
		testkit.OK(t, b.Refund(t.Context(), &v))
		mustUse(t, b.used(t, "global"), "all", 0, "places", 0, "watched", 0)
		mustUse(t, b.used(t, "user:alice"), "failures", 0)
	})
}

// What a handler says was used is for rules that settle, and for those with a unit.
func TestHandlerSettlesBesideHold(t *testing.T) {
	onStores(t, besideCount+"  - {id: work, key: user, limit: 100/1h, algorithm: fixed_window, unit: rows}\n", func(t *testing.T, b *holdBench) {
		gate := testkit.Must(engine.NewGate(b.Engine, 0, nil))(t)
		var v engine.Verdict
		var d engine.Denial
		req := &rule.Request{User: "alice"}
		testkit.Must(gate.Reserve(t.Context(), req, time.Minute, &v, &d))(t)
		h := gate.Serve(req, time.Minute, &v)
		testkit.Must(h.Settle(t.Context(), engine.Units(7)))(t)
		end(h)
		mustUse(t, b.used(t, "global"), "all", 1, "places", 0, "watched", 1)
		mustUse(t, b.used(t, "user:alice"), "failures", 7, "work", 7)
	})
}

// While the store is unavailable, plain rules are decided as without a hold: nothing is charged
// later for those that are open.
func TestPlainBesideHoldWithoutStore(t *testing.T) {
	b := newHoldBench(t, `
rules:
  - {id: all, key: global, limit: 100/1h, algorithm: fixed_window, on_failure: open}
  - {id: instance, key: global, limit: 100/1h, algorithm: fixed_window, on_failure: local}
  - {id: failures, key: user, limit: 10/1h, algorithm: fixed_window, on_failure: open, count: {status: 401}}
`, inMemory)
	gate := testkit.Must(engine.NewGate(b.Engine, 0, nil))(t)
	var v engine.Verdict
	var d engine.Denial
	req := &rule.Request{User: "alice"}
	b.store.lost.Store(true)
	if !testkit.Must(gate.Reserve(t.Context(), req, time.Minute, &v, &d))(t) || v.Hold == (weir.HoldID{}) {
		t.Fatalf("%+v, %+v", v, d)
	}
	if r := v.Results[1]; r.Rule.ID != "instance" || r.Remaining != 99 {
		t.Errorf("in this process: %+v", r)
	}
	h := gate.Serve(req, time.Minute, &v)
	b.store.lost.Store(false)
	h.End(&rule.Response{Status: 401}, nil)
	waitFor(t, "the settlement", func() bool { return slices.Contains(b.saw(), "settled") })
	mustUse(t, b.used(t, "global"), "all", 0, "instance", 0)
	mustUse(t, b.used(t, "user:alice"), "failures", 1)

	// If there is nothing to hold, there is no hold.
	b.Install(table(t, `rules: [{id: all, key: global, limit: 100/1h, on_failure: open}, {id: failures, key: user, limit: 10/1h, mode: shadow, count: {status: 401}}]`), 2)
	b.store.lost.Store(true)
	if !testkit.Must(gate.Reserve(t.Context(), req, time.Minute, &v, &d))(t) || v.Hold != (weir.HoldID{}) {
		t.Errorf("without anything to hold: %+v, %+v", v, d)
	}
}

// A denial says that it is for too many holds, and not that the limit is used up.
func TestTooManyHolds(t *testing.T) {
	onStores(t, "rules: [{id: failures, key: global, limit: 200000/1h, algorithm: fixed_window, count: {status: 401}}]", func(t *testing.T, b *holdBench) {
		gate := testkit.Must(engine.NewGate(b.Engine, 0, nil))(t)
		var v engine.Verdict
		var d engine.Denial
		for testkit.Must(gate.Reserve(t.Context(), &rule.Request{Path: "/"}, time.Minute, &v, &d))(t) {
		}
		const want = "Too many requests under the limit failures are not settled yet; try again in 60 s."
		if d.Detail != want || !v.Crowded() {
			t.Errorf("%v, %v: %q", v.Allowed, v.Crowded(), d.Detail)
		}
		if saw := b.saw(); !slices.Equal(saw, []string{"crowded"}) {
			t.Errorf("seen: %v", saw)
		}
	})
}

// A client that settles nothing leaves room for others on a shared key, and is told that it has too many.
func TestShareOfHolds(t *testing.T) {
	e := testkit.Must(engine.New(engine.Options{Store: memory.New(memory.Options{MaxKeys: 4096})}))(t)
	e.Install(table(t, "rules: [{id: uploads, key: global, limit: 200000/1h, count: {status: 401}}]"), 1)
	var v engine.Verdict
	for testkit.OK(t, e.Reserve(t.Context(), &rule.Request{User: "alice"}, time.Minute, &v)); v.Allowed; {
		testkit.OK(t, e.Reserve(t.Context(), &rule.Request{User: "alice"}, time.Minute, &v))
	}
	const want = "Too many requests of this client under the limit uploads are not settled yet; try again in 60 s."
	if d := engine.Describe(&v); d.Detail != want {
		t.Errorf("%q", d.Detail)
	}
	if testkit.OK(t, e.Reserve(t.Context(), &rule.Request{User: "bob"}, time.Minute, &v)); !v.Allowed {
		t.Errorf("another client: %+v", v)
	}
}

// A denial says that what the request lacks is only reserved, or how many units are left, and not that the limit is used
// up; but not while a penalty runs.
func TestOnlyReserved(t *testing.T) {
	onStores(t, "rules: [{id: budget, key: global, limit: 100/1h, algorithm: fixed_window, unit: bytes}]", func(t *testing.T, b *holdBench) {
		var held, v engine.Verdict
		ask := func(bytes int64) *rule.Request {
			return &rule.Request{User: "alice", Costs: map[string]int64{"bytes": bytes}}
		}
		testkit.OK(t, b.Reserve(t.Context(), ask(96), time.Minute, &held))
		for what, decide := range map[string]func() error{
			"reserve": func() error { return b.Reserve(t.Context(), ask(10), time.Minute, &v) },
			"check":   func() error { return b.Check(t.Context(), ask(10), &v) },
			"peek":    func() error { return b.Peek(t.Context(), ask(10), &v) },
		} {
			testkit.OK(t, decide())
			d, a := engine.Describe(&v), v.Answer()
			const want = "The request lacks 6 units of the limit budget, which other requests have only reserved; try again in 1 s."
			if d.Detail != want || d.Reserved != 6 || d.RetryAfter != time.Second || a.Reserved != 6 || a.RetryAfter != time.Second {
				t.Errorf("%s: %+v, %+v", what, d, a)
			}
		}
		testkit.Must(b.Settle(t.Context(), held.Hold, engine.Units(96)))(t)
		testkit.OK(t, b.Reserve(t.Context(), ask(10), time.Minute, &v))
		if d := engine.Describe(&v); d.Reserved != 0 || d.RetryAfter < time.Minute || !strings.HasPrefix(d.Detail, "The request costs 10 units, and the limit budget has 4 units left; try again in ") {
			t.Errorf("after that was used: %+v", d)
		}
	})
	onStores(t, "rules: [{id: budget, key: global, limit: 100/1h, algorithm: fixed_window, unit: bytes, penalty: 10m}]", func(t *testing.T, b *holdBench) {
		var v engine.Verdict
		for range 3 { // the second begins the penalty
			testkit.OK(t, b.Reserve(t.Context(), &rule.Request{User: "alice", Costs: map[string]int64{"bytes": 60}}, time.Minute, &v))
		}
		if d := engine.Describe(&v); d.Reserved != 0 || v.Results[0].Reserved != 0 || !strings.Contains(d.Detail, "penalty") {
			t.Errorf("%+v, %+v", d, v.Results)
		}
	})
}
