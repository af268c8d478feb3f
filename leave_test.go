package weir_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
)

// drawLeaves lets some steps of a history leave units for others, now and then all or more.
func drawLeaves(t *rapid.T, limit *weir.Compiled, steps []step) []step {
	for i := range steps {
		if rapid.IntRange(0, 2).Draw(t, "leaves") == 0 {
			steps[i].leave = rapid.Int64Range(0, limit.Capacity()+1).Draw(t, "leave")
		}
	}
	return steps
}

// twin is the limit that has so many units fewer at once, at the same rate; nil if there is
// none. Its state has the same meaning.
func twin(limit *weir.Compiled, leave int64) *weir.Compiled {
	l := limit.Limit()
	if l.Algorithm == weir.TokenBucket || l.Algorithm == weir.LeakyBucket {
		l.Burst = limit.Capacity() - leave
	} else {
		l.N -= leave
	}
	smaller, err := l.Compile()
	if limit.Capacity() <= leave || err != nil {
		return nil
	}
	return smaller
}

// To leave units is the same as to have a limit that is so much smaller, for a key that others
// use in full.
func TestLeaveIsASmallerLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := key{limit: drawLimit(t)}
		for _, s := range drawLeaves(t, k.limit, drawDebts(t, k.limit)) {
			smaller := twin(k.limit, s.leave)
			if smaller == nil {
				continue
			}
			op, other := k.op(s.cost), weir.Op{Limit: smaller, Cost: s.cost}
			op.Leave = s.leave
			got, want := op.Peek(k.State, k.Tail, s.now), other.Peek(k.State, k.Tail, s.now)
			want.Limit = k.limit.Capacity()
			if got != want {
				t.Fatalf("%v, cost %d and leave %d at %d: %+v, want as of %v %+v", k.limit.Limit(), s.cost, s.leave, s.now, got, smaller.Limit(), want)
			}
			next, got := op.Decide(k.State, k.Tail, s.now)
			if got.Allowed {
				after, want := other.Decide(k.State, k.Tail, s.now)
				want.Limit = k.limit.Capacity()
				if got != want || next != after {
					t.Fatalf("%v, cost %d and leave %d at %d: %+v and %+v, want as of %v %+v and %+v",
						k.limit.Limit(), s.cost, s.leave, s.now, got, next, smaller.Limit(), want, after)
				}
			}
			if s.debt {
				k.charge(s.now, s.cost)
			} else {
				k.Keep(k.limit, next)
			}
		}
	})
}

// Whoever leaves less is allowed wherever one who leaves more is, has at least as much, and
// waits no longer.
func TestLessLeftIsNeverWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := key{limit: drawLimit(t)}
		for _, s := range drawLeaves(t, k.limit, drawDebts(t, k.limit)) {
			low, high := k.op(s.cost), k.op(s.cost)
			low.Leave = s.leave
			high.Leave = rapid.Int64Range(0, s.leave).Draw(t, "less")
			if s.debt {
				low.Always, high.Always = true, true
			}
			next, l := low.Decide(k.State, k.Tail, s.now)
			_, h := high.Decide(k.State, k.Tail, s.now)
			less, more := low.Peek(k.State, k.Tail, s.now).Remaining, high.Peek(k.State, k.Tail, s.now).Remaining // before the charge
			if l.Allowed && !h.Allowed || less > more || l.RetryAfter < h.RetryAfter {
				t.Fatalf("%v, cost %d: who leaves %d %+v, but who leaves %d %+v", k.limit.Limit(), s.cost, s.leave, l, high.Leave, h)
			}
			k.Keep(k.limit, next)
		}
	})
}

// What is left cannot be more than can be counted, and costs beyond any number do not
// overflow with it.
func TestLeaveIsBounded(t *testing.T) {
	limit := weir.MustCompile("5/1m")
	var invalid *weir.InvalidError
	for _, leave := range []int64{-1, math.MinInt64, weir.MaxUnits + 1, math.MaxInt64} {
		op := weir.Op{Key: "k", Limit: limit, Cost: 1, Leave: leave}
		if err := op.Validate(); !errors.As(err, &invalid) || invalid.Field != "leave" {
			t.Errorf("leave %d: %v", leave, err)
		}
	}
	op := weir.Op{Key: "k", Limit: limit, Cost: math.MaxInt64, Leave: weir.MaxUnits}
	if err := op.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, d := op.Decide(weir.State{}, nil, 0); d.Allowed || d.RetryAfter != weir.Never || d.Remaining != 0 {
		t.Errorf("%+v", d)
	}
	op = weir.Op{Key: "k", Limit: limit, Cost: 2, Leave: 5, Always: true}
	if _, d := op.Decide(weir.State{}, nil, 0); d.Allowed || d.RetryAfter != weir.Never || d.Excess != 0 || d.ResetAfter != 24*time.Second {
		t.Errorf("charged in any case: %+v", d)
	}
}
