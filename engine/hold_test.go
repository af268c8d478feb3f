package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
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

// holdBench is two engines on one store, which can be lost.
type holdBench struct {
	*engine.Engine
	other *engine.Engine
	store *losableHolds
	now   atomic.Int64
	*watcher
}

// watcher is an observer.
type watcher struct {
	mu     sync.Mutex
	checks []bool // whether each had a hold
	events []string
	parts  []engine.SettledPart // of the last event
}

type losableHolds struct {
	weir.HoldStore
	lost  atomic.Bool
	after atomic.Bool // the call is made, but its answer is lost

	pathless atomic.Bool // a hold is found only by its ops, as in a cluster if its directory was not written

	answers atomic.Int64 // of Take and Settle that are lost, too
}

func (l *losableHolds) answerIsLost() bool { return l.answers.Load() > 0 && l.answers.Add(-1) >= 0 }

func (l *losableHolds) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if l.lost.Load() {
		return dst, errLost
	}
	d, err := l.HoldStore.Take(ctx, dst, ops...)
	if l.answerIsLost() {
		return dst, errLost
	}
	return d, err
}

func (l *losableHolds) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if l.lost.Load() {
		return dst, errLost
	}
	return l.HoldStore.Peek(ctx, dst, ops...)
}

func (l *losableHolds) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	if l.lost.Load() {
		return dst, errLost
	}
	d, err := l.HoldStore.Reserve(ctx, dst, r, ops...)
	if l.after.Load() {
		return dst, errLost
	}
	return d, err
}

func (l *losableHolds) Settle(ctx context.Context, s weir.Settlement) (weir.Settled, error) {
	if l.lost.Load() {
		return weir.Settled{}, errLost
	}
	if l.pathless.Load() && s.Ops == nil {
		return weir.Settled{}, nil
	}
	done, err := l.HoldStore.Settle(ctx, s)
	if l.after.Load() || l.answerIsLost() {
		return weir.Settled{}, errLost
	}
	return done, err
}

func (b *holdBench) clock() weir.Micros { return weir.Micros(b.now.Load()) }

func (b *watcher) Observe(_ *rule.Request, v *engine.Verdict, _ time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checks = append(b.checks, v.Hold != weir.HoldID{})
}

func (b *watcher) ObserveHold(e engine.HoldEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events, b.parts = append(b.events, e.Kind.String()), slices.Clone(e.Parts)
}

func (b *watcher) saw() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events)
}

func newHoldBench(t *testing.T, rules string, open func(clock func() weir.Micros) weir.HoldStore) *holdBench {
	t.Helper()
	b := &holdBench{watcher: new(watcher)}
	b.now.Store(int64(start))
	b.store = &losableHolds{HoldStore: open(b.clock)}
	b.Engine = testkit.Must(engine.New(engine.Options{Store: b.store, Clock: b.clock, Observers: []engine.Observer{b.watcher}}))(t)
	b.other = testkit.Must(engine.New(engine.Options{Store: b.store, Clock: b.clock}))(t)
	for _, e := range []*engine.Engine{b.Engine, b.other} {
		e.Install(table(t, rules), 1)
		t.Cleanup(e.Close)
	}
	return b
}

func inMemory(clock func() weir.Micros) weir.HoldStore {
	return memory.New(memory.Options{Clock: clock})
}

// onStores runs a test on memory and on a real Redis.
func onStores(t *testing.T, rules string, test func(t *testing.T, b *holdBench)) {
	t.Run("memory", func(t *testing.T) { test(t, newHoldBench(t, rules, inMemory)) })
	t.Run("redis", func(t *testing.T) {
		config := testkit.Must(redis.ParseURL("redis://" + testredis.Start(t).Addr + "?timeout=5s"))(t)
		test(t, newHoldBench(t, rules, func(clock func() weir.Micros) weir.HoldStore {
			config.Options.Clock = clock
			store := testkit.Must(config.Open())(t)
			t.Cleanup(store.Close)
			return store
		}))
	})
}

