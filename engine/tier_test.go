package engine_test

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// A question about a client without its tier returns the limits that apply to it, or
// tells that the tier is unknown.
func TestStandingTier(t *testing.T) {
	b := newBench(t, `
rules:
  - {id: plain, key: user, limit: 7/1h}
  - {id: api, key: user, limit: 10/1h, tiers: {paid: 100/1h, free: 20/1h, all: unlimited}, overrides: {"user:carol": 5/1h}}
  - {id: address, key: ip, limit: 3/1h}
`, nil)
	come := func(user, tier string) { b.check(t, rule.Request{User: user, Tier: tier}) }
	for _, c := range []struct {
		comes, tier string
		key, asked  string
		want        string
	}{
		{"", "", "user:bob", "", " unknown: 7 7, 10 10"},
		{"bob", "paid", "user:bob", "", "paid seen: 6 7, 99 100"},
		{"", "", "user:bob", "free", "free asked: 6 7, 19 20"},
		{"bob", "free", "user:bob", "", "free seen: 5 7, 18 20"},
		{"bob", "", "user:bob", "", " seen: 4 7, 7 10"},
		{"bob", "gold", "user:bob", "", " seen: 3 7, 6 10"}, // which no rule names
		{"bob", "all", "user:bob", "", "all seen: 2 7"},
		{"carol", "paid", "user:carol", "", " none: 6 7, 4 5"},
		{"", "", "ip:203.0.113.7", "paid", " none: 3 3"},
		{"", "", "user:dave", "", " unknown: 7 7, 10 10"},
	} {
		if c.comes != "" {
			come(c.comes, c.tier)
		}
		var v engine.Verdict
		tier, err := b.Standing(t.Context(), "", c.key, c.asked, &v)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s %s:", tier.Name, tier.From)
		for i, r := range v.Results {
			if i > 0 {
				got += ","
			}
			got += fmt.Sprintf(" %d %d", r.Remaining, r.Limit)
		}
		if got != c.want {
			t.Errorf("%s after %s came with %q: got %q, want %q", c.key, c.comes, c.tier, got, c.want)
		}
	}
	// A peek does not record the tier of a client.
	var v engine.Verdict
	if err := b.Peek(t.Context(), &rule.Request{User: "erin", Tier: "paid"}, &v); err != nil {
		t.Fatal(err)
	}
	if tier, err := b.Standing(t.Context(), "", "user:erin", "", &v); err != nil || tier.From != engine.UnknownTier {
		t.Errorf("%+v, %v", tier, err)
	}
}

// What is remembered of tiers costs no memory, however many clients there are.
func TestTiersAreBounded(t *testing.T) {
	b := newBench(t, "rules: [{id: api, key: global, limit: 1000000/1s, tiers: {paid: 2000000/1s}}]", nil)
	var v engine.Verdict
	req := rule.Request{Tier: "paid"}
	if err := b.Check(t.Context(), &req, &v); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := b.Check(t.Context(), &req, &v); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a check", n)
	}
}

// A tier in the key is that of the client, whatever was seen or asked for.
func TestStandingOfTierInKey(t *testing.T) {
	b := newBench(t, `
rules:
  - {id: by-tier, key: [user, tier], limit: 10/1h, tiers: {paid: 100/1h, free: 20/1h}}
`, nil)
	b.check(t, rule.Request{User: "bob", Tier: "paid"})
	for key, want := range map[string]string{
		"user:bob|tier:paid": "none [user:bob|tier:paid 99 100]",
		"user:bob|tier:*":    "none [user:bob|tier:* 10 10]",
		"user:bob":           "none [user:bob|tier:free 20 20 user:bob|tier:paid 99 100 user:bob|tier:* 10 10]",
	} {
		var v engine.Verdict
		tier, err := b.Standing(t.Context(), "", key, "free", &v)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range v.Results {
			got = append(got, fmt.Sprint(r.Key, " ", r.Remaining, " ", r.Limit))
		}
		if text := fmt.Sprint(tier.From, " ", got); text != want {
			t.Errorf("%s: %s, want %s", key, text, want)
		}
	}
	if rules, err := b.Reset(t.Context(), "", "user:bob"); err != nil || fmt.Sprint(rules) != "[by-tier]" {
		t.Errorf("reset %q: %v", rules, err)
	}
	var reset engine.Verdict
	if _, err := b.Standing(t.Context(), "by-tier", "user:bob|tier:paid", "", &reset); err != nil || reset.Results[0].Remaining != 100 {
		t.Errorf("after a reset %d are left: %v", reset.Results[0].Remaining, err)
	}
}
