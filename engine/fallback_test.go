package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/redis"
)

// whoSaid is what happened to a request: allowed or denied by the store, by this process, or by neither.
func whoSaid(v *engine.Verdict) string {
	r := v.Results[0]
	by := "store"
	switch {
	case r.Local:
		by = "local"
	case !r.Asked:
		by = "policy"
	}
	if v.Allowed {
		return by + " allows"
	}
	return by + " denies"
}

// A local fallback ends after its time, which starts with the first charge that the store did not answer, and starts again
// after one that it did. A peek has the same answer, and starts nothing.
func TestFallbackEnds(t *testing.T) {
	for then, after := range map[string]string{"open": "policy allows", "closed": "policy denies"} {
		b := newBench(t, "rules: [{id: api, key: user, algorithm: fixed_window, limit: 2/1d, on_failure: {local: 60s, then: "+then+"}}]", nil)
		for i, step := range []struct {
			pass time.Duration
			lost bool
			peek bool
			want string
		}{
			{want: "store allows"},
			{lost: true, peek: true, want: "local allows"},
			{lost: true, pass: time.Hour, want: "local allows"},
			{lost: true, pass: 59_999 * time.Millisecond, want: "local denies"}, // one is known to be used, and one was taken
			{lost: true, pass: 999 * time.Microsecond, peek: true, want: "local denies"},
			{lost: true, pass: time.Microsecond, peek: true, want: after},
			{lost: true, want: after},
			{lost: true, pass: time.Hour, want: after},
			{peek: true, want: "store allows"}, // which ends no outage
			{lost: true, want: after},          //
			{want: "store allows"},             //
			{lost: true, want: "local denies"}, // the next outage
			{lost: true, pass: time.Minute, want: after},
		} {
			b.pass(step.pass)
			b.store.lost.Store(step.lost)
			v, ask := new(engine.Verdict), b.Check
			if step.peek {
				ask = b.Peek
			}
			if err := ask(t.Context(), &alice, v); err != nil {
				t.Fatal(err)
			}
			if got := whoSaid(v); got != step.want {
				t.Errorf("then %s, step %d: %s, want %s", then, i, got, step.want)
			}
			if closed := then == "closed" && step.want == after; v.Results[0].Closed() != closed || (v.Reason == engine.Unavailable) != closed {
				t.Errorf("then %s, step %d: %+v", then, i, v)
			}
		}
	}
}

// That this process was too busy to ask is no outage of the store.
func TestBusyEndsNoFallback(t *testing.T) {
	b := newBench(t, "rules: [{id: api, key: user, limit: 20/1d, on_failure: {local: 60s, then: closed}}]", nil)
	b.store.busy.Store(true)
	for range 3 {
		if v := b.check(t, alice); whoSaid(v) != "local allows" {
			t.Errorf("%+v", v)
		}
		b.pass(time.Minute)
	}
}

// The limit of a fallback replaces those of the rule, its tiers and its overrides, but not places, and every client starts
// from zero. Instances share it.
func TestFallbackLimit(t *testing.T) {
	b := newBench(t, `
rules:
  - id: api
    key: user
    algorithm: sliding_log
    limits: [6/1m, 20/1h]
    concurrency: 100
    tiers: {pro: 600/1m, staff: unlimited}
    shares: {low: 50%}
    overrides: {"user:bob": {limits: [2/1s, 5/1m, 100/1d]}}
    on_failure: {local: 60s, limit: 6/1m, then: closed}
`, func(o *engine.Options) { o.Instances = func() int { return 2 } })
	for range 6 {
		b.check(t, alice)
	}
	if v := b.check(t, alice); v.Allowed {
		t.Fatalf("%+v", v)
	}
	b.store.lost.Store(true)
	for _, c := range []struct {
		req     rule.Request
		allowed int
		limits  int
	}{
		{rule.Request{User: "alice"}, 3, 2},
		{rule.Request{User: "bob"}, 3, 2},
		{rule.Request{User: "carol", Tier: "pro"}, 3, 2},
		{rule.Request{User: "dan", Priority: rule.Low}, 1, 2},
		{rule.Request{User: "eve", Tier: "staff"}, 9, 0},
	} {
		allowed := 0
		for range 9 {
			v := b.check(t, c.req)
			if v.Allowed {
				allowed++
			}
			if c.req.Tier != "staff" {
				if len(v.Results) != c.limits || v.Results[0].Limit != 3 || v.Results[0].Compiled.Limit().Period != time.Minute {
					t.Errorf("%s: %+v", c.req.User, v.Results)
				}
			}
		}
		if allowed != c.allowed {
			t.Errorf("%s: %d were allowed, want %d", c.req.User, allowed, c.allowed)
		}
	}
	// To reset a client resets that, too.
	if _, err := b.Reset(t.Context(), "api", "user:alice"); err != nil {
		t.Fatal(err)
	}
	if v := b.check(t, alice); whoSaid(v) != "local allows" || v.Results[0].Remaining != 2 {
		t.Errorf("after a reset: %+v", v)
	}
}