func (b *holdBench) reserve(t *testing.T, req rule.Request, ttl time.Duration) *engine.Verdict {
	t.Helper()
	v := new(engine.Verdict)
	testkit.OK(t, b.Reserve(t.Context(), &req, ttl, v))
	return v
}

// remaining is what is left under each rule.
func (b *holdBench) remaining(t *testing.T) map[string]int64 {
	t.Helper()
	var v engine.Verdict
	testkit.Must(b.Standing(t.Context(), "", "user:alice", "", &v))(t)
	left := map[string]int64{}
	for i := range v.Results {
		left[v.Results[i].Rule.ID] = v.Results[i].Remaining
	}
	return left
}

func (b *holdBench) expect(t *testing.T, what string, want map[string]int64) {
	t.Helper()
	if got := b.remaining(t); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v remain, want %v", what, got, want)
	}
}

var tokens700 = rule.Request{User: "alice", Costs: map[string]int64{"tokens": 700}}

const tokenRules = `
rules:
  - {id: requests, key: user, algorithm: fixed_window, limit: 10/1h}
  - {id: tokens, key: user, algorithm: fixed_window, limit: 1000/1h, unit: tokens}
  - {id: trial, key: user, algorithm: sliding_log, limit: 800/1h, unit: tokens, mode: shadow}
  - {id: counting, key: user, algorithm: fixed_window, limit: 900/1h, unit: tokens, mode: shadow, count_denied: true}
`

// What was reserved is settled under every rule, shadow rules included, once.
func TestSettle(t *testing.T) {
	onStores(t, tokenRules, func(t *testing.T, b *holdBench) {
		v := b.reserve(t, tokens700, time.Minute)
		if !v.Allowed || v.Hold == (weir.HoldID{}) || v.HoldExpires != start.Add(time.Minute) {
			t.Fatalf("%+v", v)
		}
		b.expect(t, "reserved", map[string]int64{"requests": 9, "tokens": 300, "trial": 100, "counting": 200})

		used := engine.ByUnit(map[string]int64{"tokens": 150})
		first := testkit.Must(b.Settle(t.Context(), v.Hold, used))(t)
		want := engine.Settled{State: weir.HoldSettled, Parts: []engine.SettledPart{
			{Rule: "requests", Reserved: 1, Used: 1},
			{Rule: "tokens", Unit: "tokens", Reserved: 700, Used: 150},
			{Rule: "trial", Unit: "tokens", Shadow: true, Reserved: 700, Used: 150},
			{Rule: "counting", Unit: "tokens", Shadow: true, Reserved: 700, Used: 150},
		}}
		if !reflect.DeepEqual(first, want) {
			t.Errorf("got %+v", first)
		}
		left := map[string]int64{"requests": 9, "tokens": 850, "trial": 650, "counting": 750}
		b.expect(t, "settled", left)

		// A repeat by another instance with another number changes nothing.
		again := testkit.Must(b.other.Settle(t.Context(), v.Hold, engine.Units(5)))(t)
		if first.Repeated = true; !reflect.DeepEqual(again, first) {
			t.Errorf("again: %+v", again)
		}
		b.expect(t, "settled again", left)

		if !slices.Equal(b.checks, []bool{true}) || !slices.Equal(b.saw(), []string{"settled"}) || !reflect.DeepEqual(b.parts, want.Parts) {
			t.Errorf("seen: %v, %v, %v", b.checks, b.events, b.parts)
		}
	})
}

