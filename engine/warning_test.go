package engine_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// warned writes down the warnings of several engines.
type warned struct {
	mu  sync.Mutex
	all []string
}

func (w *warned) Observe(*rule.Request, *engine.Verdict, time.Duration) {}

func (w *warned) ObserveWarning(x engine.Warning) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, fmt.Sprintf("%s %s %d%% %d/%d", x.Rule.ID, x.Key, x.Threshold, x.Used, x.Limit))
}

// take returns the warnings since the last call.
func (w *warned) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// warnBench is two engines on one store, whose warnings come to one place.
type warnBench struct {
	*holdBench
	warned
	engines [2]*engine.Engine
}

func onWarnStores(t *testing.T, rules string, test func(t *testing.T, b *warnBench)) {
	onStores(t, rules, func(t *testing.T, h *holdBench) {
		b := &warnBench{holdBench: h}
		for i := range b.engines {
			b.engines[i] = testkit.Must(engine.New(engine.Options{Store: h.store, Clock: h.clock, Observers: []engine.Observer{&b.warned}}))(t)
			b.engines[i].Install(table(t, rules), 1)
			t.Cleanup(b.engines[i].Close)
		}
		test(t, b)
	})
}

// use makes requests of one unit, one engine after the other.
func (b *warnBench) use(t *testing.T, n int) (v engine.Verdict) {
	t.Helper()
	for i := range n {
		testkit.OK(t, b.engines[i%2].Check(t.Context(), &rule.Request{User: "alice"}, &v))
	}
	return v
}

func (b *warnBench) later(d time.Duration) { b.now.Add(d.Microseconds()) }

func (b *warnBench) told(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := b.take(); !slices.Equal(got, want) {
		t.Errorf("%s: the warnings are %q, want %q", what, got, want)
	}
}

// A client is told of with every request from a threshold on, and the observers once per window
// and threshold, although its usage falls below and comes back.
func TestWarnOncePerWindow(t *testing.T) {
	rules := "rules: [{id: plan, key: user, algorithm: fixed_window, limit: 10/1h, warn: [80%, 100%]}]"
	onWarnStores(t, rules, func(t *testing.T, b *warnBench) {
		if v := b.use(t, 7); v.Results[0].Warning() != 0 {
			t.Errorf("a warning at 70%%: %+v", v.Results)
		}
		b.told(t, "70%")
		v := b.use(t, 1)
		if v.Results[0].Warning() != 80 {
			t.Errorf("no warning at 80%%: %+v", v.Results)
		}
		b.told(t, "80%", "plan user:alice 80% 8/10")
		testkit.OK(t, b.engines[0].Refund(t.Context(), &v))
		if v := b.use(t, 2); v.Results[0].Warning() != 80 {
			t.Errorf("no warning at 90%%: %+v", v.Results)
		}
		b.told(t, "after a refund")
		b.use(t, 1)
		b.told(t, "100%", "plan user:alice 100% 10/10")
		if v := b.use(t, 5); v.Allowed || v.Results[0].Warning() != 100 {
			t.Errorf("denied: %+v", v.Results)
		}
		b.later(59*time.Minute + 59*time.Second)
		b.use(t, 4)
		b.told(t, "the end of the window")
		b.later(time.Second)
		testkit.OK(t, b.engines[1].Check(t.Context(), &rule.Request{User: "alice", Cost: 10}, &v))
		b.told(t, "the next window", "plan user:alice 80% 10/10", "plan user:alice 100% 10/10")
	})
}

// A month of the calendar is a window like any other, also with a billing day and a zone.
func TestWarnOncePerMonth(t *testing.T) {
	rules := "rules: [{id: plan, key: user, limit: 10/month, zone: Asia/Shanghai, starts: 15, warn: 80%}]"
	onWarnStores(t, rules, func(t *testing.T, b *warnBench) {
		for range 3 {
			b.use(t, 10)
			b.told(t, "a month", "plan user:alice 80% 8/10")
			v := b.use(t, 1)
			b.later(v.Results[0].ResetAfter - time.Second)
			b.use(t, 2)
			b.told(t, "its end")
			b.later(time.Second)
		}
	})
}

// Without a window, a client is not told of again while it stays near the threshold, but is when
// everything it had used has reset.
func TestWarnOnceUntilReset(t *testing.T) {
	for _, limit := range []string{
		"{id: plan, key: user, limit: 10/10s, warn: 50%}",
		"{id: plan, key: user, algorithm: leaky_bucket, limit: 5/10s, burst: 10, warn: 50%}",
		"{id: plan, key: user, algorithm: sliding_log, limit: 10/10s, warn: 50%}",
		"{id: plan, key: user, algorithm: sliding_window, limit: 10/10s, warn: 50%}",
		"{id: plan, key: user, algorithm: sliding_buckets, limit: 10/10s, warn: 50%}",
	} {
		onWarnStores(t, "rules: ["+limit+"]", func(t *testing.T, b *warnBench) {
			c, _ := b.engines[0].Rules()
			full := c.Find("plan").Limits("", "")[0].FullReset()
			b.use(t, 5)
			b.told(t, limit, "plan user:alice 50% 5/10")
			for range 40 { // it falls below, and comes back
				b.later(full / 8)
				for v := b.use(t, 1); v.Results[0].Warning() == 0; {
					v = b.use(t, 1)
				}
			}
			b.told(t, limit+": still there")
			b.later(full)
			if v := b.use(t, 1); v.Results[0].Remaining != 9 {
				t.Errorf("%s: not reset after %v: %+v", limit, full, v.Results)
			}
			b.later(full / 8)
			b.use(t, 5)
			b.told(t, limit+": again", "plan user:alice 50% 5/10")
		})
	}
}