// What is reserved, charged without asking, and given back goes by the same policy.
func TestFallbackOfHolds(t *testing.T) {
	b := newHoldBench(t, "rules: [{id: api, key: user, algorithm: fixed_window, limits: [100/1d, 1000/1w], on_failure: {local: 60s, limit: 10/1d, then: closed}}]", inMemory)
	b.store.lost.Store(true)
	req := alice
	req.Cost = 6
	reserve := func() *engine.Verdict { return b.reserve(t, req, time.Hour) }
	v := reserve()
	if whoSaid(v) != "local allows" || v.Hold == (weir.HoldID{}) {
		t.Fatalf("%+v", v)
	}
	if other := reserve(); whoSaid(other) != "local denies" {
		t.Errorf("%+v", other)
	}
	if done := testkit.Must(b.Settle(t.Context(), v.Hold, engine.Units(1)))(t); done.State != weir.HoldSettled || len(done.Parts) != 1 {
		t.Errorf("%+v", done)
	}
	if v = reserve(); whoSaid(v) != "local allows" || v.Results[0].Remaining != 3 {
		t.Errorf("%+v", v)
	}
	b.now.Add(time.Minute.Microseconds())
	if late := reserve(); whoSaid(late) != "policy denies" || late.Reason != engine.Unavailable {
		t.Errorf("%+v", late)
	}
	// What is done already is charged when the store is back.
	if err := b.Charge(t.Context(), &req, v); err != nil || !v.Allowed || v.Results[0].Local {
		t.Errorf("%+v, %v", v, err)
	}
	b.store.lost.Store(false)
	waitFor(t, "the charge", func() bool {
		var v engine.Verdict
		return b.Peek(t.Context(), &rule.Request{User: "alice", IP: alice.IP}, &v) == nil && v.Results[0].Remaining == 94
	})
}

// A real Redis is stopped, and the fallback ends; it is started, and the next time it is stopped, a fallback begins.
func TestFallbackWithRedis(t *testing.T) {
	server := testredis.Start(t)
	store := testkit.Must(redis.Open("redis://" + server.Addr + "?timeout=5s"))(t) // a busy machine is slow, and that is no trouble here
	t.Cleanup(store.Close)
	now := weir.MicrosOf(time.Now())
	e := testkit.Must(engine.New(engine.Options{Store: store, Clock: func() weir.Micros { return now }}))(t)
	e.Install(table(t, "rules: [{id: api, key: user, limit: 1000000/1d, on_failure: {local: 60s, limit: 1000/1d, then: closed}}]"), 1)
	ask := func() string {
		var v engine.Verdict
		if err := e.Check(t.Context(), &alice, &v); err != nil {
			t.Fatal(err)
		}
		return whoSaid(&v)
	}
	for range 2 {
		if got := ask(); got != "store allows" {
			t.Fatal(got)
		}
		server.Kill()
		if got := ask(); got != "local allows" {
			t.Error(got)
		}
		now += weir.Micros(time.Minute.Microseconds())
		if got := ask(); got != "policy denies" {
			t.Error(got)
		}
		server.Restart()
		waitFor(t, "Redis", func() bool { return ask() == "store allows" })
	}
}

// In a cluster, each slot has its own outage: one that fails later has all of its fallback.
func TestFallbackOfASlot(t *testing.T) {
	b := newPartialBench(t)
	now := weir.MicrosOf(time.Now())
	e := testkit.Must(engine.New(engine.Options{Store: b.store, Clock: func() weir.Micros { return now }}))(t)
	e.Install(table(t, `
rules:
  - {id: person, key: user, limit: 1000/1d, on_failure: {local: 60s, then: closed}}
  - {id: address, key: ip, limit: 1000/1d, on_failure: {local: 60s, then: closed}}
`), 1)
	first, second := rule.Request{User: b.user}, rule.Request{User: b.name("user", "w%d-%d", true)}
	ask := func(req rule.Request) string {
		var v engine.Verdict
		if err := e.Check(t.Context(), &req, &v); err != nil {
			t.Fatal(err)
		}
		said := []string{whoSaid(&v)}
		for _, r := range v.Results[1:] {
			said = append(said, fmt.Sprint(r.Rule.ID, " ", r.Asked && !r.Local))
		}
		return strings.Join(said, ", ")
	}
	ask(first)
	b.dead.Pause()
	defer b.dead.Resume()
	waitFor(t, "the outage", func() bool { // and not only an answer that is late, with which no outage begins
		isKnown := !b.store.Available()
		return ask(first) == "local allows" && isKnown
	})
	now += weir.Micros(time.Minute.Microseconds())
	for _, step := range []struct {
		req  rule.Request
		want string
	}{
		{first, "policy denies"},
		{second, "local allows"},
		{rule.Request{IP: b.request().IP}, "store allows"}, // on another master, which ends no other outage
		{first, "policy denies"},
		{rule.Request{User: b.user, IP: b.request().IP}, "policy denies, address true"},
	} {
		if got := ask(step.req); got != step.want {
			t.Errorf("%v: %s, want %s", step.req, got, step.want)
		}
	}
}
