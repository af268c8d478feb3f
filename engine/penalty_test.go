package engine_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

// penalized runs a test on every store.
func penalized(t *testing.T, rules string, test func(t *testing.T, b *bench)) {
	t.Run("memory", func(t *testing.T) { test(t, newBench(t, rules, nil)) })
	t.Run("redis", func(t *testing.T) {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{testredis.Start(t).Addr}, DisableCache: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		b := newBench(t, rules, nil)
		store, err := redis.New(client, redis.Options{Timeout: 10 * time.Second, Clock: func() weir.Micros { return weir.Micros(b.now.Load()) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		b.store.Store = store
		test(t, b)
	})
}

// denied checks a request that is denied for so long, by a penalty or without one.
func (b *bench) denied(t *testing.T, req rule.Request, retry time.Duration, penalty bool) *engine.Verdict {
	t.Helper()
	v := b.check(t, req)
	if v.Allowed || v.RetryAfter != retry || v.Speaker() == nil || v.Speaker().Penalty != penalty {
		t.Fatalf("allowed %v, retry after %v, want %v with penalty %v: %+v", v.Allowed, v.RetryAfter, retry, penalty, v.Results)
	}
	return v
}

func (b *bench) allowed(t *testing.T, req rule.Request) *engine.Verdict {
	t.Helper()
	v := b.check(t, req)
	if !v.Allowed {
		t.Fatalf("denied: %+v", v.Results)
	}
	return v
}

// A denial starts the penalty, no further one prolongs it, and it ends to the microsecond.
func TestPenalty(t *testing.T) {
	penalized(t, "rules: [{id: login, key: user, algorithm: sliding_log, limits: [2/1m, 9/1d], penalty: 15m}]", func(t *testing.T, b *bench) {
		b.allowed(t, alice)
		if v := b.allowed(t, alice); len(v.Results) != 2 || v.Name(&v.Results[0]) != "login:1m" || v.Speaker().Remaining != 0 || v.Speaker().Penalty {
			t.Errorf("%+v", v.Results)
		}
		b.denied(t, alice, 15*time.Minute, true)
		bob := alice
		bob.User = "bob"
		b.allowed(t, bob)
		b.pass(5 * time.Minute)
		v := b.denied(t, alice, 10*time.Minute, true)
		if d := engine.Describe(v); d.Detail != "The limit login was exceeded, so a penalty runs; try again in 600 s." {
			t.Errorf("%s", d.Detail)
		}
		if r := &v.Results[0]; len(v.Results) != 2 || r.Limit != 2 || r.Remaining != 0 || r.ResetAfter != 10*time.Minute || v.Outcome() != engine.OutcomeDenied {
			t.Errorf("%+v", v.Results)
		}
		b.pass(10*time.Minute - time.Microsecond)
		b.denied(t, alice, time.Microsecond, true)
		b.pass(time.Microsecond)
		b.allowed(t, alice)
	})
}

// A penalty that takes several denials needs them within its time.
func TestPenaltyAfterSeveral(t *testing.T) {
	penalized(t, "rules: [{id: login, key: user, algorithm: fixed_window, limit: 1/1h, penalty: {after: 3, within: 1m, for: 2h}}]", func(t *testing.T, b *bench) {
		b.allowed(t, alice)
		b.denied(t, alice, time.Hour, false)
		b.denied(t, alice, time.Hour, false)
		b.pass(time.Minute)
		b.denied(t, alice, 59*time.Minute, false)
		b.denied(t, alice, 59*time.Minute, false)
		b.denied(t, alice, 2*time.Hour, true)
		before := b.store.calls.Load()
		b.denied(t, alice, 2*time.Hour, true)
		if calls := b.store.calls.Load() - before; calls != 1 {
			t.Errorf("a denial during a penalty took %d calls of the store", calls)
		}
		if _, err := b.Reset(t.Context(), "login", "user:alice"); err != nil {
			t.Fatal(err)
		}
		b.allowed(t, alice)
		b.denied(t, alice, 59*time.Minute, false) // the denials were reset, too
	})
}

// What must not start a penalty: a peek, a shadow rule, a denial by another rule, and a
// cost that the limit never allows.
func TestPenaltyStartsOnlyByItsOwnLimit(t *testing.T) {
	penalized(t, `
rules:
  - {id: tried, key: user, algorithm: sliding_log, limit: 1/1m, penalty: 1h, mode: shadow}
  - {id: wide, key: user, algorithm: sliding_log, limit: 3/1m, penalty: 1h}
  - {id: tight, key: user, algorithm: sliding_log, limit: 2/1m}
`, func(t *testing.T, b *bench) {
		b.allowed(t, alice)
		b.allowed(t, alice)
		b.denied(t, alice, time.Minute, false)
		huge := alice
		huge.Cost = 4
		b.denied(t, huge, weir.Never, false)
		var v engine.Verdict
		peeked := alice
		peeked.Cost = 2
		if err := b.Peek(t.Context(), &peeked, &v); err != nil || v.Allowed || v.RetryAfter != time.Minute {
			t.Errorf("%v, %+v", err, v)
		}
		b.pass(time.Minute)
		b.allowed(t, alice)
		b.denied(t, peeked, time.Minute, false)
		three := alice
		three.Cost = 3
		b.denied(t, three, weir.Never, true) // of tight, and wide denies, too
		if err := b.Peek(t.Context(), &alice, &v); err != nil || v.Allowed || v.RetryAfter != time.Hour || !v.Results[0].Penalty {
			t.Errorf("%v, %+v", err, v.Results)
		}
		if _, err := b.Standing(t.Context(), "", "user:alice", "", &v); err != nil {
			t.Fatal(err)
		}
		for _, r := range v.Results {
			if penalty := r.Rule.ID == "wide"; r.Penalty != penalty || penalty && (r.Remaining != 0 || r.ResetAfter != time.Hour) {
				t.Errorf("%+v", r)
			}
		}
	})
}

// Clients at the same time start one penalty.
func TestPenaltyStartsOnce(t *testing.T) {
	penalized(t, "rules: [{id: login, key: user, algorithm: sliding_log, limit: 1/1m, penalty: {after: 5, within: 1m, for: 15m}}]", func(t *testing.T, b *bench) {
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				var v engine.Verdict
				if err := b.Check(t.Context(), &alice, &v); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		b.denied(t, alice, 15*time.Minute, true)
		b.pass(15 * time.Minute)
		b.allowed(t, alice)
		b.denied(t, alice, time.Minute, false)
	})
}

// Tiers and overrides have the penalty, but who is unlimited has none. While the store is
// unavailable, local fallback has penalties, too, and knows those that ran.
func TestPenaltyElsewhere(t *testing.T) {
	b := newBench(t, `
rules:
  - id: login
    key: user
    algorithm: sliding_log
    limit: 5/1m
    tiers: {pro: 1/1m}
    overrides: {user:root: unlimited}
    penalty: 15m
    on_failure: local
`, func(o *engine.Options) { o.Local = memory.New(memory.Options{Clock: o.Clock}) })
	root, pro, bob := alice, alice, alice
	root.User, pro.Tier, bob.User, bob.Tier = "root", "pro", "bob", "pro"
	if v := b.allowed(t, root); len(v.Results) != 0 {
		t.Errorf("%+v", v.Results)
	}
	b.allowed(t, pro)
	b.denied(t, pro, 15*time.Minute, true)
	b.denied(t, alice, 15*time.Minute, true) // whatever her tier is by now
	b.denied(t, alice, 15*time.Minute, true)

	b.store.lost.Store(true)
	if v := b.denied(t, alice, 15*time.Minute, true); v.Degraded == nil {
		t.Error("it is not degraded")
	}
	b.allowed(t, bob)
	b.denied(t, bob, 15*time.Minute, true)
	b.pass(15 * time.Minute)
	b.allowed(t, bob)
	var v engine.Verdict
	if err := b.Peek(t.Context(), &bob, &v); err != nil || v.Allowed || v.RetryAfter != time.Minute {
		t.Errorf("%v, %+v", err, v.Results)
	}
	b.pass(time.Minute)
	b.allowed(t, bob)
}

// A reservation that is denied starts a penalty, too, and its hold is on the limits of the
// rule only. What is charged although it does not fit starts none.
func TestPenaltyOfReservations(t *testing.T) {
	penalized(t, "rules: [{id: tokens, key: user, algorithm: sliding_log, limit: 10/1h, penalty: 2h}]", func(t *testing.T, b *bench) {
		clock := func() weir.Micros { return weir.Micros(b.now.Load()) }
		e, err := engine.New(engine.Options{Store: b.store.Store, Clock: clock}) // which can hold units
		if err != nil {
			t.Fatal(err)
		}
		b.Engine = e
		e.Install(table(t, "rules: [{id: tokens, key: user, algorithm: sliding_log, limit: 10/1h, penalty: 2h}]"), 1)
		six := alice
		six.Cost = 6
		var v engine.Verdict
		if err := e.Charge(t.Context(), &six, &v); err != nil || !v.Allowed {
			t.Fatalf("%v, %+v", err, v)
		}
		if err := e.Charge(t.Context(), &six, &v); err != nil || v.Allowed || v.Results[0].Penalty {
			t.Fatalf("%v, %+v", err, v)
		}
		b.pass(time.Hour)
		if err := e.Reserve(t.Context(), &six, 0, &v); err != nil || !v.Allowed {
			t.Fatalf("%v, %+v", err, v)
		}
		hold := v.Hold
		if err := e.Reserve(t.Context(), &six, 0, &v); err != nil || v.Allowed || v.RetryAfter != 2*time.Hour || !v.Results[0].Penalty {
			t.Fatalf("%v, %+v", err, v)
		}
		done, err := e.Settle(t.Context(), hold, engine.Units(2))
		if err != nil || done.State != weir.HoldSettled || len(done.Parts) != 1 || done.Parts[0].Reserved != 6 {
			t.Fatalf("%v, %+v", err, done)
		}
		b.denied(t, alice, 2*time.Hour, true)
		b.pass(2 * time.Hour)
		b.allowed(t, alice)
	})
}

// late is a store whose time is over when it has answered.
type late struct{ *losable }

func (late) Timeout() time.Duration { return time.Nanosecond }

// A local penalty starts although the store has used up the time of the request.
func TestPenaltyAfterTheDeadline(t *testing.T) {
	b := newBench(t, "rules: [{id: login, key: user, algorithm: sliding_log, limit: 1/1m, penalty: 15m}]", func(o *engine.Options) { o.Store = late{o.Store.(*losable)} })
	b.store.busy.Store(true)
	b.allowed(t, alice)
	b.denied(t, alice, 15*time.Minute, true)
}