// Two instances that see the crossing at once tell of it once.
func TestWarnOnceAtOnce(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "token_bucket"} {
		rules := "rules: [{id: plan, key: user, algorithm: " + algorithm + ", limit: 100/1h, warn: [50%, 80%, 95%]}]"
		onWarnStores(t, rules, func(t *testing.T, b *warnBench) {
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					var v engine.Verdict
					for range 12 {
						if err := b.engines[i%2].Check(t.Context(), &rule.Request{User: "alice"}, &v); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			all := b.take()
			for _, percent := range []string{"50%", "80%", "95%"} {
				n := 0
				for _, w := range all {
					var threshold string
					fmt.Sscanf(w, "plan user:alice %s", &threshold)
					if threshold == percent {
						n++
					}
				}
				if n != 1 {
					t.Errorf("%s: %d warnings at %s: %q", algorithm, n, percent, all)
				}
			}
		})
	}
}

// A reservation warns by what it reserves; what is settled beyond it, and what is charged
// afterwards, warns, too; what is refunded is not told of again.
func TestWarnHolds(t *testing.T) {
	rules := "rules: [{id: tokens, key: user, algorithm: fixed_window, limit: 1000/1h, unit: tokens, warn: [80%, 95%]}]"
	onWarnStores(t, rules, func(t *testing.T, b *warnBench) {
		ask := func(n int64) *rule.Request {
			return &rule.Request{User: "alice", Costs: map[string]int64{"tokens": n}}
		}
		e := b.engines[0]
		var v engine.Verdict
		testkit.OK(t, e.Reserve(t.Context(), ask(850), time.Minute, &v))
		b.told(t, "reserved", "tokens user:alice 80% 850/1000")
		testkit.Must(e.Settle(t.Context(), v.Hold, engine.Units(100)))(t)
		testkit.OK(t, e.Reserve(t.Context(), ask(750), time.Minute, &v))
		b.told(t, "settled with less, and reserved again")
		testkit.Must(e.Settle(t.Context(), v.Hold, engine.Units(860)))(t)
		testkit.OK(t, b.engines[1].Check(t.Context(), ask(1), &v))
		b.told(t, "settled with more", "tokens user:alice 95% 961/1000")

		bob := ask(2000)
		bob.User = "bob"
		testkit.OK(t, e.Charge(t.Context(), bob, &v))
		b.told(t, "charged beyond the limit", "tokens user:bob 80% 1000/1000", "tokens user:bob 95% 1000/1000")
	})
}

// To reset a client resets what it was warned of, on the instance that was asked at once.
func TestWarnAfterReset(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "sliding_window"} {
		rules := "rules: [{id: plan, key: user, algorithm: " + algorithm + ", limit: 10/1h, tiers: {pro: 20/1d}, warn: 80%}]"
		onWarnStores(t, rules, func(t *testing.T, b *warnBench) {
			var v engine.Verdict
			for range 2 {
				testkit.OK(t, b.engines[0].Check(t.Context(), &rule.Request{User: "alice", Cost: 8}, &v))
				b.told(t, algorithm, "plan user:alice 80% 8/10")
				testkit.OK(t, b.engines[0].Check(t.Context(), &rule.Request{User: "alice", Tier: "pro", Cost: 16}, &v))
				b.told(t, algorithm+" of a tier", "plan user:alice 80% 16/20")
				testkit.Must(b.engines[0].Reset(t.Context(), "", "user:alice"))(t) // rules, markers and all
			}
		})
	}
}

// A limit that is lowered warns of what was used before.
func TestWarnLowered(t *testing.T) {
	b := newBench(t, "rules: [{id: plan, key: user, algorithm: fixed_window, limit: 100/1h, warn: 80%}]", nil)
	w := &warned{}
	e := testkit.Must(engine.New(engine.Options{Store: b.store, Observers: []engine.Observer{w}}))(t)
	e.Install(table(t, "rules: [{id: plan, key: user, algorithm: fixed_window, limit: 10/1h, warn: 80%}]"), 1)
	for range 9 {
		b.check(t, alice)
	}
	var v engine.Verdict
	testkit.OK(t, e.Check(t.Context(), &alice, &v))
	if got := w.take(); !slices.Equal(got, []string{"plan user:alice 80% 10/10"}) {
		t.Errorf("%q", got)
	}
}

