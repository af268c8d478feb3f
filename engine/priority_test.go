package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

// A request has one priority: its own, else the highest that a rule gives it, else normal.
func TestPriorityOfRequest(t *testing.T) {
	b := newBench(t, `
rules:
  - {id: reports, match: {path: /reports/**}, key: user, limit: 100/1h, priority: low,
     tiers: {pro: {limit: 200/1h, priority: high}, plain: 300/1h}, overrides: {"user:bob": {limit: 1/1h, priority: normal}}}
  - {id: admin, match: {path: /reports/admin}, key: user, limit: unlimited, priority: critical}
  - {id: trial, match: {path: /**}, key: user, limit: 50/1h, priority: critical, mode: shadow}
  - {id: by-address, match: {path: /**}, key: ip, limit: 50/1h, priority: critical}
exempt: {user: [staff]}
block: {user: [mallory]}
`, nil)
	for _, c := range []struct {
		req  rule.Request
		want rule.Priority
	}{
		{rule.Request{User: "alice", Path: "/other"}, rule.Normal}, // only the shadow rule applies
		{rule.Request{User: "alice", Path: "/reports/1"}, rule.Low},
		{rule.Request{User: "alice", Path: "/reports/1", Tier: "pro"}, rule.High},
		{rule.Request{User: "alice", Path: "/reports/1", Tier: "plain"}, rule.Low},
		{rule.Request{User: "alice", Path: "/reports/1", Tier: "unknown"}, rule.Low},
		{rule.Request{User: "bob", Path: "/reports/1", Tier: "pro"}, rule.Normal},
		{rule.Request{User: "alice", Path: "/reports/admin"}, rule.Critical},
		{rule.Request{User: "alice", Path: "/reports/admin", Priority: rule.Low}, rule.Low},
		{rule.Request{User: "alice", Path: "/reports/1", Priority: rule.Critical}, rule.Critical},
		{rule.Request{Path: "/reports/admin"}, rule.Normal}, // without its key, no rule applies
		{rule.Request{User: "staff", Path: "/reports/1"}, rule.Normal},
		{rule.Request{User: "mallory", Path: "/reports/1", Priority: rule.High}, rule.High},
	} {
		if v := b.check(t, c.req); v.Priority != c.want {
			t.Errorf("%+v has the priority %v, want %v", c.req, v.Priority, c.want)
		}
	}
	var invalid *weir.InvalidError
	if err := b.Check(t.Context(), &rule.Request{Priority: rule.Critical + 1}, new(engine.Verdict)); !errors.As(err, &invalid) || invalid.Field != "priority" {
		t.Errorf("an unknown priority: %v", err)
	}
}

const sharedRules = `
rules:
  - id: api
    key: user
    algorithm: fixed_window
    limit: 10/1h
    concurrency: 20
    shares: {low: 50%, normal: 80%, high: 95%}
    warn: 80%
    on_failure: local
    tiers: {pro: {limit: 100/1h, concurrency: 100}}
`

var everyPriority = []rule.Priority{rule.Low, rule.Normal, rule.High, rule.Critical}

// Each priority can use its share, whoever has used the rest, and is told what it has left.
func TestShares(t *testing.T) {
	b := newBench(t, sharedRules, nil)
	used := int64(0)
	for i, fits := range []int64{5, 8, 9, 10} {
		p := everyPriority[i]
		for ; used < fits; used++ {
			v := b.check(t, rule.Request{User: "alice", Priority: p})
			if r := &v.Results[0]; !v.Allowed || r.Remaining != fits-used-1 || r.Leave != 10-fits || r.Used() != used+1 {
				t.Fatalf("%v with %d used: %+v", p, used, r)
			}
		}
		v := b.check(t, rule.Request{User: "alice", Priority: p})
		if v.Allowed || v.Results[0].Remaining != 0 || v.RetryAfter <= 0 || v.RetryAfter > time.Hour {
			t.Fatalf("%v with %d used: %+v", p, used, v.Results[0])
		}
		if r := &v.Results[1]; !r.Allowed || r.Leave != []int64{10, 4, 1, 0}[i] {
			t.Fatalf("%v in flight: %+v", p, r)
		}
	}
	// The limit of a tier has shares of its own, and a cost that cannot fit never does.
	v := b.check(t, rule.Request{User: "bob", Tier: "pro", Priority: rule.Low, Cost: 51})
	if v.Allowed || v.RetryAfter != weir.Never || v.Results[0].Leave != 50 {
		t.Errorf("51 of the half of 100: %+v", v.Results[0])
	}
	if d := engine.Describe(v); !strings.Contains(d.Detail, "costs more than the share of low requests in the limit") {
		t.Error(d.Detail)
	}
	if v := b.check(t, rule.Request{User: "bob", Tier: "pro", Cost: 80}); !v.Allowed {
		t.Errorf("80 of 100 as normal: %+v", v.Results[0])
	}
}

