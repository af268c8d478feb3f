package engine_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

const onFailure = `
rules:
  - {id: r, key: user, algorithm: fixed_window, limit: 100/1h, on_failure: %s}
`

func (b *holdBench) settle(t *testing.T, id weir.HoldID, used int64) engine.Settled {
	t.Helper()
	return testkit.Must(b.Settle(t.Context(), id, engine.Units(used)))(t)
}

var tenUnits = rule.Request{User: "alice", Cost: 10}

// A settlement that cannot reach the store is pending, and made when the store is back. What
// was said first counts.
func TestSettlePending(t *testing.T) {
	b := newHoldBench(t, fmt.Sprintf(onFailure, "open"), inMemory)
	v := b.reserve(t, tenUnits, time.Hour)
	b.store.lost.Store(true)
	for _, used := range []int64{3, 30} {
		if s := b.settle(t, v.Hold, used); s.State != weir.HoldPending {
			t.Errorf("%+v", s)
		}
	}
	if s := testkit.Must(b.Extend(t.Context(), v.Hold, time.Hour))(t); s.State != weir.HoldPending {
		t.Errorf("%+v", s)
	}
	if _, err := b.Extend(t.Context(), weir.NewHoldID(), time.Hour); err == nil {
		t.Error("extended without the store")
	}
	b.store.lost.Store(false)
	if s := b.settle(t, v.Hold, 30); s.State != weir.HoldSettled || s.Parts[0].Used != 3 {
		t.Errorf("the store is back: %+v", s)
	}
	waitFor(t, "the settlement", func() bool { return slices.Contains(b.saw(), "settled") })
	b.expect(t, "settled", map[string]int64{"r": 97})
	if s := b.settle(t, v.Hold, 30); s.State != weir.HoldSettled || s.Parts[0].Used != 3 {
		t.Errorf("%+v", s)
	}
	if saw := b.saw(); !slices.Equal(saw[:2], []string{"pending", "pending"}) || slices.Contains(saw[2:], "pending") {
		t.Errorf("seen: %v", b.saw())
	}
}

// If only the answer was lost, the hold has ended once, and is seen to.
func TestSettleAnswerLost(t *testing.T) {
	b := newHoldBench(t, fmt.Sprintf(onFailure, "open"), inMemory)
	v := b.reserve(t, tenUnits, time.Hour)
	b.store.after.Store(true)
	if s := b.settle(t, v.Hold, 3); s.State != weir.HoldPending {
		t.Errorf("%+v", s)
	}
	b.store.after.Store(false)
	waitFor(t, "the settlement", func() bool { return len(b.saw()) > 1 })
	if want := []string{"pending", "settled"}; !slices.Equal(b.saw(), want) {
		t.Errorf("seen: %v", b.saw())
	}
}

// What cannot be settled when the engine ends is lost, and seen to be.
func TestSettleLost(t *testing.T) {
	b := newHoldBench(t, fmt.Sprintf(onFailure, "open"), inMemory)
	v, w := b.reserve(t, tenUnits, time.Hour), b.reserve(t, tenUnits, time.Hour)
	b.store.lost.Store(true)
	b.settle(t, v.Hold, 3)
	b.Close()
	if _, err := b.Settle(t.Context(), w.Hold, engine.Units(3)); err == nil {
		t.Error("settled after Close, without the store")
	}
	if want := []string{"pending", "lost", "lost"}; !slices.Equal(b.saw(), want) {
		t.Errorf("seen: %v", b.saw())
	}
	b.store.lost.Store(false)
	if s := b.settle(t, w.Hold, 3); s.State != weir.HoldSettled {
		t.Errorf("%+v", s)
	}
	b.Close() // again
}

