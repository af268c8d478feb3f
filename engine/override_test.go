package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

const overridable = `
rules:
  - {id: api, key: user, limit: 10/1h, algorithm: fixed_window, tiers: {paid: 100/1h}, overrides: {"user:carol": 5/1h}, on_failure: local}
  - {id: trial, key: user, limit: 3/1h, algorithm: fixed_window, mode: shadow}
`

// until is an override of user under api.
func until(user, limits string, ends time.Duration) engine.Override {
	q, err := rule.ParseQuota(strings.Fields(limits), 0, "", "")
	if err != nil {
		panic(err)
	}
	return engine.Override{ID: user, Rule: "api", Key: "user:" + user, Quota: q, Ends: start.Add(ends).Time()}
}

// under says what is left of which limits, of a request or for a client.
func under(v *engine.Verdict) string {
	var texts []string
	for i := range v.Results {
		if r := &v.Results[i]; r.Rule.ID == "api" {
			text := fmt.Sprintf("%d of %s", r.Remaining, r.Compiled.Limit().Rate())
			if r.Override != nil {
				text += " by " + r.Override.ID
			}
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ", ")
}

// An override applies instead of limit, tier and the rule's own override, and ends by the
// clock alone. Usage continues where only the number changes.
func TestOverride(t *testing.T) {
	b := newBench(t, overridable, nil)
	ask := func(user, tier, want string) {
		t.Helper()
		v := b.check(t, rule.Request{User: user, Tier: tier})
		var peeked, standing engine.Verdict
		if err := b.Peek(t.Context(), &rule.Request{User: user, Tier: tier}, &peeked); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Standing(t.Context(), "api", "user:"+user, tier, &standing); err != nil {
			t.Fatal(err)
		}
		for name, got := range map[string]string{"Check": under(v), "Peek": under(&peeked), "Standing": under(&standing)} {
			if got != want {
				t.Errorf("%s of %s %s: %s, want %s", name, user, tier, got, want)
			}
		}
	}
	ask("alice", "", "9 of 10/1h")
	b.InstallOverrides([]engine.Override{
		until("alice", "50/1h", time.Minute), until("carol", "7/1h 20/1d", time.Minute), until("bob", "unlimited", time.Minute), until("erin", "2/1h", 0),
	})
	ask("alice", "", "48 of 50/1h by alice")
	ask("alice", "paid", "47 of 50/1h by alice")
	ask("carol", "", "6 of 7/1h by carol, 19 of 20/1d by carol")
	ask("bob", "", "")
	ask("dave", "", "9 of 10/1h")
	ask("erin", "", "9 of 10/1h") // it has ended already

	// The tier does not matter to whom an override names.
	for user, want := range map[string]engine.TierFrom{"alice": engine.NoTier, "dave": engine.SeenTier} {
		var v engine.Verdict
		if tier, err := b.Standing(t.Context(), "api", "user:"+user, "", &v); err != nil || tier.From != want {
			t.Errorf("the tier of %s is %v, %v", user, tier.From, err)
		}
	}

	// Rules may change: it applies to those that are in force.
	other := table(t, strings.Replace(overridable, "limit: 10/1h", "limit: 11/1h", 1))
	var tried engine.Verdict
	if err := b.PeekWith(t.Context(), other, &alice, &tried); err != nil || under(&tried) != "47 of 50/1h by alice" {
		t.Errorf("PeekWith: %s, %v", under(&tried), err)
	}
	b.Install(other, 2)
	ask("alice", "", "46 of 50/1h by alice")
	b.now.Store(int64(start.Add(time.Minute)) - 1)
	ask("alice", "", "45 of 50/1h by alice")
	b.now.Add(1)
	ask("alice", "", "5 of 11/1h")
	ask("alice", "paid", "93 of 100/1h")
	ask("carol", "", "3 of 5/1h")
	ask("bob", "", "10 of 11/1h")

	// The last of two applies, and a list without it ends it.
	b.InstallOverrides([]engine.Override{until("alice", "8/1h", time.Hour), until("alice", "9/1h", time.Hour)})
	ask("alice", "", "1 of 9/1h by alice")
	b.InstallOverrides(nil)
	ask("alice", "", "2 of 11/1h")
}

// It does nothing while no rule fits it, and says why.
func TestOverrideWithoutEffect(t *testing.T) {
	b := newBench(t, overridable, nil)
	o := until("alice", "50/1h", time.Hour)
	b.InstallOverrides([]engine.Override{o})
	want := func(rules, text string, target any) {
		t.Helper()
		b.Install(table(t, rules), 2)
		if got := under(b.check(t, rule.Request{User: "alice"})); got != text {
			t.Errorf("%s: %s, want %s", rules, got, text)
		}
		if _, err := b.ValidateOverride(o); target != nil && !errors.As(err, target) || target == nil && err != nil {
			t.Errorf("%s: %v", rules, err)
		}
	}
	want(`rules: [{id: other, key: user, limit: 5/1h}]`, "", new(*engine.NoRuleError))
	want(`rules: [{id: api, key: ip, limit: 5/1h}]`, "", new(*engine.KeyError))
	want(`rules: [{id: api, key: user, limit: 60/1h, cost: 60}]`, "0 of 60/1h", new(*weir.InvalidError))
	want(overridable, "49 of 50/1h by alice", nil)

	for text, want := range map[string]string{"ip:2001:db8::1": "ip:2001:db8::/64", "ip:::ffff:192.0.2.1": "ip:192.0.2.1"} {
		b.Install(table(t, "rules: [{id: api, key: ip, limit: 5/1h}]"), 3)
		o.Key = text
		if key, err := b.ValidateOverride(o); key != want || err != nil {
			t.Errorf("%s is %s, %v", text, key, err)
		}
	}
}

// Without the store, each instance goes on with its share of the override, and it still ends.
func TestOverrideWithoutStore(t *testing.T) {
	b := newBench(t, overridable, func(o *engine.Options) { o.Instances = func() int { return 2 } })
	b.InstallOverrides([]engine.Override{until("alice", "50/1h", time.Minute)})
	b.store.lost.Store(true)
	if v := b.check(t, alice); v.Degraded == nil || under(v) != "24 of 25/1h by alice" {
		t.Errorf("%s", under(v))
	}
	b.now.Store(int64(start.Add(time.Minute)))
	if v := b.check(t, alice); under(v) != "3 of 5/1h" {
		t.Errorf("%s", under(v))
	}
}

// To reset a client resets it under the override, too, whatever period that has.
func TestOverrideReset(t *testing.T) {
	b := newBench(t, overridable, nil)
	b.InstallOverrides([]engine.Override{until("alice", "50/1d", time.Minute)})
	b.check(t, alice)
	if _, err := b.Reset(t.Context(), "api", "user:alice"); err != nil {
		t.Fatal(err)
	}
	if v := b.check(t, alice); under(v) != "49 of 50/1d by alice" {
		t.Errorf("%s", under(v))
	}
}

// A shadow rule's limit can be overridden like any other.
func TestOverrideShadow(t *testing.T) {
	b := newBench(t, overridable, nil)
	o := until("alice", "1/1h", time.Minute)
	o.Rule = "trial"
	b.InstallOverrides([]engine.Override{o})
	for _, want := range []engine.Outcome{engine.OutcomeAllowed, engine.OutcomeShadowDenied} {
		if v := b.check(t, alice); v.Outcome() != want {
			t.Errorf("%v, want %v", v.Outcome(), want)
		}
	}
}

// A check costs no allocation, with an override or beside one.
func TestOverrideAllocations(t *testing.T) {
	b := newBench(t, "rules: [{id: api, key: user, limit: 1000/1h}]", nil)
	b.InstallOverrides([]engine.Override{until("alice", "50000/1h", time.Minute)})
	var v engine.Verdict
	for _, user := range []string{"alice", "bob"} {
		req := rule.Request{User: user}
		if n := testing.AllocsPerRun(100, func() {
			if err := b.Check(t.Context(), &req, &v); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", user, n)
		}
	}
}

func ExampleEngine_InstallOverrides() {
	e, err := engine.New(engine.Options{})
	if err != nil {
		panic(err)
	}
	if err := e.Load("rules.yaml", []byte("rules: [{id: api, key: user, limit: 100/1m}]")); err != nil {
		panic(err)
	}
	e.InstallOverrides([]engine.Override{{
		Rule: "api", Key: "user:alice",
		Quota: rule.Quota{Rates: []rule.Rate{{N: 500, Period: time.Minute}}},
		Ends:  time.Now().Add(2 * time.Hour),
	}})
	for _, user := range []string{"alice", "bob"} {
		v, err := e.CheckNew(context.Background(), rule.Request{User: user})
		if err != nil {
			panic(err)
		}
		fmt.Println(user, v.Speaker().Remaining, "of", v.Speaker().Limit)
	}
	// Output:
	// alice 499 of 500
	// bob 99 of 100
}
