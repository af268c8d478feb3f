package stats

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// Those who are looked at stand for all: whatever the order in which clients come, and
// even if every decision takes the same time, each is counted about as often as it came.
func TestSamplesAreFair(t *testing.T) {
	const requests, perLook = 100_000, 5_000
	took := map[string]func(*rand.Rand) time.Duration{
		"always the same": func(*rand.Rand) time.Duration { return 700 },
		"none":            func(*rand.Rand) time.Duration { return 0 },
		"as it comes":     func(c *rand.Rand) time.Duration { return time.Duration(300 + 200*c.ExpFloat64()) },
		"slow":            func(c *rand.Rand) time.Duration { return time.Millisecond },
	}
	for _, clients := range []int{2, 3, 8, 32} {
		for name, took := range took {
			t.Run(fmt.Sprintf("%d/%s", clients, name), func(t *testing.T) {
				d := newDesk(t, "rules: [{id: api, key: user, limit: 100/1m}]")
				table, _ := d.engine.Rules()
				limit := table.Rules()[0].Limits("", "")[0]
				chance := rand.New(rand.NewPCG(1, 2))
				v := &engine.Verdict{Allowed: true, Results: []engine.Result{{Rule: table.Rules()[0], Limit: limit, Asked: true}}}
				r := &v.Results[0]
				keys := make([]string, clients)
				for i := range keys {
					keys[i] = fmt.Sprint("user:", i)
				}
				for i := range requests {
					who := i % clients
					r.Key = keys[who]
					r.Decision = weir.Decision{Allowed: true, Limit: 100, Remaining: 100 - int64(who)}
					d.Observe(&rule.Request{}, v, took(chance))
					if i%perLook == perLook-1 {
						d.pass(1)
					}
				}
				flush(t, d.Recorder)
				if h := d.Health(); h.Sampling < 4 || h.Dropped != 0 {
					t.Errorf("%+v", h)
				}
				top, err := d.Top(t.Context(), TopQuery{By: ByAllowed, Window: LastHour, N: clients})
				if err != nil || len(top.Keys) != clients {
					t.Fatalf("%+v, %v", top, err)
				}
				each := int64(requests / clients)
				for _, e := range top.Keys {
					if e.Count < each*3/4 || e.Count > each*5/4 {
						t.Errorf("%s came %d times, want about %d", e.Key, e.Count, each)
					}
				}
				// And so do those whose use of a limit is counted.
				half, err := d.Suggest(t.Context(), "api", noon, d.clock.now(), 0.5)
				if err != nil || len(half) != 1 {
					t.Fatalf("%+v, %v", half, err)
				}
				if n := half[0].Requests; n < requests*9/10 || n > requests*11/10 {
					t.Errorf("%d requests came to the limit, want about %d", n, requests)
				}
				// The counts are exact in any case.
				if s := d.summary(t); s.Requests.Allowed != requests {
					t.Errorf("%+v", s.Requests)
				}
			})
		}
	}
}

// So do those who come seldom among many: a few denials in a slot and second are found
// as often as they were, also when all of them take so long that their times are not in
// the slot.
func TestRareSamplesAreFair(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, limit: 100/1m}]")
	table, _ := d.engine.Rules()
	limit := table.Rules()[0].Limits("", "")[0]
	chance := rand.New(rand.NewPCG(5, 6))
	verdict := func(key string, allowed bool) *engine.Verdict {
		return &engine.Verdict{Allowed: allowed, Results: []engine.Result{{
			Rule: table.Rules()[0], Limit: limit, Asked: true, Key: key, Decision: weir.Decision{Allowed: allowed, Limit: 100, Remaining: 50},
		}}}
	}
	// One verdict, so that all are in one stripe.
	v, yes, no := new(engine.Verdict), verdict("user:many", true), verdict("user:rare", false)
	const seconds, perSecond, rare = 60, 20_000, 500
	denied := int64(0)
	for i := range seconds * perSecond {
		if *v = *yes; chance.IntN(rare) == 0 {
			*v = *no
			denied++
		}
		d.Observe(&rule.Request{}, v, 100*time.Microsecond+time.Duration(chance.IntN(400_000)))
		switch {
		case i%perSecond == perSecond-1:
			d.pass(1)
		case i%(perSecond/4) == 0:
			d.tick(d.clock.now())
		}
	}
	flush(t, d.Recorder)
	if h := d.Health(); h.Sampling < 4 || h.Dropped != 0 {
		t.Errorf("%+v", h)
	}
	all, err := d.Suggest(t.Context(), "api", noon, d.clock.now(), 0.5)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	top, err := d.Top(t.Context(), TopQuery{By: ByDenied, Window: LastHour, N: 1})
	if err != nil || len(top.Keys) != 1 {
		t.Fatalf("%+v, %v", top, err)
	}
	t.Logf("%d were denied; %d by the samples, %d by the ranking; %+v", denied, all[0].Denied, top.Keys[0].Count, d.Health())
	for _, got := range []int64{all[0].Denied, top.Keys[0].Count} {
		if got < denied*6/10 || got > denied*14/10 { // of about 150 samples: five times their deviation
			t.Errorf("%d of %d denials were found", got, denied)
		}
	}
}