// What is done already is charged whatever should be left, and an override from outside has
// shares, too.
func TestSharesOfChargesAndOverrides(t *testing.T) {
	b := newBench(t, sharedRules, nil)
	v := new(engine.Verdict)
	testkit.OK(t, b.Charge(t.Context(), &rule.Request{User: "alice", Priority: rule.Low, Cost: 7}, v))
	if r := &v.Results[0]; v.Allowed || r.Excess != 0 || r.Receipt == 0 {
		t.Errorf("charged 7 of 5: %+v", r)
	}
	o := engine.Override{ID: "o", Rule: "api", Key: "user:alice", Ends: start.Time().Add(time.Hour)}
	o.Quota = testkit.Must(rule.ParseQuota([]string{"20/1h"}, 0, "", ""))(t)
	b.InstallOverrides([]engine.Override{o})
	if v := b.check(t, rule.Request{User: "alice", Priority: rule.Low}); !v.Allowed || v.Results[0].Leave != 10 || v.Results[0].Remaining != 2 {
		t.Errorf("8 of the half of 20: %+v", v.Results[0])
	}
	o.Quota = testkit.Must(rule.ParseQuota([]string{"1/1h"}, 0, "", ""))(t)
	var invalid *weir.InvalidError
	if _, err := b.ValidateOverride(o); !errors.As(err, &invalid) {
		t.Errorf("an override with no room for low requests: %v", err)
	}
}

// Without the store, each instance uses the shares of its part. Of one unit nothing is left for
// others, or low requests would always be denied.
func TestSharesOfInstances(t *testing.T) {
	for instances, want := range map[int][]int{1: {5, 10}, 2: {2, 5}, 10: {1, 1}} {
		b := newBench(t, sharedRules, func(o *engine.Options) { o.Instances = func() int { return instances } })
		b.store.lost.Store(true)
		for i, p := range []rule.Priority{rule.Low, rule.Critical} {
			allowed := 0
			for range 20 {
				if b.check(t, rule.Request{User: fmt.Sprint(p), Priority: p}).Allowed {
					allowed++
				}
			}
			if allowed != want[i] {
				t.Errorf("%d instances allowed %d %v requests, want %d", instances, allowed, p, want[i])
			}
		}
	}
}

// Requests of all priorities at once, in any order: none gets more than its share, and
// together they get all.
func TestSharesUnderContention(t *testing.T) {
	opened := testkit.Must(redis.Open("redis://" + testredis.Start(t).Addr + "?timeout=1m"))(t)
	t.Cleanup(opened.Close)
	for name, store := range map[string]weir.Store{
		"memory": memory.New(memory.Options{}),
		"redis":  opened,
	} {
		for _, limit := range []string{"sliding_log, limit: 100/1h", "fixed_window, limit: 100/3650d"} { // in Redis, of several scripts
			t.Run(name+" "+limit, func(t *testing.T) {
				e := testkit.Must(engine.New(engine.Options{Store: store}))(t)
				e.Install(table(t, "rules: [{id: api, key: user, algorithm: "+limit+", shares: {low: 50%, normal: 80%, high: 95%}}]"), 1)
				var allowed [rule.Critical + 1]atomic.Int64
				var group sync.WaitGroup
				for _, p := range everyPriority {
					for range 4 {
						group.Go(func() {
							var v engine.Verdict
							for range 30 {
								if err := e.Check(t.Context(), &rule.Request{User: "alice", Priority: p}, &v); err != nil || v.Degraded != nil {
									t.Error(err, v.Degraded)
									return
								}
								if v.Allowed {
									allowed[p].Add(1)
								}
							}
						})
					}
				}
				group.Wait()
				sum := int64(0)
				for i, most := range []int64{50, 80, 95, 100} {
					if n := allowed[everyPriority[i]].Load(); n > most {
						t.Errorf("%d requests of %v were allowed, want at most %d", n, everyPriority[i], most)
					}
					if sum += allowed[everyPriority[i]].Load(); sum > most {
						t.Errorf("%d requests up to %v were allowed, want at most %d", sum, everyPriority[i], most)
					}
				}
				if sum != 100 {
					t.Errorf("%d requests were allowed, want 100", sum)
				}
			})
		}
	}
}
