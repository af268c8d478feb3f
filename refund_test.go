package weir_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
)

func (k *key) refund(receipt weir.Receipt, cost int64) {
	k.Refund(&weir.Op{Limit: k.limit, Cost: cost, Receipt: receipt})
}

// twins are a key that was charged for something and got it back, and one that
// was never charged for it.
type twins struct{ charged, spared key }

// given is a charge that is to be given back.
type given struct {
	receipt weir.Receipt
	cost    int64
}

// live plays the steps to both, but charges some only to the one, whether or not they fit, and gives them
// back sooner or later, in any order. It returns the time, what was given back in order, and whether anybody
// came in between.
func (w *twins) live(t *rapid.T, steps []step) (now weir.Micros, back []given, between bool) {
	var pending []given
	refund := func() {
		i := rapid.IntRange(0, len(pending)-1).Draw(t, "which")
		w.charged.refund(pending[i].receipt, pending[i].cost)
		back, pending = append(back, pending[i]), append(pending[:i:i], pending[i+1:]...)
	}
	for _, s := range steps {
		now = s.now
		if len(pending) > 0 && rapid.IntRange(0, 7).Draw(t, "give back") == 0 {
			refund()
		}
		if len(pending) < 5 && rapid.IntRange(0, 3).Draw(t, "charge") == 0 {
			s.cost += rapid.Int64Range(0, 2*w.charged.limit.Capacity()).Draw(t, "debt")
			if d := w.charged.charge(s.now, s.cost); d.Receipt != 0 {
				pending = append(pending, given{d.Receipt, s.cost - d.Excess})
			}
			continue
		}
		d := w.charged.take(s.now, s.cost)
		if !d.Allowed {
			if d.Receipt != 0 {
				t.Fatalf("denied, with a receipt: %+v", d)
			}
			continue
		}
		between = between || len(pending) > 0
		if d := w.spared.charge(s.now, s.cost); !d.Allowed && (len(back) < 2 || !w.leak()) {
			t.Fatalf("%v: %d at %d fit on top of more, but not of less", w.spared.limit.Limit(), s.cost, s.now)
		}
	}
	for len(pending) > 0 {
		refund()
	}
	return now, back, between
}

// leak reports whether the twins are buckets.
func (w *twins) leak() bool {
	a := w.charged.limit.Limit().Algorithm
	return a == weir.TokenBucket || a == weir.LeakyBucket
}

// After any number of refunds, in any order, windows, sub-windows and the log are as if the charges had never
// been made. A bucket is so after one, if there was no other charge in between; otherwise it may have fewer units.
// After several, it may have as many more as those after the first were charged for.
func TestRefundIsAsIfNeverCharged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t)
		if limit.Limit().CountDenied || limit.Limit().Shape {
			t.Skip("denied requests change the one and not the other; queues have a test of their own")
		}
		w := twins{key{limit: limit}, key{limit: limit}}
		now, back, between := w.live(t, drawHistory(t, limit, false))
		if len(back) == 0 {
			return
		}
		more := int64(0)
		for _, later := range back[1:] {
			more += later.cost
		}
		for range 4 {
			cost := rapid.Int64Range(0, limit.Capacity()).Draw(t, "cost")
			got, want := w.charged.peek(now, cost), w.spared.peek(now, cost)
			// Above a million units a second, it is not known who was the last.
			if n := limit.Numbers(); w.leak() && (between || len(back) > 1 || n.Unit < n.Drain) {
				if got.Remaining > want.Remaining+more {
					t.Fatalf("%v at %d: refunds of %+v minted budget: %+v, never charged %+v", limit.Limit(), now, back, got, want)
				}
			} else if got != want {
				t.Fatalf("%v at %d: given back %+v, never charged %+v", limit.Limit(), now, got, want)
			}
			now += weir.Micros(rapid.Int64Range(0, 2*limit.Limit().Period.Microseconds()).Draw(t, "later"))
		}
	})
}

// The second refund of a bucket can give back what has drained, because the first one has moved it up and its receipt
// does not know. So the bound of the property above is reached. Holds that are settled with 0 know.
func TestSecondRefundOfABucket(t *testing.T) {
	k := key{limit: weir.MustCompile("token_bucket 10/10us")}
	first, second := k.take(0, 5).Receipt, k.take(0, 5).Receipt
	k.refund(first, 5)
	k.take(5, 10)
	k.refund(second, 5)
	if d := k.peek(5, 0); d.Remaining != 5 {
		t.Errorf("%+v, want 5 remaining", d)
	}

	k = key{limit: k.limit}
	var holds [2]weir.Held
	for i := range holds {
		k.take(0, 5)
		holds[i] = k.op(5).Held(k.State)
	}
	for i := range holds {
		var back int64
		k.State, back = k.limit.Release(k.State, nil, holds[i], 5)
		if i == 0 {
			holds[1].Level -= back
			k.take(5, 10)
		}
	}
	if d := k.peek(5, 0); d.Remaining != 0 {
		t.Errorf("%+v, want nothing remaining", d)
	}
}