func TestCancelAndExtend(t *testing.T) {
	onStores(t, tokenRules, func(t *testing.T, b *holdBench) {
		full := map[string]int64{"requests": 10, "tokens": 1000, "trial": 800, "counting": 900}
		v := b.reserve(t, tokens700, time.Minute)
		b.now.Add(50_000_000)
		open := testkit.Must(b.Extend(t.Context(), v.Hold, 2*time.Minute))(t)
		if open.State != weir.HoldOpen || open.Expires != b.clock().Add(2*time.Minute) || len(open.Parts) != 4 || open.Parts[3].Reserved != 700 {
			t.Errorf("%+v", open)
		}
		b.now.Add(100_000_000)
		if s := testkit.Must(b.Cancel(t.Context(), v.Hold))(t); s.State != weir.HoldSettled || s.Parts[1].Used != 0 {
			t.Errorf("%+v", s)
		}
		b.expect(t, "cancelled", full)

		v = b.reserve(t, tokens700, time.Minute)
		testkit.OK(t, b.Refund(t.Context(), v))
		b.expect(t, "refunded", full)

		v = b.reserve(t, tokens700, time.Minute)
		b.now.Add(61_000_000)
		if s := testkit.Must(b.Settle(t.Context(), v.Hold, engine.Units(1)))(t); s.State != weir.HoldExpired {
			t.Errorf("%+v", s)
		}
		b.expect(t, "expired", map[string]int64{"requests": 9, "tokens": 300, "trial": 100, "counting": 200})
		if s := testkit.Must(b.Settle(t.Context(), weir.NewHoldID(), engine.Units(1)))(t); s.State != weir.HoldUnknown {
			t.Errorf("%+v", s)
		}
		if _, err := b.Extend(t.Context(), v.Hold, 25*time.Hour); !errors.As(err, new(*weir.InvalidError)) {
			t.Errorf("too long: %v", err)
		}
		if want := []string{"extended", "cancelled", "cancelled", "expired", "unknown"}; !slices.Equal(b.saw(), want) {
			t.Errorf("seen: %v", b.events)
		}
	})
}

// A shadow rule that would deny is not charged, and the others are.
func TestReserveShadowDenied(t *testing.T) {
	const rules = `
rules:
  - {id: a, key: user, algorithm: fixed_window, limit: 100/1h, mode: shadow}
  - {id: b, key: user, algorithm: fixed_window, limits: [5/1h, 100/1d], mode: shadow}
  - {id: c, key: user, algorithm: fixed_window, limit: 200/1h, mode: shadow}
`
	onStores(t, rules, func(t *testing.T, b *holdBench) {
		v := b.reserve(t, rule.Request{User: "alice", Cost: 10}, 0)
		if !v.Allowed || v.Hold == (weir.HoldID{}) {
			t.Fatalf("%+v", v)
		}
		s := testkit.Must(b.Settle(t.Context(), v.Hold, engine.Units(4)))(t)
		want := []engine.SettledPart{{Rule: "a", Shadow: true, Reserved: 10, Used: 4}, {Rule: "c", Shadow: true, Reserved: 10, Used: 4}}
		if !reflect.DeepEqual(s.Parts, want) {
			t.Errorf("%+v", s)
		}
		b.expect(t, "settled", map[string]int64{"a": 96, "b": 100, "c": 196})
	})
}

// What is denied has no hold, even if a shadow rule counts it.
func TestReserveDenied(t *testing.T) {
	const rules = `
rules:
  - {id: a, key: user, algorithm: fixed_window, limit: 5/1h}
  - {id: b, key: user, algorithm: fixed_window, limit: 100/1h, mode: shadow, count_denied: true}
`
	onStores(t, rules, func(t *testing.T, b *holdBench) {
		if v := b.reserve(t, rule.Request{User: "alice", Cost: 10}, 0); v.Allowed || v.Hold != (weir.HoldID{}) {
			t.Errorf("%+v", v)
		}
		b.expect(t, "denied", map[string]int64{"a": 5, "b": 90})
	})
}

