package weir_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/memory"
)

// held is a key with holds in the order of their reservations, as a store could keep them.
type held struct {
	key
	open []*weir.Held
}

func (k *held) reserve(now weir.Micros, cost int64) (*weir.Held, weir.Decision) {
	op := weir.Op{Limit: k.limit, Cost: cost}
	next, d := op.Decide(k.State, k.Tail, now)
	k.Keep(k.limit, next)
	if !d.Allowed {
		return nil, d
	}
	h := op.Held(next)
	k.open = append(k.open, &h)
	return &h, d
}

// settle ends a hold with what was used: less is given back, more is charged.
func (k *held) settle(h *weir.Held, now weir.Micros, used int64) {
	i := slices.Index(k.open, h)
	k.open = slices.Delete(k.open, i, i+1)
	if used < h.Cost {
		var back int64
		k.State, back = k.limit.Release(k.State, k.Tail, *h, h.Cost-used)
		for _, later := range k.open[i:] {
			later.Level -= back
		}
	} else if used > h.Cost {
		k.charge(now, used-h.Cost)
	}
}

// A hold that was settled with less is as if that had been taken in the first place:
// exactly, and of a bucket never more, however many holds there are and in whatever
// order they end.
func TestHoldsAreAsIfTakenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t)
		if limit.Limit().CountDenied || limit.Limit().Shape {
			t.Skip("denied requests change the one and not the other; queues have a test of their own")
		}
		one, other := held{key: key{limit: limit}}, key{limit: limit}
		var now weir.Micros
		used := map[*weir.Held]int64{}
		settle := func(h *weir.Held) {
			one.settle(h, now, used[h])
			delete(used, h)
		}
		for _, s := range drawHistory(t, limit, false) {
			now = s.now
			if len(one.open) > 0 && rapid.IntRange(0, 2).Draw(t, "settle") == 0 {
				settle(one.open[rapid.IntRange(0, len(one.open)-1).Draw(t, "which")])
			}
			h, d := one.reserve(s.now, s.cost)
			if h == nil {
				continue
			}
			n := s.cost
			if rapid.Bool().Draw(t, "less") {
				n = rapid.Int64Range(0, s.cost).Draw(t, "used")
			}
			used[h] = n
			if n > 0 && !other.take(s.now, n).Allowed {
				t.Fatalf("%v: %d at %d fit on top of more, but not of less: %+v", limit.Limit(), n, s.now, d)
			}
		}
		for len(one.open) > 0 {
			settle(one.open[rapid.IntRange(0, len(one.open)-1).Draw(t, "last")])
		}
		bucket := limit.Limit().Algorithm == weir.TokenBucket || limit.Limit().Algorithm == weir.LeakyBucket
		for range 4 {
			cost := rapid.Int64Range(0, limit.Capacity()).Draw(t, "cost")
			got, want := one.peek(now, cost), other.peek(now, cost)
			if bucket && got.Remaining > want.Remaining {
				t.Fatalf("%v at %d: holds minted budget: %+v, taken once %+v", limit.Limit(), now, got, want)
			}
			if !bucket && got != want {
				t.Fatalf("%v at %d: with holds %+v, taken once %+v", limit.Limit(), now, got, want)
			}
			now += weir.Micros(rapid.Int64Range(0, 2*limit.Limit().Period.Microseconds()).Draw(t, "later"))
		}
	})
}

// What a bucket gives back is all of it, as long as nothing of it has drained.
func TestHoldsOfABucket(t *testing.T) {
	k := held{key: key{limit: weir.MustCompile("token_bucket 60/1m burst 100")}} // a unit drains in a second
	first, _ := k.reserve(0, 40)
	second, _ := k.reserve(0, 40)
	third, _ := k.reserve(10_000_000, 20) // 70 + 20
	k.settle(second, 11_000_000, 10)
	if d := k.peek(11_000_000, 0); d.Remaining != 100-59 {
		t.Errorf("%d remain, want %d", d.Remaining, 100-59)
	}
	k.settle(third, 11_000_000, 0)
	if d := k.peek(11_000_000, 0); d.Remaining != 100-39 {
		t.Errorf("%d remain, want %d", d.Remaining, 100-39)
	}
	k.settle(first, 12_000_000, 10) // ten of it have drained by the last charge
	if d := k.peek(12_000_000, 0); d.Remaining != 100-8 {
		t.Errorf("%d remain, want %d", d.Remaining, 100-8)
	}
}

// An idle bucket gives back nothing for a hold that has drained, and several holds that
// are settled late give back no more than one would.
func TestHoldsOfAnIdleBucket(t *testing.T) {
	k := held{key: key{limit: weir.MustCompile("token_bucket 60/1m burst 100")}}
	var all []*weir.Held
	for range 5 {
		h, _ := k.reserve(0, 10)
		all = append(all, h)
	}
	k.take(45_000_000, 20) // 5 of the 50 are left
	for _, h := range all {
		k.settle(h, 45_000_000, 0)
	}
	if d := k.peek(45_000_000, 0); d.Remaining != 80 {
		t.Errorf("%d remain, want 80", d.Remaining)
	}
}

