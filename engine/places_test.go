package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

// flights is an engine whose requests stay in flight for a while.
type flights struct {
	*engine.Engine
	gate   *engine.Gate
	t      testing.TB
	v      engine.Verdict
	denial engine.Denial
}

func newFlights(t testing.TB, rules string, store weir.Store) *flights {
	t.Helper()
	if store == nil {
		store = memory.New(memory.Options{Clock: func() weir.Micros { return weir.MicrosOf(time.Now()) }})
	}
	f := &flights{t: t, Engine: testkit.Must(engine.New(engine.Options{Store: store}))(t)}
	t.Cleanup(f.Close)
	f.load(rules)
	f.gate = testkit.Must(engine.NewGate(f.Engine, 0, nil))(t)
	return f
}

func (f *flights) load(rules string) {
	f.t.Helper()
	testkit.OK(f.t, f.Load("rules.yaml", []byte(rules)))
}

// begin begins a request, and returns nil if it is denied.
func (f *flights) begin(req rule.Request) *engine.Hold {
	f.t.Helper()
	if !testkit.Must(f.gate.Reserve(f.t.Context(), &req, time.Minute, &f.v, &f.denial))(f.t) {
		return nil
	}
	return f.gate.Serve(&req, time.Minute, &f.v)
}

func end(h *engine.Hold) { h.End(&rule.Response{Status: 200}, nil) }

// left is what a client has left of each limit.
func (f *flights) left(key string) (left []int64) {
	f.t.Helper()
	var v engine.Verdict
	testkit.Must(f.Standing(f.t.Context(), "", key, "", &v))(f.t)
	for _, r := range v.Results {
		left = append(left, r.Remaining)
	}
	return left
}

func (f *flights) mustLeave(want ...int64) {
	f.t.Helper()
	got := f.left("user:alice")
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			f.t.Fatalf("%v are left, want %v", got, want)
		}
	}
}

const besideRate = "rules: [{id: api, key: user, limit: 5/1h, algorithm: sliding_log, cost: 2, concurrency: 2}]"

// A request is in flight until it ends. All limits of a rule are charged, or none.
func TestInFlight(t *testing.T) {
	f := newFlights(t, besideRate, nil)
	first, second := f.begin(alice), f.begin(alice)
	f.mustLeave(1, 0)
	if f.begin(alice) != nil {
		t.Fatal("a third was allowed")
	}
	f.mustLeave(1, 0)
	if d := f.denial; d.RetryAfter <= time.Minute || len(d.Policies) != 2 || d.Policies[1] != "api:concurrency" {
		t.Errorf("%+v", d)
	}
	end(first)
	end(first)
	f.mustLeave(1, 1)
	if f.begin(alice) != nil {
		t.Fatal("the rate is used up")
	}
	f.mustLeave(1, 1)
	end(second)
	f.mustLeave(1, 2)
}

// Beside another limit that denies, a place is not what the client waits for.
func TestInFlightDenialBesideAnother(t *testing.T) {
	f := newFlights(t, "rules: [{id: api, key: user, concurrency: 1}, {id: day, key: user, limit: 1/1d}]", nil)
	defer end(f.begin(alice))
	if f.begin(alice) != nil {
		t.Fatal("a second was allowed")
	}
	if d := f.denial; d.RetryAfter < time.Hour || !strings.HasPrefix(d.Detail, "The limit api allows 1 request at the same time; because of another limit, try again in ") {
		t.Errorf("%v: %s", d.RetryAfter, d.Detail)
	}
}

// A client is told to try again soon, although nobody knows when.
func TestInFlightDenial(t *testing.T) {
	f := newFlights(t, "rules: [{id: api, key: user, concurrency: 1, hold_ttl: 5m}]", nil)
	defer end(f.begin(alice))
	if f.begin(alice) != nil {
		t.Fatal("a second was allowed")
	}
	d := f.denial
	if f.v.RetryAfter < 4*time.Minute || d.RetryAfter != time.Second || d.HTTPStatus() != 429 || d.Detail != "The limit api allows 1 request at the same time; try again in 1 s." {
		t.Errorf("%v %+v", f.v.RetryAfter, d)
	}
}