// More than was reserved is charged beyond the limit, and so is what was not reserved.
func TestSettleMore(t *testing.T) {
	const rules = `
rules:
  - {id: tokens, key: user, algorithm: fixed_window, limit: 1000/1h, unit: tokens}
`
	onStores(t, rules, func(t *testing.T, b *holdBench) {
		v := b.reserve(t, tokens700, time.Minute)
		s := testkit.Must(b.Settle(t.Context(), v.Hold, engine.ByUnit(map[string]int64{"tokens": 20_000})))(t)
		if len(s.Parts) != 1 || s.Parts[0].Used != 20_000 || s.Parts[0].Excess != 9_000 {
			t.Errorf("%+v", s)
		}
		if v := b.reserve(t, tokens700, time.Minute); v.Allowed || v.Hold != (weir.HoldID{}) || v.RetryAfter != time.Hour {
			t.Errorf("in debt: %+v", v)
		}
		b.now.Add(time.Hour.Microseconds())
		var paid engine.Verdict
		for i, fits := range []bool{true, false, false} {
			testkit.OK(t, b.Charge(t.Context(), &tokens700, &paid))
			if paid.Allowed != fits {
				t.Errorf("charge %d: %+v", i, paid)
			}
		}
		b.now.Add(time.Hour.Microseconds())
		b.expect(t, "an hour later", map[string]int64{"tokens": 1000})
		if want := []string{"settled", "charged", "charged", "charged"}; !slices.Equal(b.saw(), want) || len(b.checks) != 2 || b.parts[0].Used != 700 {
			t.Errorf("seen: %v, %d checks, %v", b.events, len(b.checks), b.parts)
		}
	})
}

func TestOnExpiry(t *testing.T) {
	const rules = `
rules:
  - {id: keep, key: user, algorithm: fixed_window, limit: 1000/1h}
  - {id: release, key: user, algorithm: fixed_window, limit: 1000/1h, on_expiry: release}
`
	onStores(t, rules, func(t *testing.T, b *holdBench) {
		b.reserve(t, rule.Request{User: "alice", Cost: 100}, time.Minute)
		b.now.Add(61_000_000)
		b.expect(t, "expired", map[string]int64{"keep": 900, "release": 1000})
	})
}

// Where nothing is charged, there is no hold.
func TestNoHold(t *testing.T) {
	b := newHoldBench(t, `
rules:
  - {id: a, key: user, limit: 5/1h}
exempt: {user: bob}
`, inMemory)
	for _, req := range []rule.Request{{User: "bob"}, {}, {User: "alice", Cost: 6}} {
		if v := b.reserve(t, req, 0); v.Hold != (weir.HoldID{}) || v.HoldExpires != 0 {
			t.Errorf("%+v: %+v", req, v)
		}
	}
	var v engine.Verdict
	for _, ttl := range []time.Duration{-1, time.Microsecond, 25 * time.Hour} {
		if err := b.Reserve(t.Context(), &alice, ttl, &v); !errors.As(err, new(*weir.InvalidError)) {
			t.Errorf("%v: %v", ttl, err)
		}
	}
	plain := testkit.Must(engine.New(engine.Options{Store: struct{ weir.Store }{memory.New(memory.Options{})}}))(t)
	if err := plain.Reserve(t.Context(), &alice, 0, &v); err == nil {
		t.Error("a store without holds has reserved")
	}
	if _, err := plain.Cancel(t.Context(), weir.NewHoldID()); err == nil {
		t.Error("a store without holds has cancelled")
	}
}

// A refund covers shadow rules.
func TestRefundShadow(t *testing.T) {
	b := newHoldBench(t, tokenRules, inMemory)
	var v engine.Verdict
	testkit.OK(t, b.Check(t.Context(), &tokens700, &v))
	testkit.OK(t, b.Refund(t.Context(), &v))
	b.expect(t, "refunded", map[string]int64{"requests": 10, "tokens": 1000, "trial": 800, "counting": 900})
}

