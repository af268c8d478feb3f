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