// Tiers, overrides and temporary overrides have their own numbers, of the same places.
func TestInFlightQuotas(t *testing.T) {
	f := newFlights(t, "rules: [{id: api, key: user, concurrency: 1, tiers: {pro: {concurrency: 3}}, overrides: {'user:bob': {concurrency: 2}}}]", nil)
	pro := rule.Request{User: "alice", Tier: "pro"}
	for range 3 {
		defer end(f.begin(pro))
	}
	if f.begin(pro) != nil || f.begin(alice) != nil {
		t.Error("a fourth was allowed")
	}
	bob := rule.Request{User: "bob"}
	defer end(f.begin(bob))
	defer end(f.begin(bob))
	if f.begin(bob) != nil {
		t.Error("a third of bob was allowed")
	}
	quota := testkit.Must(rule.ParseQuota([]string{"concurrency 3", "100/1h"}, 0, "", ""))(t)
	if got := quota.Texts(); len(got) != 2 || got[1] != "concurrency 3" {
		t.Errorf("%q", got)
	}
	f.InstallOverrides([]engine.Override{{ID: "x", Rule: "api", Key: "user:bob", Quota: quota, Ends: time.Now().Add(time.Hour)}})
	if h := f.begin(bob); h == nil {
		t.Error("a third of bob was denied")
	} else {
		end(h)
	}
}

// A place is kept for as long as its request is in flight, however long that is, and not a
// moment is missed. That of a request that settles, too.
func TestInFlightForLong(t *testing.T) {
	for name, rules := range map[string]string{
		"alone":    "rules: [{id: api, key: user, concurrency: 1, hold_ttl: 10s}]",
		"settling": "rules: [{id: api, key: user, concurrency: 1, hold_ttl: 10s, limit: 5/1h, algorithm: fixed_window, count: {status: 500}}]",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFlights(t, rules, nil)
				h := f.begin(alice)
				for range 300 {
					time.Sleep(time.Second)
					if f.begin(alice) != nil {
						t.Fatal("a second was allowed")
					}
				}
				if h := engine.HoldOf(h.Context(t.Context())); h != nil {
					testkit.Must(h.Settle(t.Context(), engine.Units(2)))(t)
					if f.begin(alice) != nil {
						t.Fatal("it is settled, and still in flight")
					}
					time.Sleep(time.Minute)
				}
				if f.begin(alice) != nil {
					t.Fatal("a second was allowed")
				}
				end(h)
				if h := f.begin(alice); h == nil {
					t.Fatal("denied after the end")
				} else {
					end(h)
				}
				f.Close()
			})
		})
	}
}

// A place is renewed once, and not by the hold of its request, too.
func TestInFlightRenewedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlights(t, "rules: [{id: api, key: user, concurrency: 3, hold_ttl: 10s, limit: 5/1h, algorithm: fixed_window, count: {status: 500}}]", nil)
		h := f.begin(alice)
		for range 20 {
			time.Sleep(3 * time.Second)
			f.mustLeave(4, 2)
		}
		end(h)
		f.mustLeave(5, 3)
		f.Close()
	})
}

// A handler that settles is still in flight.
func TestInFlightAfterSettling(t *testing.T) {
	f := newFlights(t, "rules: [{id: api, key: user, concurrency: 1, limit: 5/1h, algorithm: fixed_window, count: {status: 500}}]", nil)
	h := f.begin(alice)
	testkit.Must(h.Settle(t.Context(), engine.Units(3)))(t)
	f.mustLeave(2, 0)
	end(h)
	f.mustLeave(2, 1)
}