// The queue is bounded, and invented ids get only a part of it.
func TestTooManyPending(t *testing.T) {
	b := newHoldBench(t, "rules: [{id: r, key: user, limit: 1000000/1h}]", inMemory)
	own := make([]weir.HoldID, 12_000)
	for i := range own {
		own[i] = b.reserve(t, rule.Request{User: fmt.Sprint(i)}, time.Hour).Hold
	}
	b.store.lost.Store(true)
	settle := func(id weir.HoldID) error {
		_, err := b.Settle(t.Context(), id, engine.Units(1))
		return err
	}
	invented := 0
	for ; invented < 20_000 && settle(weir.NewHoldID()) == nil; invented++ {
	}
	if invented != 2500 {
		t.Errorf("%d invented ids were pending", invented)
	}
	pending := 0
	for _, id := range own {
		if settle(id) == nil {
			pending++
		}
	}
	if pending != 7500 {
		t.Errorf("%d holds were pending", pending)
	}
}

// While the store is unavailable, a hold on an open rule is charged when it is settled, and
// one on a local rule in this process.
func TestReserveWithoutStore(t *testing.T) {
	for _, c := range []struct {
		policy  string
		later   int64 // remaining when the store is back
		allowed int   // of 12
	}{{"open", 93, 12}, {"local", 100, 10}, {"closed", 100, 0}} {
		b := newHoldBench(t, fmt.Sprintf(onFailure, c.policy), inMemory)
		b.store.lost.Store(true)
		var holds []weir.HoldID
		for range 12 {
			if v := b.reserve(t, tenUnits, time.Minute); v.Allowed {
				if v.Hold == (weir.HoldID{}) || v.HoldExpires != start.Add(time.Minute) || v.Degraded == nil {
					t.Errorf("%s: %+v", c.policy, v)
				}
				holds = append(holds, v.Hold)
			}
		}
		if len(holds) != c.allowed {
			t.Errorf("%s: %d were allowed, want %d", c.policy, len(holds), c.allowed)
		}
		if len(holds) == 0 {
			continue
		}
		if s := testkit.Must(b.Extend(t.Context(), holds[0], 5*time.Minute))(t); s.State != weir.HoldOpen || s.Expires != start.Add(5*time.Minute) || s.Parts[0].Reserved != 10 {
			t.Errorf("%s: %+v", c.policy, s)
		}
		b.now.Add(time.Minute.Microseconds())
		if s := b.settle(t, holds[1], 7); s.State != weir.HoldExpired {
			t.Errorf("%s: %+v", c.policy, s)
		}
		b.now.Add(3 * time.Minute.Microseconds()) // to when it would be forgotten, had it not been extended
		first := b.settle(t, holds[0], 7)
		b.store.lost.Store(false)
		waitFor(t, "the settlement", func() bool { return slices.Contains(b.saw(), "settled") })
		want := engine.Settled{State: weir.HoldSettled, Parts: []engine.SettledPart{{Rule: "r", Reserved: 10, Used: 7}}, Repeated: true}
		if again := b.settle(t, holds[0], 9); !reflect.DeepEqual(again, want) {
			t.Errorf("%s: %+v, then %+v", c.policy, first, again)
		}
		b.expect(t, c.policy, map[string]int64{"r": c.later})
		b.now.Add(time.Hour.Microseconds())
		if s := b.settle(t, holds[0], 9); s.State != weir.HoldUnknown {
			t.Errorf("%s: %+v is remembered for ever", c.policy, s)
		}
	}
}

// If only the answer of the store was lost, nothing is charged twice.
func TestReserveAnswerLost(t *testing.T) {
	b := newHoldBench(t, fmt.Sprintf(onFailure, "open"), inMemory)
	b.store.after.Store(true)
	v := b.reserve(t, tenUnits, time.Minute)
	b.store.after.Store(false)
	if s := b.settle(t, v.Hold, 4); !v.Allowed || s.State != weir.HoldSettled || s.Parts[0].Used != 4 {
		t.Errorf("%+v, %+v", v, s)
	}
	b.expect(t, "settled", map[string]int64{"r": 96})
}

