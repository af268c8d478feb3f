package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// standing is what a team has used of its budget.
func (v *vendor) standing(team string) int64 {
	v.t.Helper()
	var d engine.Verdict
	req := &rule.Request{Attributes: map[string]string{"team": team}, Prompt: &rule.Prompt{Model: "m", Input: 1}}
	if err := v.engine.Peek(v.t.Context(), req, &d); err != nil {
		v.t.Fatal(err)
	}
	return 25*dollars - d.Results[0].Remaining
}

// An answer that is longer than was expected reserves more in few steps before it needs them, up to what the request
// may cost, and is charged once.
func TestSteps(t *testing.T) {
	for _, used := range []int64{1, 1000, 1001, 1400, 5000, 20_000, 30_000} {
		v := newVendor(t, "reserve: {output: 1000}")
		c := v.call("a", "ann", "m", 20_000)
		before, steps := v.standing("a"), 0
		for n := int64(1); n <= used; n++ {
			over := c.hold.Reach(0, 100+10*n)
			reserved := v.standing("a")
			if reserved > before {
				before, steps = reserved, steps+1
			}
			if over != (n > 20_000) || reserved > 200_100 || reserved < 100+10*min(n, 20_000) {
				t.Fatalf("%d of %d: %v, and %d are reserved", n, used, over, reserved)
			}
		}
		if steps > 10 || v.engine.Reserved()[0].Units != before || v.engine.Reserved()[0].Excess != 200_100-before {
			t.Errorf("%d tokens: %d steps, %+v", used, steps, v.engine.Reserved())
		}
		v.answer(c, tokens(used))
		if got := v.standing("a"); got != 100+10*used {
			t.Errorf("%d are used after %d tokens", got, used)
		}
		if got, want := v.shown("team"), (engine.Reserved{Used: 100 + 10*used, Refunded: max(0, before-100-10*used)}); got != want {
			t.Errorf("%d tokens: %+v, want %+v", used, got, want)
		}
		if spent := v.spent["attr:team:a"]; spent != 100+10*used || v.requests != 1 {
			t.Errorf("%d tokens: %d requests spent %d", used, v.requests, spent)
		}
		if want := map[bool]int{used > 20_000: 1}[true]; v.overruns != want {
			t.Errorf("%d tokens: %d holds used more than they had reserved", used, v.overruns)
		}
	}
}

// A stream under a budget that refills as fast as the model writes has few steps, each of which is a hold that others cannot have.
func TestStepsOfRefills(t *testing.T) {
	v := newVendorOf(t, `rules: [{id: team, key: attr:team, algorithm: token_bucket, limit: 25usd/23h, tokens: {price: usd, reserve: {output: 100}}}]`)
	c := v.call("a", "ann", "m", 200_000)
	charge := rule.Request{Attributes: map[string]string{"team": "a"}, Costs: map[string]int64{"usd": 25*dollars - v.standing("a")}}
	var d engine.Verdict
	if err := v.engine.Check(t.Context(), &charge, &d); err != nil || !d.Allowed {
		t.Fatal(err, d.Allowed)
	}
	steps, before := 0, c.hold.Parts[0].Reserved
	for n := int64(1); n <= 50_000; n++ { // 30 tokens a second
		v.now = v.now.Add(time.Second / 30)
		c.hold.Reach(0, 100+10*n)
		if got := c.hold.Parts[0].Reserved; got > before {
			before, steps = got, steps+1
		}
	}
	if steps == 0 || steps > 64 {
		t.Errorf("an answer of 50000 tokens has %d steps", steps)
	}
	v.answer(c, tokens(50_000))
	if got := v.spent["attr:team:a"]; got != 25*dollars-1100+500_100 {
		t.Errorf("%d are spent", got)
	}
}

// Each level is charged all of an answer, and no key reserves more than its share: if one has reached that, none grows.
func TestStepsOfLevels(t *testing.T) {
	for _, c := range []struct {
		user     string
		reserved int64 // of ann, while her answer runs
	}{{"0.002usd/day", 1000}, {"0.02usd/day", 2000}, {"20usd/day", 77_920}} {
		v := newVendorOf(t, `
levels: [user, team]
rules: [{id: r, key: levels, levels: {user: `+c.user+`, team: 250usd/day}, tokens: {price: usd, reserve: {output: 90, at_most: `+map[bool]string{true: "50%", false: "10%"}[c.reserved == 1000]+`}}}]`)
		ask := v.call("a", "ann", "m", 20_000)
		used := func(key string) int64 {
			var d engine.Verdict
			if _, err := v.engine.Standing(t.Context(), "", key, "", &d); err != nil {
				t.Fatal(err)
			}
			return d.Results[0].Used()
		}
		for n := int64(1); n <= 5000; n++ {
			ask.hold.Reach(0, 100+10*n)
		}
		if got := used("user:ann"); got != c.reserved || used("team:a") != got {
			t.Errorf("%s: ann has reserved %d, the team %d", c.user, got, used("team:a"))
		}
		v.answer(ask, tokens(5000))
		if v.spent["user:ann"] != 50_100 || v.spent["team:a"] != 50_100 {
			t.Errorf("%s: %v is spent", c.user, v.spent)
		}
	}
}

