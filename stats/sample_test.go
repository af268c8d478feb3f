package stats

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
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
		if clients != 3 && testkit.Race {
			continue
		}
		for name, took := range took {
			t.Run(fmt.Sprintf("%d/%s", clients, name), func(t *testing.T) {
				d := newDesk(t, "rules: [{id: api, key: user, limit: 100/1m}]")
				table, _ := d.engine.Rules()
				limit := table.Rules()[0].Limits("", "")[0]
				chance := rand.New(rand.NewPCG(1, 2))
				v := &engine.Verdict{Allowed: true, Results: []engine.Result{{Rule: table.Rules()[0], Compiled: limit, Asked: true}}}
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
				if s := d.summary(t); s.Counts.Allowed != requests {
					t.Errorf("%+v", s.Counts)
				}
			})
		}
	}
}

// So do those who come seldom among many: a few denials a second are found as often as
// they were, also when all of them take so long that their times are not in the slot, and
// when they are the first ones in the same slot of every second.
func TestRareSamplesAreFair(t *testing.T) {
	const seconds, perSecond = 200, 6_000
	for name, c := range map[string]struct {
		deny func(i int, chance *rand.Rand) bool
		took func(chance *rand.Rand) time.Duration
	}{
		"as they come": {
			func(_ int, chance *rand.Rand) bool { return chance.IntN(1000) == 0 },
			func(chance *rand.Rand) time.Duration {
				return 100*time.Microsecond + time.Duration(chance.IntN(400_000))
			},
		},
		"always the same": {
			func(i int, _ *rand.Rand) bool { return i%(perSecond/2) == 17 },
			func(*rand.Rand) time.Duration { return 200 * time.Microsecond },
		},
	} {
		if name != "as they come" && testkit.Race {
			continue
		}
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "rules: [{id: api, key: user, limit: 100/1m}]")
			table, _ := d.engine.Rules()
			v := &engine.Verdict{Results: make([]engine.Result, 1)}
			r := &v.Results[0]
			*r = engine.Result{Rule: table.Rules()[0], Compiled: table.Rules()[0].Limits("", "")[0], Asked: true}
			chance := rand.New(rand.NewPCG(5, 6))
			denied, sampling := int64(0), int64(0)
			for i := range seconds * perSecond {
				v.Allowed, r.Key, r.Decision = true, "user:many", weir.Decision{Allowed: true, Limit: 100, Remaining: 50}
				if c.deny(i, chance) {
					v.Allowed, r.Key, r.Decision.Allowed = false, "user:rare", false
					denied++
				}
				d.Observe(&rule.Request{}, v, c.took(chance))
				switch {
				case i%perSecond == perSecond-1:
					d.pass(1)
				case i%(perSecond/4) == 0:
					d.tick(d.clock.now())
					sampling = max(sampling, d.Health().Sampling)
				}
			}
			flush(t, d.Recorder)
			if sampling < 4 || d.Health().Dropped != 0 {
				t.Errorf("at most one in %d; %+v", sampling, d.Health())
			}
			all, err := d.Suggest(t.Context(), "api", noon, d.clock.now(), 0.5)
			if err != nil || len(all) != 1 {
				t.Fatalf("%+v, %v", all, err)
			}
			top, err := d.Top(t.Context(), TopQuery{By: ByDenied, Window: LastHour, N: 1})
			if err != nil || len(top.Keys) != 1 {
				t.Fatalf("%+v, %v", top, err)
			}
			t.Logf("%d were denied; %d by the samples, %d by the ranking; one in %d", denied, all[0].Denied, top.Keys[0].Count, sampling)
			// Whoever reads a ranking later learns that it has estimates, whatever it is now.
			d.pass(60)
			d.pass(60)
			clients, err := d.Clients(t.Context(), ClientsQuery{From: noon, To: d.clock.now()})
			if err != nil {
				t.Fatal(err)
			}
			one, err := d.ClientSeries(t.Context(), "user:rare", noon, d.clock.now())
			if err != nil {
				t.Fatal(err)
			}
			if top.Sampling < sampling || clients.Sampling != top.Sampling || one.Sampling != top.Sampling {
				t.Errorf("1 in %d, %d and %d; want 1 in %d", top.Sampling, clients.Sampling, one.Sampling, sampling)
			}
			for _, got := range []int64{all[0].Denied, top.Keys[0].Count} {
				if got < denied/2 || got > denied*3/2 { // from fifty samples or more, chosen by chance
					t.Errorf("%d of %d denials were found", got, denied)
				}
			}
		})
	}
}

// A recorder without requests wakes up once a second. With many it looks more often, so
// that none of them is left out.
func TestLooksAsOftenAsThereAreSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		kept, err := archive.NewMemory(archive.Keep{})
		if err != nil {
			t.Fatal(err)
		}
		r := newRecorder(t, Options{Archive: kept, Clock: func() time.Time { asked.Add(1); return time.Now() }})
		table := tableOf(t, "rules: [{id: api, key: user, limit: 100/1m}]")
		r.Install(table, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = r.Run(ctx) })
		defer running.Wait()
		defer cancel()

		const seconds = 60
		time.Sleep(seconds * time.Second)
		if n := asked.Load(); n > 5*seconds {
			t.Errorf("it asked for the time %d times in %d idle seconds", n, seconds)
		}

		v := &engine.Verdict{Allowed: true, Results: []engine.Result{{
			Rule: table.Rules()[0], Key: "user:a-name-of-some-length", Asked: true, Compiled: table.Rules()[0].Limits("", "")[0],
			Decision: weir.Decision{Allowed: true, Limit: 100, Remaining: 50},
		}}}
		sampling := int64(0)
		for range 8 * seconds {
			for range samplesSize / 8 / 40 { // each takes a little less than 40 bytes
				r.Observe(&rule.Request{}, v, time.Microsecond)
			}
			time.Sleep(time.Second / 8)
			sampling = max(sampling, r.Health().Sampling)
		}
		if h := r.Health(); sampling != 1 || h.Dropped != 0 {
			t.Errorf("one in %d was looked at, %d were dropped", sampling, h.Dropped)
		}
	})
}