// If it was the answer that was lost, and the hold has expired in the store before it could be settled,
// what was reserved stays charged, and nothing besides.
func TestReserveAnswerLostUntilExpired(t *testing.T) {
	for _, pathless := range []bool{false, true} {
		b := newHoldBench(t, fmt.Sprintf(onFailure, "open"), inMemory)
		b.store.after.Store(true)
		v := b.reserve(t, tenUnits, time.Minute)
		b.store.after.Store(false)
		b.store.lost.Store(true)
		if s := b.settle(t, v.Hold, 4); s.State != weir.HoldPending {
			t.Errorf("%+v", s)
		}
		b.now.Add(time.Minute.Microseconds())
		b.store.pathless.Store(pathless)
		b.store.lost.Store(false)
		waitFor(t, "the settlement", func() bool { return slices.Contains(b.saw(), "settled") })
		b.expect(t, fmt.Sprint("pathless ", pathless), map[string]int64{"r": 90})
	}
}

// What is done already is charged when the store is back.
func TestChargeWithoutStore(t *testing.T) {
	tooMuch := rule.Request{User: "alice", Cost: 150}
	for policy, want := range map[string]int64{"open": 0, "closed": 0, "local": 100} {
		b := newHoldBench(t, fmt.Sprintf(onFailure, policy), inMemory)
		b.store.lost.Store(true)
		var v engine.Verdict
		testkit.OK(t, b.Charge(t.Context(), &tooMuch, &v))
		if v.Allowed != (policy != "local") || v.Degraded == nil { // who is not asked does not object
			t.Errorf("%s: %+v", policy, v)
		}
		b.store.lost.Store(false)
		waitFor(t, "the charge", func() bool { return slices.Contains(b.saw(), "charged") })
		b.expect(t, policy, map[string]int64{"r": want})
	}
}

// A call whose answer is lost is made again, and charges once.
func TestLostAnswers(t *testing.T) {
	b := newHoldBench(t, fmt.Sprintf(onFailure, "open"), inMemory)
	b.store.lost.Store(true)
	v := b.reserve(t, tenUnits, time.Hour)
	b.store.lost.Store(false)
	b.store.answers.Store(5)
	if s := b.settle(t, v.Hold, 3); s.State != weir.HoldPending {
		t.Errorf("%+v", s)
	}
	waitFor(t, "the settlement", func() bool { return slices.Contains(b.saw(), "settled") })
	b.expect(t, "settled", map[string]int64{"r": 97})

	var paid engine.Verdict
	b.store.lost.Store(true)
	testkit.OK(t, b.Charge(t.Context(), &tenUnits, &paid))
	b.store.answers.Store(5)
	b.store.lost.Store(false)
	waitFor(t, "the charge", func() bool { return b.store.answers.Load() == 0 })
	b.Close() // after the last call
	b.expect(t, "charged", map[string]int64{"r": 87})
}

// The store of this process may have no place for another hold, too: requests are still
// limited, and charged without one.
func TestReserveLocalWithoutPlace(t *testing.T) {
	store := &losableHolds{HoldStore: inMemory(func() weir.Micros { return start })}
	clock := func() weir.Micros { return start }
	e := testkit.Must(engine.New(engine.Options{Store: store, Clock: clock, Local: memory.New(memory.Options{Clock: clock, MaxKeys: 64})}))(t)
	t.Cleanup(e.Close)
	e.Install(table(t, fmt.Sprintf(onFailure, "local")), 1)
	store.lost.Store(true)
	var v engine.Verdict
	for i := range 20 { // there are places for 16
		testkit.OK(t, e.Reserve(t.Context(), &rule.Request{User: fmt.Sprint(i), Cost: 10}, time.Hour, &v))
		if !v.Allowed || v.Results[0].Remaining != 90 {
			t.Fatalf("%d: %+v", i, v)
		}
	}
	if done := testkit.Must(e.Settle(t.Context(), v.Hold, engine.Units(1)))(t); done.State != weir.HoldSettled || len(done.Parts) != 0 {
		t.Errorf("%+v", done)
	}
	for i := range 11 {
		testkit.OK(t, e.Reserve(t.Context(), &tenUnits, time.Hour, &v))
		if v.Allowed != (i < 10) {
			t.Errorf("%d: %+v", i, v)
		}
	}
}