// Nobody is told of a peek, of a penalty that only looks like usage, or without the store.
func TestWarnNot(t *testing.T) {
	w := &warned{}
	rules := "rules: [{id: plan, key: user, algorithm: sliding_log, limit: 2/1m, warn: 60%, penalty: 15m, on_failure: local}]"
	b := newBench(t, rules, func(o *engine.Options) { o.Observers = []engine.Observer{w} })
	var v engine.Verdict
	b.check(t, alice)
	req := alice
	req.Cost = 2
	testkit.OK(t, b.Peek(t.Context(), &req, &v))
	b.check(t, req) // is denied, and starts the penalty
	b.pass(2 * time.Minute)
	if r := b.check(t, alice).Results[0]; !r.Penalty || r.Remaining != 0 {
		t.Errorf("no penalty: %+v", r)
	}
	b.pass(15 * time.Minute)
	b.store.lost.Store(true)
	calls := b.store.calls.Load()
	b.check(t, alice)
	if v := b.check(t, alice); v.Degraded == nil || v.Results[0].Warning() != 60 {
		t.Errorf("%+v", v.Results)
	}
	if n := b.store.calls.Load() - calls; n != 2 {
		t.Errorf("%d calls of a store that is unavailable, for 2 requests", n)
	}
	if got := w.take(); len(got) != 0 {
		t.Errorf("warnings: %q", got)
	}
}

// A client near its limit rarely costs a second call of the store, and a client below the
// thresholds never.
func TestWarnCalls(t *testing.T) {
	b := newBench(t, "rules: [{id: plan, key: user, algorithm: fixed_window, limit: 100/1h, warn: [50%, 80%]}]", nil)
	for range 49 {
		b.check(t, alice)
	}
	if n := b.store.calls.Load(); n != 49 {
		t.Errorf("%d calls for 49 requests below the thresholds", n)
	}
	for range 100 {
		b.check(t, alice)
	}
	if n := b.store.calls.Load(); n != 49+100+2 {
		t.Errorf("%d calls for 149 requests, want two more for two thresholds", n)
	}
}

// Many clients that reach a threshold leave no trace in the engine.
func TestWarnMany(t *testing.T) {
	w := &countingWarned{}
	e := testkit.Must(engine.New(engine.Options{
		Store:     memory.New(memory.Options{MaxKeys: 1000}),
		Observers: []engine.Observer{w},
	}))(t)
	e.Install(table(t, "rules: [{id: plan, key: user, algorithm: fixed_window, limit: 1/1h, warn: 100%}]"), 1)
	var v engine.Verdict
	const bound = 8 << 20
	clients, more := 0, 100_000
	if testkit.Race {
		more /= 20
	}
	if grown := testkit.Least(bound, func() {
		for range more {
			testkit.OK(t, e.Check(t.Context(), &rule.Request{User: fmt.Sprint(clients)}, &v))
			clients++
		}
	}); grown > bound {
		t.Errorf("the engine grew by %d bytes", grown)
	}
	if w.n != clients {
		t.Errorf("%d warnings for %d clients", w.n, clients)
	}
}

type countingWarned struct {
	warned
	n int
}

func (w *countingWarned) ObserveWarning(engine.Warning) { w.n++ }

// A soft rule is charged as a shadow rule, never denies, and speaks if it has the least left.
func TestSoft(t *testing.T) {
	b := newBench(t, `
rules:
  - {id: hard, key: user, algorithm: fixed_window, limit: 5/1h}
  - {id: trial, key: user, algorithm: fixed_window, limit: 1/1h, mode: shadow}
  - {id: plan, key: user, algorithm: fixed_window, limit: 2/1h, mode: soft, on_failure: closed}
`, nil)
	for i, want := range []struct {
		outcome   engine.Outcome
		remaining int64
	}{{engine.OutcomeAllowed, 1}, {engine.OutcomeShadowDenied, 0}, {engine.OutcomeSoftDenied, 0}, {engine.OutcomeSoftDenied, 0}} {
		v := b.check(t, alice)
		s := v.Speaker()
		if !v.Allowed || v.RetryAfter != 0 || v.Outcome() != want.outcome || s.Rule.ID != "plan" || s.Remaining != want.remaining || !s.Soft || !s.Shadow {
			t.Errorf("request %d: %v, allowed %v, %+v", i, v.Outcome(), v.Allowed, s)
		}
		if said, _ := v.Said(2); i >= 2 && said != engine.OutcomeSoftDenied {
			t.Errorf("request %d: the rule said %v", i, said)
		}
	}
	two := alice
	two.Cost = 2
	if v := b.check(t, two); v.Allowed || v.Speaker().Rule.ID != "hard" || v.Outcome() != engine.OutcomeDenied {
		t.Errorf("denied by another rule: %+v", v)
	}
	var v engine.Verdict
	testkit.OK(t, b.Peek(t.Context(), &rule.Request{User: "bob"}, &v))
	if v.Speaker() == nil || v.Speaker().Remaining != 2 && v.Speaker().Remaining != 1 {
		t.Errorf("peek: %+v", v.Speaker())
	}
	b.store.lost.Store(true)
	if v := b.check(t, alice); !v.Allowed {
		t.Errorf("a soft rule has denied without the store: %+v", v)
	}
}