// What was given back of one hold moves those behind it forward, so that they drain
// earlier.
func TestHoldsMoveUp(t *testing.T) {
	k := held{key: key{limit: weir.MustCompile("token_bucket 60/1m burst 100")}}
	first, _ := k.reserve(0, 10)
	second, _ := k.reserve(0, 10)
	k.take(1_000_000, 1)
	k.settle(first, 1_000_000, 0) // 9 of it are left, and 11 of the others
	k.take(12_000_000, 5)
	k.settle(second, 12_000_000, 0)
	if d := k.peek(12_000_000, 0); d.Remaining != 95 {
		t.Errorf("%d remain, want 95", d.Remaining)
	}
}

// A hold whose limit was changed under way gives back no more than was charged.
func TestHoldsOfAChangedLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t)
		one := held{key: key{limit: limit}}
		h, _ := one.reserve(1_000_000, limit.Capacity())
		l := limit.Limit()
		l.N = rapid.Int64Range(1, 100).Draw(t, "other n")
		changed, err := l.Compile()
		if err != nil {
			t.Fatal(err)
		}
		one.limit = changed
		now := 1_000_000 + weir.Micros(rapid.Int64Range(0, l.Period.Microseconds()).Draw(t, "later"))
		one.take(now, rapid.Int64Range(1, changed.Capacity()).Draw(t, "cost"))
		before := one.peek(now, 0)
		one.State, _ = limit.Release(one.State, one.Tail, *h, h.Cost)
		if after := one.peek(now, 0); after.Remaining < before.Remaining || after.Remaining > changed.Capacity() {
			t.Fatalf("%v became %v: %+v, then %+v", limit.Limit(), l, before, after)
		}
	})
}

// A queue gives back its last place only.
func TestHoldsOfAQueue(t *testing.T) {
	k := held{key: key{limit: weir.MustCompile("leaky_bucket 10/1s burst 10 shape")}}
	first, _ := k.reserve(0, 2)
	second, _ := k.reserve(0, 3)
	k.settle(first, 0, 0)
	if d := k.peek(0, 1); d.Remaining != 5 {
		t.Errorf("after the first place: %+v", d)
	}
	k.settle(second, 0, 0)
	if d := k.peek(0, 1); d.Remaining != 8 {
		t.Errorf("after the last place: %+v", d)
	}
}

// A limiter reserves, and the hold ends it.
func TestLimiterReserve(t *testing.T) {
	l := newLimiter(t, "sliding_log 100/1h")
	h, d, err := l.Reserve(t.Context(), "k", 80, 0)
	if err != nil || h == nil || d.Remaining != 20 {
		t.Fatalf("%+v, %v", d, err)
	}
	if none, d, err := l.Reserve(t.Context(), "k", 30, 0); none != nil || d.Allowed || err != nil {
		t.Errorf("%v, %+v, %v: more was reserved than there is", none, d, err)
	}
	if s, err := h.Extend(t.Context(), time.Hour); err != nil || s.State != weir.HoldOpen {
		t.Errorf("extended: %+v, %v", s, err)
	}
	if s, err := h.Settle(t.Context(), 30); err != nil || s.State != weir.HoldSettled || s.Parts[0].Used != 30 {
		t.Errorf("settled: %+v, %v", s, err)
	}
	if s, err := h.Cancel(t.Context()); err != nil || s.Parts[0].Used != 30 {
		t.Errorf("cancelled after that: %+v, %v", s, err)
	}
	if d, err := l.Peek(t.Context(), "k", 0); err != nil || d.Remaining != 70 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, _, err := limiterOn(t, struct{ weir.Store }{memory.New(memory.Options{})}, "5/1m").Reserve(t.Context(), "k", 1, 0); err == nil {
		t.Error("a store that cannot hold units was accepted")
	}
}

// Ids that are made together have two bytes in common, and no others.
func TestNewHoldID(t *testing.T) {
	own, families := map[[14]byte]bool{}, map[[2]byte]bool{}
	for range 2000 {
		id := weir.NewHoldID()
		own[[14]byte(id[:14])], families[[2]byte(id[14:])] = true, true
	}
	if len(own) != 2000 || len(families) < 20 {
		t.Errorf("%d ids of %d families, want 2000 of about 31", len(own), len(families))
	}
}

// An id is written as digits, and read again.
func TestHoldID(t *testing.T) {
	id := weir.NewHoldID()
	if id == (weir.HoldID{}) || id == weir.NewHoldID() {
		t.Errorf("%v is not random", id)
	}
	if got, err := weir.ParseHoldID(id.String()); err != nil || got != id {
		t.Errorf("%v, %v, want %v", got, err, id)
	}
	for _, text := range []string{"", "12", id.String() + "0", id.String()[:31], "zz" + id.String()[2:]} {
		if _, err := weir.ParseHoldID(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