// What was reserved while the store was lost is told when it is charged.
func TestSpentInAnOutage(t *testing.T) {
	v := newVendorOf(t, `rules: [{id: team, key: attr:team, limit: 25usd/day, on_failure: open, tokens: {price: usd}}]`)
	v.losing.lost.Store(true)
	c := v.call("a", "ann", "m", 20_000)
	v.losing.lost.Store(false)
	v.answer(c, tokens(5000))
	if used := v.standing("a"); used != 50_100 || v.spent["attr:team:a"] != used || v.requests != 1 {
		t.Errorf("%d is used, %v spent by %d requests", used, v.spent, v.requests)
	}
}

// If a step does not fit, what is left is reserved. When that is used, the answer is over what is reserved; what it
// has not used is given back.
func TestStepDenied(t *testing.T) {
	v := newVendor(t, "reserve: {output: 1000}")
	c := v.call("a", "ann", "m", 20_000)
	rest := v.call("a", "bob", "m", 1)
	if _, err := v.engine.Settle(t.Context(), rest.verdict.Hold, engine.Units(0)); err != nil {
		t.Fatal(err)
	}
	charge := rule.Request{Attributes: map[string]string{"team": "a"}, Costs: map[string]int64{"usd": 25*dollars - 10_100 - 100}}
	var d engine.Verdict
	if err := v.engine.Check(t.Context(), &charge, &d); err != nil || !d.Allowed {
		t.Fatal(err, d.Allowed)
	}
	if over := c.hold.Reach(0, 9_900); over || v.standing("a") != 25*dollars {
		t.Error(over, v.standing("a"))
	}
	if over := c.hold.Reach(0, 10_200); over {
		t.Error("the answer has no more than was reserved")
	}
	if over := c.hold.Reach(0, 10_201); !over {
		t.Error("the answer has more than was reserved")
	}
	v.answer(c, tokens(1001))
	if got := v.standing("a"); got != 25*dollars-100+10 {
		t.Error(got)
	}
}

// at_most bounds the steps, too, and a request that reserves all of it takes none.
func TestStepsAtMost(t *testing.T) {
	v := newVendor(t, "reserve: {output: 1000, at_most: 0.5%}")
	c := v.call("a", "ann", "m", 20_000)
	for n := int64(1); n <= 20_000; n++ {
		if over := c.hold.Reach(0, 100+10*n); over != (100+10*n > 125_000) {
			t.Fatalf("%d tokens: %v", n, over)
		}
	}
	v.answer(c, tokens(20_000))
	if got := v.standing("a"); got != 200_100 {
		t.Error(got)
	}
	v = newVendor(t, "reserve: {output: 1000}")
	short := v.call("a", "ann", "m", 500)
	if short.hold.Parts[0].Grows() {
		t.Error("it has reserved all that it may use")
	}
	// A handler that settles by itself charges what it says, and no step besides.
	long := v.call("a", "ann", "m", 20_000)
	long.hold.Reach(0, 50_000)
	if _, err := long.hold.Settle(t.Context(), engine.ByUnit{"usd": 60_000}); err != nil {
		t.Fatal(err)
	}
	v.answer(long, tokens(1))
	v.answer(short, tokens(500))
	if got := v.standing("a"); got != 60_000+5100 {
		t.Error(got)
	}
}

// forgetful is a store that does not answer some reservations, although it makes them.
type forgetful struct {
	*memory.Store
	loses bool
}

var errNoAnswer = errors.New("the answer is lost")

func (s *forgetful) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	dst, err := s.Store.Reserve(ctx, dst, r, ops...)
	if s.loses && err == nil {
		return nil, errNoAnswer
	}
	return dst, err
}

// A step whose answer is lost is given back, and the rest is charged at the end.
func TestStepLost(t *testing.T) {
	v := newVendor(t, "reserve: {output: 1000}")
	table, _ := v.engine.Rules()
	store := &forgetful{Store: v.store}
	var err error
	clock := func() weir.Micros { return v.now }
	if v.engine, err = engine.New(engine.Options{Store: store, Clock: clock}); err != nil {
		t.Fatal(err)
	}
	defer v.engine.Close()
	if v.gate, err = engine.NewGate(v.engine, 0, nil); err != nil {
		t.Fatal(err)
	}
	v.engine.Install(table, 1)
	c := v.call("a", "ann", "m", 20_000)
	store.loses = true
	if over := c.hold.Reach(0, 50_000); !over || v.standing("a") != 10_100 {
		t.Error(over, v.standing("a"))
	}
	v.answer(c, tokens(6000))
	if got := v.standing("a"); got != 60_100 {
		t.Error(got)
	}
}