// Who outlives the handler says when it is over.
func TestInFlightKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlights(t, "rules: [{id: api, key: user, concurrency: 1}]", nil)
		h := f.begin(alice)
		leave := h.Keep()
		end(h)
		time.Sleep(time.Hour)
		f.mustLeave(0)
		leave()
		leave()
		f.mustLeave(1)
		if h.Keep() != nil {
			t.Error("there is something to leave")
		}
	})
}

// A reset leaves requests in flight alone, and a lower limit lets them finish.
func TestInFlightAfterChanges(t *testing.T) {
	f := newFlights(t, besideRate, nil)
	first, second := f.begin(alice), f.begin(alice)
	testkit.Must(f.Reset(t.Context(), "", "user:alice"))(t)
	f.mustLeave(5, 0)
	f.load("rules: [{id: api, key: user, limit: 50/1h, algorithm: fixed_window, concurrency: 1}]")
	end(first)
	if f.begin(alice) != nil {
		t.Error("another was allowed, and there is one")
	}
	end(second)
	if h := f.begin(alice); h == nil {
		t.Error("denied, and there is none")
	} else {
		end(h)
	}
}

// Over protocols, the end of a hold is the end of its request, whatever was used.
func TestInFlightHolds(t *testing.T) {
	f := newFlights(t, besideRate, nil)
	reserve := func() weir.HoldID {
		var v engine.Verdict
		req := alice
		testkit.OK(t, f.Reserve(t.Context(), &req, time.Hour, &v))
		if now := v.Results[0].ResetAt.Add(-v.Results[0].ResetAfter); v.HoldExpires.Sub(now) != time.Minute {
			t.Errorf("it lasts %v, longer than its place", v.HoldExpires.Sub(now))
		}
		return v.Hold
	}
	first, second := reserve(), reserve()
	f.mustLeave(1, 0)
	done := testkit.Must(f.Settle(t.Context(), first, engine.Units(1)))(t)
	f.mustLeave(2, 1)
	if len(done.Parts) != 1 || done.Parts[0].Reserved != 2 || done.Parts[0].Used != 1 {
		t.Errorf("%+v", done)
	}
	testkit.Must(f.Cancel(t.Context(), second))(t)
	f.mustLeave(4, 2)
	alone := newFlights(t, "rules: [{id: api, key: user, concurrency: 2}]", nil)
	var v engine.Verdict
	req := alice
	testkit.OK(t, alone.Reserve(t.Context(), &req, 0, &v))
	alone.mustLeave(1)
	testkit.Must(alone.Settle(t.Context(), v.Hold, engine.Units(7)))(t)
	alone.mustLeave(2)
}

// To extend a hold renews its place, also while the store is unavailable.
func TestInFlightExtended(t *testing.T) {
	for name, lost := range map[string]bool{"store": false, "local": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &losing{Store: now()}
				f := newFlights(t, "rules: [{id: api, key: user, concurrency: 1, on_failure: local, limit: 5/1h, algorithm: fixed_window}]", store)
				store.lost.Store(lost)
				var v, other engine.Verdict
				req := alice
				testkit.OK(t, f.Reserve(t.Context(), &req, time.Hour, &v))
				for range 5 {
					time.Sleep(50 * time.Second)
					s := testkit.Must(f.Extend(t.Context(), v.Hold, time.Hour))(t)
					if s.State != weir.HoldOpen || s.Expires != weir.MicrosOf(time.Now()).Add(time.Minute) {
						t.Fatalf("%+v", s)
					}
					if testkit.OK(t, f.Check(t.Context(), &req, &other)); other.Allowed {
						t.Fatal("a second was allowed")
					}
				}
				testkit.Must(f.Cancel(t.Context(), v.Hold))(t)
				if testkit.OK(t, f.Check(t.Context(), &req, &other)); !other.Allowed {
					t.Error("denied after the end")
				}
				f.Close()
			})
		})
	}
}

// losing is a store with holds that can be lost.
type losing struct {
	*memory.Store
	lost atomic.Bool
}