// What a bucket loses by a refund is what would have drained to no use.
func TestRefundOfABusyBucketIsExact(t *testing.T) {
	limit := weir.MustCompile("token_bucket 100/1s burst 200") // a unit drains in 10 ms
	k := key{limit: limit}
	k.take(0, 50)
	receipt := k.take(1000, 30).Receipt
	k.take(2000, 5)
	k.refund(receipt, 30)
	if d := k.peek(5000, 0); d.Remaining != 145 || d.ResetAfter != 545*time.Millisecond {
		t.Errorf("busy: %+v, want 145 remaining, 545ms to reset", d)
	}
	k = key{limit: limit}
	receipt = k.take(0, 30).Receipt
	k.take(100_000, 5) // ten of the thirty have drained by now
	k.refund(receipt, 30)
	if d := k.peek(100_000, 0); d.Remaining != 195 {
		t.Errorf("idle before: %+v, want 195 remaining", d)
	}
	k = key{limit: limit}
	receipt = k.take(0, 30).Receipt
	k.take(400_000, 5)
	k.refund(receipt, 30)
	if d := k.peek(400_000, 0); d.Remaining != 195 {
		t.Errorf("all drained: %+v, want 195 remaining", d)
	}
}

// A queue takes back its last place, and no other: those behind were told when.
func TestRefundOfAQueue(t *testing.T) {
	limit := weir.MustCompile("leaky_bucket 10/1s burst 10 shape")
	k := key{limit: limit}
	first := k.take(0, 2)
	second := k.take(0, 3)
	k.refund(first.Receipt, 2)
	if d := k.peek(0, 1); d.Delay != 500*time.Millisecond {
		t.Errorf("after giving back the first place: %+v, want a delay of 500ms", d)
	}
	k.refund(second.Receipt, 3)
	if d := k.peek(0, 1); d.Delay != 200*time.Millisecond {
		t.Errorf("after giving back the last place: %+v, want a delay of 200ms", d)
	}
	k.refund(first.Receipt, 2)
	if k.State != (weir.State{}) {
		t.Errorf("after giving back all: %+v", k.State)
	}
}

// Latest takes the newest units, and no more than there are.
func TestRefundLatest(t *testing.T) {
	for _, algorithm := range everyAlgorithm() {
		limit := weir.MustCompile(algorithm.String() + " 10/1m")
		k := key{limit: limit}
		now := weir.Micros(1_767_225_600_000_000)
		for range 4 {
			now += 10
			k.take(now, 2)
		}
		k.refund(weir.Latest, 3)
		if d := k.peek(now, 0); d.Remaining != 5 {
			t.Errorf("%v: %+v, want 5 remaining", algorithm, d)
		}
		k.refund(weir.Latest, 100)
		if k.State != (weir.State{}) {
			t.Errorf("%v: %+v, want nothing", algorithm, k.State)
		}
		k.refund(weir.Latest, 1)
		if k.State != (weir.State{}) {
			t.Errorf("%v: a refund of nothing left %+v", algorithm, k.State)
		}
	}
}

// A receipt from another time gives nothing back: not after a reset, when the
// units under it are somebody else's, and not without one.
func TestRefundOfWhatIsGone(t *testing.T) {
	for _, algorithm := range everyAlgorithm() {
		k := key{limit: weir.MustCompile(algorithm.String() + " 10/1s")}
		receipt := k.take(0, 5).Receipt
		k.take(5_000_000, 3)
		before := k.State
		for _, receipt := range []weir.Receipt{receipt, 0} {
			k.refund(receipt, 5)
			if k.State != before {
				t.Errorf("%v: receipt %d made %+v of %+v", algorithm, receipt, k.State, before)
			}
		}
	}
}

// However damaged the state and wrong the receipt, a refund does not crash, and
// what it leaves can be decided on.
func TestRefundOfGarbage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) int64 {
			return rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 1<<53-1)).Draw(t, name)
		}
		k := key{limit: drawLimit(t)}
		k.State = weir.State{Fresh: weir.Micros(number("fresh")), A: number("a"), B: number("b")}
		k.Tail = rapid.SliceOfN(rapid.Int64Range(0, 1000), 0, 40).Draw(t, "tail")
		receipt := weir.Receipt(number("receipt"))
		if rapid.Bool().Draw(t, "latest") {
			receipt = weir.Latest
		}
		k.refund(receipt, 1+number("cost"))
		if k.State.Fresh < 0 || k.State.A < 0 || k.State.B < 0 {
			t.Fatalf("%v: %+v", k.limit.Limit(), k.State)
		}
		k.take(weir.Micros(number("now")), 1)
	})
}
