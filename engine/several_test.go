package engine_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// A request that is several clients is charged to each of them, by their own limits, or
// to none.
func TestSeveralClients(t *testing.T) {
	b := newBench(t, `
rules:
  - {id: api, key: user, algorithm: fixed_window, limit: 3/1d, tiers: {pro: 4/1d}, overrides: {"user:bob": 1/1d, "user:carol": unlimited}}
  - {id: trial, key: user, algorithm: fixed_window, limit: 9/1d, mode: shadow}
`, nil)
	keys := func(v *engine.Verdict) (all []string) {
		for _, r := range v.Results {
			all = append(all, r.Rule.ID+" "+r.Key)
		}
		return all
	}
	both := rule.Request{User: "alice", OtherUsers: []string{"bob", "carol", "alice"}}
	v := b.check(t, both)
	if got, want := keys(v), []string{"api user:alice", "api user:bob", "trial user:alice", "trial user:bob", "trial user:carol"}; !v.Allowed || !slices.Equal(got, want) {
		t.Errorf("%t, %q, want %q", v.Allowed, got, want)
	}
	if v = b.check(t, both); v.Allowed || v.Speaker().Key != "user:bob" {
		t.Errorf("%t, %+v", v.Allowed, v.Speaker())
	}
	if v = b.check(t, rule.Request{User: "alice"}); !v.Allowed || v.Speaker().Remaining != 1 {
		t.Errorf("what was denied has cost alice something: %+v", v.Speaker())
	}
	if v = b.check(t, rule.Request{User: "alice", OtherUsers: []string{"dave"}, Tier: "pro"}); !v.Allowed || v.Results[0].Limit != 4 || v.Results[1].Limit != 4 {
		t.Errorf("%+v", v.Results)
	}
	if err := b.Refund(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if v = b.check(t, rule.Request{User: "dave"}); v.Speaker().Remaining != 2 {
		t.Errorf("dave got back nothing: %+v", v.Speaker())
	}
	many := rule.Request{User: "a", OtherUsers: []string{"b", "c", "d", "e", "f", "g", "h", "i"}}
	var values *rule.ValuesError
	for _, ask := range []error{b.Check(t.Context(), &many, v), b.Peek(t.Context(), &many, v)} {
		if !errors.As(ask, &values) || values.What != "user" {
			t.Errorf("nine at once: %v", ask)
		}
	}
	// A shadow rule denies nothing.
	b.Install(table(t, "rules: [{id: trial, key: user, limit: 9/1d, mode: shadow}, {id: all, key: global, limit: 9/1d}]"), 2)
	if v := b.check(t, many); !v.Allowed || len(v.Results) != 1 {
		t.Errorf("%+v", v)
	}
}

// What a request may not charge fails it before anything is charged, whichever way it asks. A
// shadow rule then does not apply.
func TestPermit(t *testing.T) {
	b := newBench(t, `
rules:
  - {id: ip, key: ip, limit: 3/1d}
  - {id: user, key: user, limit: 3/1d}
  - {id: trial, key: global, limit: 9/1d, mode: shadow}
`, nil)
	only := func(allowed ...string) func(string, string) bool {
		return func(rule, key string) bool { return slices.Contains(allowed, rule+" "+key) }
	}
	ip := netip.MustParseAddr("192.0.2.1")
	r := rule.Request{IP: ip, User: "alice", OtherUsers: []string{"victim"}, Permit: only("ip ip:192.0.2.1", "user user:alice")}
	v := new(engine.Verdict)
	for name, err := range map[string]error{
		"check": b.Check(t.Context(), &r, v), "peek": b.Peek(t.Context(), &r, v), "charge": b.Charge(t.Context(), &r, v),
	} {
		if not, ok := errors.AsType[*engine.PermitError](err); !ok || *not != (engine.PermitError{Rule: "user", Key: "user:victim"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.OtherUsers = nil
	if v := b.check(t, r); !v.Allowed || len(v.Results) != 2 || v.Results[0].Remaining != 2 || v.Results[1].Remaining != 2 {
		t.Errorf("%+v", v.Results)
	}
	r.Permit = only("ip ip:192.0.2.1", "user user:alice", "trial global")
	if v := b.check(t, r); !v.Allowed || len(v.Results) != 3 {
		t.Errorf("%+v", v.Results)
	}
}

// Nor does it cost memory to be several.
func TestSeveralAllocations(t *testing.T) {
	b := newBench(t, "rules: [{id: api, key: user, limit: 1000000/1s}]", nil)
	req := rule.Request{User: "alice", OtherUsers: []string{"bob", "carol"}}
	var v engine.Verdict
	ask := func() {
		if err := b.Check(t.Context(), &req, &v); err != nil || len(v.Results) != 3 {
			t.Fatal(err)
		}
	}
	ask()
	if n := testing.AllocsPerRun(100, ask); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