// A rule has the cost of its unit, or else that of the request, or else its own.
func TestCosts(t *testing.T) {
	for _, c := range []struct {
		rule rule.Rule
		req  rule.Request
		want int64
	}{
		{rule.Rule{}, rule.Request{}, 1},
		{rule.Rule{Cost: 3}, rule.Request{}, 3},
		{rule.Rule{Cost: 3}, rule.Request{Cost: 4}, 4},
		{rule.Rule{Cost: 3, Unit: "tokens"}, rule.Request{Costs: map[string]int64{"tokens": 5}}, 5},
		{rule.Rule{Cost: 3, Unit: "bytes"}, rule.Request{Costs: map[string]int64{"tokens": 5}}, 3},
		{rule.Rule{Cost: 3}, rule.Request{Costs: map[string]int64{"": 5}}, 3},
		{rule.Rule{Cost: 3}, rule.Request{Cost: 4, Costs: map[string]int64{"tokens": 5}}, 4},
	} {
		if got, err := (&rule.Entry{Rule: &c.rule}).Estimate(&c.req); err != nil || got != c.want {
			t.Errorf("%+v under %+v costs %d, want %d", c.req, cmp.Or(c.rule.Unit, "none"), got, c.want)
		}
	}
}

func ExampleEngine_Reserve() {
	ctx := context.Background()
	e, err := engine.New(engine.Options{})
	if err != nil {
		panic(err)
	}
	defer e.Close()
	if err := e.Load("rules.yaml", []byte("rules: [{id: tokens, key: user, algorithm: sliding_log, limit: 1000/1h, unit: tokens}]")); err != nil {
		panic(err)
	}
	var v engine.Verdict
	request := rule.Request{User: "alice", Costs: map[string]int64{"tokens": 700}} // an estimate
	if err := e.Reserve(ctx, &request, time.Minute, &v); err != nil {
		panic(err)
	}
	fmt.Println(v.Allowed, v.Speaker().Remaining)
	// … do the work …
	s, err := e.Settle(ctx, v.Hold, engine.ByUnit(map[string]int64{"tokens": 512}))
	if err != nil {
		panic(err)
	}
	fmt.Println(s.State, s.Parts[0].Used)
	// Output:
	// true 300
	// settled 512
}

// When the store has no place for another hold, a request is charged without one, and is
// still limited, even by a rule that fails open.
func TestReserveWithoutPlace(t *testing.T) {
	b := newHoldBench(t, `
rules:
  - {id: r, key: user, algorithm: fixed_window, limit: 100/1h, on_failure: open}
  - {id: trial, key: user, algorithm: fixed_window, limit: 1000/1h, mode: shadow}
`, func(clock func() weir.Micros) weir.HoldStore {
		return memory.New(memory.Options{Clock: clock, MaxKeys: 64})
	})
	v := new(engine.Verdict)
	for i := 0; !v.Unheld; i++ {
		if v = b.reserve(t, rule.Request{User: fmt.Sprint(i), Cost: 10}, time.Hour); !v.Allowed || v.Degraded != nil || i > 64 {
			t.Fatalf("%d: %+v", i, v)
		}
	}
	for i := range 11 {
		v := b.reserve(t, tenUnits, time.Hour)
		if v.Allowed != (i < 10) || v.Unheld != v.Allowed || v.Hold != (weir.HoldID{}) || v.Degraded != nil {
			t.Errorf("%d: %+v", i, v)
		}
		if i == 10 {
			break
		}
		if got, want := b.remaining(t), map[string]int64{"r": int64(90 - 10*i), "trial": int64(990 - 10*i)}; !reflect.DeepEqual(got, want) {
			t.Errorf("%d: %v remain, want %v", i, got, want)
		}
	}
	if saw := b.saw(); len(saw) != 11 || slices.ContainsFunc(saw, func(event string) bool { return event != "unheld" }) {
		t.Errorf("seen: %v", saw)
	}
	testkit.OK(t, b.Check(t.Context(), &tenUnits, v))
	if v.Unheld {
		t.Error("a check is said to lack a hold")
	}
}
