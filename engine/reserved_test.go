package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// shown is the sum of what is shown of the models of a rule.
func (v *vendor) shown(id string) (sum engine.Reserved) {
	v.t.Helper()
	for _, r := range v.engine.Reserved() {
		if r.Rule == id {
			sum.Requests, sum.Units, sum.Excess = sum.Requests+r.Requests, sum.Units+r.Units, sum.Excess+r.Excess
			sum.Used, sum.Refunded = sum.Used+r.Used, sum.Refunded+r.Refunded
		}
	}
	return sum
}

// What is reserved, and by how much it may be exceeded, is known as long as requests are open, and then what was used.
func TestReserved(t *testing.T) {
	v := newVendor(t, "reserve: {output: 1000}")
	a, b := v.call("a", "ann", "m", 20_000), v.call("b", "bob", "m", 500)
	c := v.call("a", "ann", "short", 100)
	m := engine.Reserved{Rule: "team", Model: "m", Requests: 2, Units: 10_100 + 5100, Excess: 190_000, Currency: "usd", Display: engine.ReservedDisplay{Units: "$0.0152", Excess: "$0.19", Used: "$0.00", Refunded: "$0.00"}}
	short := engine.Reserved{Rule: "team", Model: "short", Requests: 1, Units: 1100, Currency: "usd", Display: engine.ReservedDisplay{Units: "$0.0011", Excess: "$0.00", Used: "$0.00", Refunded: "$0.00"}}
	if got := v.engine.Reserved(); !slices.Equal(got, []engine.Reserved{m, short}) {
		t.Errorf("%+v", got)
	}
	v.answer(a, tokens(1))
	m.Requests, m.Units, m.Excess, m.Used, m.Refunded = 1, 5100, 0, 110, 9990
	m.Display = engine.ReservedDisplay{Units: "$0.0051", Excess: "$0.00", Used: "$0.00011", Refunded: "$0.00999"}
	if got := v.engine.Reserved(); !slices.Equal(got, []engine.Reserved{m, short}) {
		t.Errorf("%+v", got)
	}
	if _, err := b.hold.Settle(t.Context(), engine.Units(0)); err != nil {
		t.Fatal(err)
	}
	v.answer(b, tokens(1))
	v.answer(c, tokens(100))
	if got, want := v.shown("team"), (engine.Reserved{Used: 110 + 1100, Refunded: 9990 + 5100}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	table, err := rule.Compile(&rule.Set{}, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	open := v.call("a", "ann", "m", 100)
	v.engine.Install(table, 2)
	if got := v.engine.Reserved(); len(got) != 1 || got[0].Model != "m" || got[0].Requests != 1 {
		t.Errorf("a rule that is gone has a request: %+v", got)
	}
	v.answer(open, tokens(1))
	if got := v.engine.Reserved(); len(got) != 0 {
		t.Errorf("a rule that is gone has no request: %+v", got)
	}
}

// However requests end, with steps or without, what was used by model adds up to the usage of the limit, also of a shadow rule and of one
// that counts tokens; and nothing stays reserved.
func TestReservedByModel(t *testing.T) {
	v := newVendorOf(t, `rules:
  - {id: team, key: attr:team, limit: 2500usd/year, tokens: {price: usd, reserve: {output: 100}}}
  - {id: count, key: attr:team, algorithm: fixed_window, limit: 1000000000/365d, tokens: {reserve: {output: 100}}}
  - {id: trial, key: attr:team, limit: 1usd/year, mode: shadow, tokens: {price: usd}}`)
	var open []*call
	for n := range 300 {
		open = append(open, v.call("a", "ann", []string{"m", "short"}[n%2], 1000))
		if len(open) < 5 {
			continue
		}
		c := open[0]
		open = open[1:]
		switch n % 6 {
		case 0:
			v.answer(c, tokens(int64(n)))
		case 1:
			for used := range int64(900) {
				c.hold.Reach(0, 100+10*used)
				c.hold.Reach(1, 100+used)
			}
			v.answer(c, tokens(900))
		case 2: // by the handler, which knows nothing of tokens
			c.hold.Reach(0, 5000)
			c.hold.Reach(1, 500)
			if _, err := c.hold.Settle(t.Context(), engine.ByUnit{"usd": 60_000}); err != nil {
				t.Fatal(err)
			}
			v.answer(c, tokens(1))
		case 3: // without a response
			if err := c.hold.End(&rule.Response{}, nil); err != nil {
				t.Fatal(err)
			}
		case 4: // by its id
			if _, err := v.engine.Cancel(t.Context(), c.verdict.Hold); err != nil {
				t.Fatal(err)
			}
			v.answer(c, tokens(1))
		case 5:
			v.answer(c, rule.Response{Status: 500, Tokens: &rule.Usage{}})
		}
	}
	if got := v.shown("team"); got.Requests != 4 || got.Units == 0 || got.Excess == 0 {
		t.Errorf("while 4 are open: %+v", got)
	}
	for _, c := range open {
		v.answer(c, tokens(1))
	}
	for _, id := range []string{"team", "count", "trial"} {
		var d engine.Verdict
		if _, err := v.engine.Standing(t.Context(), id, "attr:team:a", "", &d); err != nil {
			t.Fatal(err)
		}
		got := v.shown(id)
		if used := d.Results[0].Used(); used == 0 || got.Refunded == 0 || got != (engine.Reserved{Used: used, Refunded: got.Refunded}) {
			t.Errorf("%s: %d are used, shown are %+v", id, used, got)
		}
	}
	if got := v.engine.Reserved(); len(got) != 6 || got[0].Used+got[1].Used != v.shown("count").Used || got[0].Model != "m" || got[1].Model != "short" {
		t.Errorf("%+v", got)
	}
}

// A hold that expires under a request is not shown as reserved any more, nor as used. One whose settlement waits for the store is.
func TestReservedExpired(t *testing.T) {
	v := newVendor(t, "reserve: {output: 1000}")
	defer v.engine.Close()
	late := v.call("a", "ann", "m", 1000)
	v.now = v.now.Add(weir.MaxHoldTTL + time.Second)
	v.answer(late, tokens(1))
	if got := v.shown("team"); got != (engine.Reserved{}) {
		t.Errorf("after an expiry: %+v", got)
	}
	pending := v.call("b", "ann", "m", 1000)
	v.losing.lost.Store(true)
	v.answer(pending, tokens(1))
	if got, want := v.shown("team"), (engine.Reserved{Used: 110, Refunded: 9990}); got != want {
		t.Errorf("in an outage: %+v, want %+v", got, want)
	}
}

// The first 500 models that have used something are shown by name, whatever clients invent besides, and no name is longer than it
// should be.
func TestReservedBound(t *testing.T) {
	v := newVendorOf(t, `rules: [{id: team, key: attr:team, algorithm: fixed_window, limit: 1000000000/365d, tokens: {reserve: {output: 1000}}}]`)
	one := func(model string, resp rule.Response) {
		t.Helper()
		v.answer(v.call("a", "ann", model, 1000), resp)
	}
	for n := range 2000 {
		one(fmt.Sprint("invented", n), rule.Response{Status: 404, Tokens: &rule.Usage{}})
	}
	if got := v.engine.Reserved(); len(got) != 1 || got[0].Model != "(other)" || got[0].Refunded == 0 {
		t.Errorf("%+v", got)
	}
	refunded := v.shown("team").Refunded
	one(strings.Repeat("m", 1<<20), tokens(10))
	one("\xff", tokens(10))
	one("(other)", tokens(10))
	first := strings.Clone("model000")
	one(first, tokens(10))
	for n := range 500 {
		one(fmt.Sprintf("model%03d", 1+n), tokens(10))
	}
	all := v.engine.Reserved()
	if unsafe.StringData(all[1].Model) == unsafe.StringData(first) {
		t.Error("the name of a model keeps a request in memory")
	}
	// The others have one place of the 500.
	if len(all) != 500 || all[0].Model != "(other)" || all[0].Used != 5*110 || all[499].Model != "model498" || all[499].Used != 110 {
		t.Errorf("%d models, from %+v to %+v", len(all), all[0], all[len(all)-1])
	}
	if got, want := v.shown("team"), (engine.Reserved{Used: 504 * 110, Refunded: refunded + 504*990}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
