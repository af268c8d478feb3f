package weir_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
)

// This file draws what the properties are tried on: small limits and short
// periods, where every edge is met often, and now and then a large one.

// everyAlgorithm is those of rates, and in flight.
func everyAlgorithm() []weir.Algorithm { return append(weir.Algorithms(), weir.InFlight) }

func drawLimit(t *rapid.T) *weir.Compiled {
	l := weir.Limit{
		Algorithm: rapid.SampledFrom(everyAlgorithm()).Draw(t, "algorithm"),
		N:         rapid.Int64Range(1, 12).Draw(t, "n"),
		Period:    time.Duration(rapid.Int64Range(1, 50).Draw(t, "period")) * time.Microsecond,
	}
	if rapid.IntRange(0, 9).Draw(t, "large") == 0 {
		l.N = rapid.Int64Range(1, 1000).Draw(t, "large n")
		l.Period = time.Duration(rapid.Int64Range(1, 86_400_000_000).Draw(t, "large period")) * time.Microsecond
	}
	bucket := l.Algorithm == weir.TokenBucket || l.Algorithm == weir.LeakyBucket
	if bucket && rapid.Bool().Draw(t, "has burst") {
		l.Burst = rapid.Int64Range(1, 20).Draw(t, "burst")
	}
	if l.Algorithm == weir.LeakyBucket {
		l.Shape = rapid.Bool().Draw(t, "shape")
	}
	if !bucket && l.Algorithm != weir.InFlight {
		l.CountDenied = rapid.IntRange(0, 3).Draw(t, "count_denied") == 0
	}
	if l.Algorithm == weir.SlidingBuckets && l.Period >= 2*time.Microsecond {
		l.Buckets = int(rapid.Int64Range(2, min(12, l.Period.Microseconds())).Draw(t, "buckets"))
	}
	c, err := l.Compile()
	if err != nil {
		t.Fatalf("drew an invalid limit %+v: %v", l, err)
	}
	return c
}

// key is one key under one limit, as a store would keep it.
type key struct {
	limit *weir.Compiled
	leave int64 // what its ops leave for others
	weir.Record
}

func (k *key) op(cost int64) *weir.Op {
	return &weir.Op{Limit: k.limit, Cost: cost, Leave: k.leave}
}

// ask decides without any effect.
func (k *key) ask(now weir.Micros, cost int64) (weir.State, weir.Decision) {
	return k.op(cost).Decide(k.State, k.Tail, now)
}

func (k *key) peek(now weir.Micros, cost int64) weir.Decision {
	return k.op(cost).Peek(k.State, k.Tail, now)
}

// take decides and keeps.
func (k *key) take(now weir.Micros, cost int64) weir.Decision {
	next, d := k.ask(now, cost)
	k.Keep(k.limit, next)
	return d
}

// history draws a past: times that mostly go on, and sometimes back.
type step struct {
	now   weir.Micros
	cost  int64
	debt  bool // charged whether or not it fits
	leave int64
}

func drawHistory(t *rapid.T, limit *weir.Compiled, back bool) []step {
	period := limit.Limit().Period.Microseconds()
	now := weir.Micros(rapid.Int64Range(0, 3*period).Draw(t, "start"))
	if rapid.Bool().Draw(t, "today") {
		now += 1_767_225_600_000_000
	}
	steps := make([]step, rapid.IntRange(1, 60).Draw(t, "steps"))
	for i := range steps {
		least := int64(0)
		if back {
			least = -period
		}
		switch rapid.IntRange(0, 5).Draw(t, "pace") {
		case 0: // at the same instant
		case 1:
			now += weir.Micros(rapid.Int64Range(0, 3*period).Draw(t, "leap"))
		default:
			now += weir.Micros(rapid.Int64Range(least, 1+period/limit.Capacity()).Draw(t, "stride"))
		}
		now = max(0, now)
		cost := int64(1)
		if rapid.Bool().Draw(t, "costly") {
			cost = rapid.Int64Range(1, limit.Capacity()+1).Draw(t, "cost")
		}
		steps[i] = step{now: now, cost: cost}
	}
	return steps
}