func (l *losing) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if l.lost.Load() {
		return dst, errors.New("lost")
	}
	return l.Store.Take(ctx, dst, ops...)
}

func (l *losing) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	if l.lost.Load() {
		return dst, errors.New("lost")
	}
	return l.Store.Reserve(ctx, dst, r, ops...)
}

// What is done already, and a further part of a request, takes no place.
func TestInFlightOnce(t *testing.T) {
	f := newFlights(t, besideRate, nil)
	req := alice
	testkit.OK(t, f.Charge(t.Context(), &req, &f.v))
	f.mustLeave(3, 2)
	if !testkit.Must(f.gate.Continue(t.Context(), &req, &f.v, &f.denial))(t) || f.v.Places() {
		t.Errorf("%+v", f.v)
	}
	f.mustLeave(1, 2)
	testkit.OK(t, f.Check(t.Context(), &rule.Request{User: "bob"}, &f.v))
	if !f.v.Places() {
		t.Error("a check took no place")
	}
	testkit.OK(t, f.Refund(t.Context(), &f.v))
	if got := f.left("user:bob"); got[0] != 5 || got[1] != 2 {
		t.Errorf("after a refund, %v are left", got)
	}
}

// Shadow rules count requests in flight, and deny none. A denied request is not in flight.
func TestInFlightShadow(t *testing.T) {
	f := newFlights(t, `
rules:
  - {id: api, key: user, limit: 2/1h, algorithm: fixed_window}
  - {id: trial, key: user, concurrency: 1, mode: shadow}
  - {id: counting, key: user, limit: 100/1h, algorithm: fixed_window, count_denied: true, concurrency: 5, mode: shadow}
`, nil)
	first, second := f.begin(alice), f.begin(alice)
	f.mustLeave(0, 0, 98, 3)
	if f.begin(alice) != nil {
		t.Fatal("a third was allowed")
	}
	f.mustLeave(0, 0, 97, 3)
	end(first)
	end(second)
	f.mustLeave(0, 1, 97, 5)
}

// failing is a store that can be lost.
type failing struct {
	weir.Store
	lost atomic.Bool
}

func (f *failing) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if f.lost.Load() {
		return dst, errors.New("lost")
	}
	return f.Store.Take(ctx, dst, ops...)
}

// Without the store, a rule that is local goes on, and what it has taken comes back.
func TestInFlightDegraded(t *testing.T) {
	for policy, want := range map[string]int{"local": 1, "open": 3, "closed": 0} {
		store := &failing{Store: memory.New(memory.Options{})}
		f := newFlights(t, "rules: [{id: api, key: user, concurrency: 1, on_failure: "+policy+"}]", store)
		store.lost.Store(true)
		for range 2 {
			var holds []*engine.Hold
			allowed := 0
			for range 3 {
				h := f.begin(alice)
				if f.v.Allowed {
					allowed++
				}
				if h != nil {
					holds = append(holds, h)
				}
			}
			if allowed != want {
				t.Errorf("%s: %d were allowed, want %d", policy, allowed, want)
			}
			for _, h := range holds {
				end(h)
			}
		}
	}
}

// Two instances share their places in Redis.
func TestInFlightInRedis(t *testing.T) {
	server := testredis.Start(t)
	open := func() *flights {
		s := testkit.Must(redis.Open("redis://" + server.Addr + "?timeout=10s"))(t)
		t.Cleanup(s.Close)
		return newFlights(t, "rules: [{id: api, key: user, concurrency: 2, hold_ttl: 1h, limit: 100/1h, count: {status: 500}}]", s)
	}
	one, two := open(), open()
	first, second := one.begin(alice), two.begin(alice)
	if one.begin(alice) != nil || two.begin(alice) != nil {
		t.Fatal("a third was allowed")
	}
	end(first)
	if first = two.begin(alice); first == nil {
		t.Fatal("denied, and there is a place")
	}
	end(first)
	end(second)
	one.mustLeave(100, 2)
}
