package weir_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
)

// A denial changes nothing, unless the limit counts denials.
func TestDenialChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := key{limit: drawLimit(t)}
		for _, s := range drawHistory(t, k.limit, true) {
			next, d := k.ask(s.now, s.cost)
			if !d.Allowed && !k.limit.Limit().CountDenied && next != k.State {
				t.Fatalf("%v denied %d at %d and went from %+v to %+v", k.limit.Limit(), s.cost, s.now, k.State, next)
			}
			k.Keep(k.limit, next)
		}
	})
}

// A peek answers as take does, and Remaining tells the two apart by the cost.
func TestPeekEqualsTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := key{limit: drawLimit(t)}
		counts := k.limit.Limit().CountDenied
		for _, s := range drawHistory(t, k.limit, true) {
			peek := k.peek(s.now, s.cost)
			again := k.peek(s.now, s.cost)
			take := k.take(s.now, s.cost)
			if peek != again {
				t.Fatalf("two peeks differ: %+v, %+v", peek, again)
			}
			if peek.Allowed != take.Allowed || peek.Delay != take.Delay || peek.Limit != take.Limit {
				t.Fatalf("%v: peek %+v, take %+v", k.limit.Limit(), peek, take)
			}
			if !counts && peek.RetryAfter != take.RetryAfter {
				t.Fatalf("%v: peek %+v, take %+v", k.limit.Limit(), peek, take)
			}
			want := peek.Remaining
			if take.Allowed {
				want -= s.cost
			}
			if !counts && take.Remaining != want {
				t.Fatalf("%v: peek %+v, take of %d %+v", k.limit.Limit(), peek, s.cost, take)
			}
		}
	})
}

// Allow decides as Decide does, also in debt, before 1970, when the limit was changed under
// way, and about what no limiter has written.
func TestAllowEqualsDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := key{limit: drawLimit(t)}
		l := k.limit.Limit()
		l.N = rapid.Int64Range(1, 50).Draw(t, "new n")
		limits := []*weir.Compiled{k.limit}
		if other, err := l.Compile(); err == nil {
			limits = append(limits, other)
		}
		bucket, window := l.Algorithm == weir.TokenBucket || l.Algorithm == weir.LeakyBucket, l.Algorithm == weir.FixedWindow
		quick := bucket && !l.Shape || window && !l.CountDenied
		for _, s := range drawHistory(t, k.limit, true) {
			k.limit = rapid.SampledFrom(limits).Draw(t, "limit")
			switch rapid.IntRange(0, 19).Draw(t, "odd") {
			case 0:
				s.now = -s.now
			case 1:
				k.Keep(k.limit, k.owe(s.now, s.cost))
			case 2:
				if quick {
					draw := rapid.Int64Range(0, 1<<53-1)
					k.State = weir.State{Fresh: weir.Micros(draw.Draw(t, "fresh")), A: draw.Draw(t, "a"), B: draw.Draw(t, "b")}
				}
			}
			next, allowed, ok := k.limit.Allow(k.State, s.now)
			if ok != quick || k.limit.Simple() != quick {
				t.Fatalf("%+v: ok is %t, simple %t", l, ok, k.limit.Simple())
			}
			want, d := k.ask(s.now, 1)
			if ok && (next != want || allowed != d.Allowed) {
				t.Fatalf("%+v at %d: %+v becomes %+v, %t; want %+v, %t", k.limit.Limit(), s.now, k.State, next, allowed, want, d.Allowed)
			}
			k.Keep(k.limit, want)
		}
	})
}

// owe is the state after a charge that need not fit.
func (k *key) owe(now weir.Micros, cost int64) weir.State {
	op := k.op(cost)
	op.Always = true
	next, _ := op.Decide(k.State, k.Tail, now)
	return next
}

// RetryAfter is the first microsecond at which the same call is allowed.
func TestRetryAfterIsTheFirstMicrosecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := key{limit: drawLimit(t)}
		for _, s := range drawHistory(t, k.limit, true) {
			d := k.take(s.now, s.cost)
			switch {
			case d.Allowed:
				if d.RetryAfter != 0 {
					t.Fatalf("%v: allowed, but %+v", k.limit.Limit(), d)
				}
			case s.cost > k.limit.Capacity():
				if d.RetryAfter != weir.Never {
					t.Fatalf("%v: %d can never fit, but %+v", k.limit.Limit(), s.cost, d)
				}
			default:
				then := s.now + weir.Micros(d.RetryAfter.Microseconds())
				if then <= s.now || d.RetryAfter%time.Microsecond != 0 {
					t.Fatalf("%v: denied, but %+v", k.limit.Limit(), d)
				}
				if !k.peek(then, s.cost).Allowed {
					t.Fatalf("%v: at %d came back at %d as told, and was denied: %+v", k.limit.Limit(), s.now, then, d)
				}
				if k.peek(then-1, s.cost).Allowed {
					t.Fatalf("%v: at %d could have come a microsecond before %d: %+v", k.limit.Limit(), s.now, then, d)
				}
			}
		}
	})
}

// Also when the limit was changed under way, RetryAfter and Remaining are true.
func TestChangedLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawLimit(t)
		l := before.Limit()
		l.N = rapid.Int64Range(1, 50).Draw(t, "new n")
		if l.Burst != 0 {
			l.Burst = rapid.Int64Range(1, 50).Draw(t, "new burst")
		}
		after, err := l.Compile()
		if err != nil {
			t.Skip("out of range")
		}
		k := key{limit: before}
		for _, s := range drawHistory(t, before, true) {
			k.limit = before
			if rapid.Bool().Draw(t, "changed") {
				k.limit = after
			}
			d := k.take(s.now, s.cost)
			if d.Remaining > 0 && !k.peek(s.now, d.Remaining).Allowed || k.peek(s.now, d.Remaining+1).Allowed {
				t.Fatalf("%v at %d: %d remain, which is not true", k.limit.Limit(), s.now, d.Remaining)
			}
			if d.Allowed || d.RetryAfter == weir.Never {
				continue
			}
			then := s.now + weir.Micros(d.RetryAfter.Microseconds())
			if !k.peek(then, s.cost).Allowed || k.peek(then-1, s.cost).Allowed {
				t.Fatalf("%v after %v at %d: %v is not the first instant", k.limit.Limit(), before.Limit(), s.now, d.RetryAfter)
			}
		}
	})
}

// Remaining is the truth: that many can be taken now, one more cannot.
func TestRemainingIsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := key{limit: drawLimit(t)}
		for _, s := range drawHistory(t, k.limit, true) {
			d := k.take(s.now, s.cost)
			if d.Remaining < 0 || d.Remaining > d.Limit || d.Limit != k.limit.Capacity() {
				t.Fatalf("%v: %+v", k.limit.Limit(), d)
			}
			if d.Remaining > 0 && !k.peek(s.now, d.Remaining).Allowed {
				t.Fatalf("%v at %d: %d remain but cannot be taken", k.limit.Limit(), s.now, d.Remaining)
			}
			if k.peek(s.now, d.Remaining+1).Allowed {
				t.Fatalf("%v at %d: %d remain but more can be taken", k.limit.Limit(), s.now, d.Remaining)
			}
		}
	})
}

// From ResetAfter on, and not before, a key answers like one never seen.
func TestResetIsAsGoodAsNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := key{limit: drawLimit(t)}
		for _, s := range drawHistory(t, k.limit, true) {
			d := k.take(s.now, s.cost)
			if d.ResetAfter == 0 {
				continue
			}
			reset := s.now + weir.Micros(d.ResetAfter.Microseconds())
			fresh := key{limit: k.limit}
			for _, later := range []weir.Micros{0, 1, weir.Micros(k.limit.Limit().Period.Microseconds())} {
				if got, want := k.peek(reset+later, 1), fresh.peek(reset+later, 1); got != want {
					t.Fatalf("%v after its reset: %+v, a new key: %+v", k.limit.Limit(), got, want)
				}
			}
			if k.peek(reset-1, 0).Remaining == k.limit.Capacity() && k.limit.Limit().Algorithm != weir.LeakyBucket && k.limit.Limit().Algorithm != weir.TokenBucket {
				t.Fatalf("%v was fully reset before its reset", k.limit.Limit())
			}
		}
	})
}

// Cost c at once is c times cost 1 at the same instant.
func TestCostsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t)
		whole, pieces := key{limit: limit}, key{limit: limit}
		for _, s := range drawHistory(t, limit, true) {
			if !whole.take(s.now, s.cost).Allowed {
				continue
			}
			for i := range s.cost {
				if !pieces.take(s.now, 1).Allowed {
					t.Fatalf("%v allowed %d at once, but not piece %d", limit.Limit(), s.cost, i+1)
				}
			}
			if limit.Limit().CountDenied {
				return // the denials of the two differ from here on
			}
			if got, want := pieces.peek(s.now, 1), whole.peek(s.now, 1); got != want {
				t.Fatalf("%v: pieces %+v, whole %+v", limit.Limit(), got, want)
			}
		}
	})
}

// A shaping limit never holds a request for longer than it is willing to wait,
// and a denial names the first instant at which it would not.
func TestMaxDelay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t).Limit()
		l.Algorithm, l.Shape, l.CountDenied, l.Buckets = weir.LeakyBucket, true, false, 0
		limit, err := l.Compile()
		if err != nil {
			t.Skip("too large for a bucket")
		}
		k := key{limit: limit}
		for _, s := range drawHistory(t, limit, true) {
			op := weir.Op{Limit: limit, Cost: s.cost, MaxDelay: time.Duration(rapid.Int64Range(1, 2*int64(l.Period)).Draw(t, "max"))}
			next, d := op.Decide(k.State, k.Tail, s.now)
			if d.Allowed && d.Delay > op.MaxDelay {
				t.Fatalf("%v: held for %v, at most %v was acceptable", l, d.Delay, op.MaxDelay)
			}
			if !d.Allowed && d.RetryAfter != weir.Never {
				then := s.now + weir.Micros(d.RetryAfter.Microseconds())
				if !op.Peek(k.State, k.Tail, then).Allowed || op.Peek(k.State, k.Tail, then-1).Allowed {
					t.Fatalf("%v: denied %+v with at most %v, but %v is not the first instant", l, d, op.MaxDelay, d.RetryAfter)
				}
			}
			k.Keep(k.limit, next)
			if rapid.Bool().Draw(t, "queue up") {
				k.take(s.now, 1)
			}
		}
	})
}

// All ops of a request are charged or none, except those that are only looked at.
func TestSettleAllOrNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := make([]key, rapid.IntRange(2, 4).Draw(t, "keys"))
		for i := range keys {
			keys[i].limit = drawLimit(t)
		}
		for _, s := range drawHistory(t, keys[0].limit, true) {
			ops := make([]weir.Op, len(keys))
			charges := make([]weir.Pending, len(keys))
			for i, k := range keys {
				ops[i] = weir.Op{Key: string(rune('a' + i)), Limit: k.limit, Cost: min(s.cost, k.limit.Capacity()), Look: rapid.IntRange(0, 3).Draw(t, "look") == 0}
				charges[i] = weir.Pending{Op: &ops[i], Prev: k.State, Tail: k.Tail}
			}
			all := true
			for i, d := range weir.DecideAll(nil, s.now, charges) {
				all = all && d.Allowed
				if peeked := keys[i].peek(s.now, ops[i].Cost); ops[i].Look && d != peeked {
					t.Fatalf("op %d (%v) was only looked at: %+v, want %+v", i, keys[i].limit.Limit(), d, peeked)
				}
			}
			for i, c := range charges {
				alone, _ := ops[i].Decide(c.Prev, c.Tail, s.now)
				want := c.Prev
				if !ops[i].Look && (all || ops[i].Limit.Limit().CountDenied) {
					want = alone
				}
				if c.Next != want {
					t.Fatalf("op %d (%v) of a request allowed=%v went to %+v, want %+v", i, keys[i].limit.Limit(), all, c.Next, want)
				}
				keys[i].Keep(keys[i].limit, c.Next)
			}
		}
	})
}

// Costs that add up beyond any number are denied, and mint nothing.
func TestSettleHugeCosts(t *testing.T) {
	limit := weir.MustCompile("fixed_window 5/1m count_denied")
	for _, costs := range [][2]int64{{1, math.MaxInt64}, {math.MaxInt64, 1}, {math.MaxInt64, math.MaxInt64}} {
		ops := []weir.Op{{Key: "k", Limit: limit, Cost: costs[0]}, {Key: "k", Limit: limit, Cost: costs[1]}}
		charges := []weir.Pending{{Op: &ops[0]}, {Op: &ops[1]}}
		d := weir.DecideAll(nil, 0, charges)
		if d[1].Allowed || d[1].RetryAfter != weir.Never || charges[1].Next.A != 5 {
			t.Errorf("costs %d: %+v, then %+v", costs, d[1], charges[1].Next)
		}
	}
}

// What denials count is bounded, in number and in memory.
func TestDenialsDoNotAddUpForever(t *testing.T) {
	for _, limit := range []string{
		"fixed_window 1125899906842624/1d count_denied", "sliding_window 1125899906842624/1d count_denied",
		"sliding_buckets 100000000000000/1d count_denied", "sliding_log 3/1d count_denied", "sliding_log 1048576/1d count_denied",
	} {
		k := key{limit: weir.MustCompile(limit)}
		for i := range weir.Micros(100) {
			k.take(1+i, k.limit.Capacity())
		}
		if k.State.A > weir.MaxUnits || k.limit.TailLen(k.State) > 60 || len(k.Tail) > 64 {
			t.Errorf("%s: %+v with a tail of %d", limit, k.State, len(k.Tail))
		}
	}
}

// A tail has what its state needs: a log's, one word for each microsecond at which
// units were taken, whatever their number. It doubles.
func TestTailLen(t *testing.T) {
	for limit, want := range map[string][]int{
		"fixed_window 50/1m": {0, 0, 0, 0, 0, 0}, "token_bucket 50/1m": {0, 0, 0, 0, 0, 0},
		"sliding_log 50/1m": {1, 1, 2, 2, 3, 3}, "sliding_buckets 50/1m buckets 7": {7, 7, 7, 7, 7, 7},
	} {
		k := key{limit: weir.MustCompile(limit)}
		for i, need := range want {
			k.take(weir.Micros(1+i/2), int64(i))
			length := 0
			for need > length {
				length = max(1, 2*length)
			}
			if got := k.limit.TailLen(k.State); len(k.Tail) != length || got != need {
				t.Errorf("%s after %d: TailLen %d, want %d; a tail of %d, want %d", limit, i+1, got, need, len(k.Tail), length)
			}
		}
	}
}

// A log of any N and period that is accepted is exact at both ends of its bits, and
// however often they overflow.
func TestLogsOfAnySize(t *testing.T) {
	for _, c := range []struct {
		period time.Duration
		most   int64
	}{
		{time.Microsecond, 1 << 20}, {time.Hour, 1 << 20}, {100 * 24 * time.Hour, 1 << 20},
		{(1<<43 - 1) * time.Microsecond, 1 << 20}, {1 << 43 * time.Microsecond, 1 << 19},
		{365 * 24 * time.Hour, 1 << 18}, {weir.MaxPeriod, 1 << 14},
	} {
		l := weir.Limit{Algorithm: weir.SlidingLog, N: c.most, Period: c.period}
		limit, err := l.Compile()
		if err != nil {
			t.Fatal(err)
		}
		l.N++
		if _, err := l.Compile(); err == nil {
			t.Errorf("%v was accepted", l)
		}
		period := weir.Micros(c.period.Microseconds())
		k := key{limit: limit}
		for round := range weir.Micros(9) {
			now := 1_767_225_600_000_000 + round*period
			if d := k.take(now, 1); !d.Allowed || d.Remaining != c.most-1 {
				t.Fatalf("%v in round %d: %+v", limit.Limit(), round, d)
			}
			d := k.take(now+period-1, c.most-1)
			if !d.Allowed || d.Remaining != 0 {
				t.Fatalf("%v in round %d: %+v", limit.Limit(), round, d)
			}
			denied := k.peek(now+period-1, 1)
			if denied.Allowed || denied.RetryAfter != time.Microsecond {
				t.Fatalf("%v in round %d: %+v", limit.Limit(), round, denied)
			}
			k.refund(d.Receipt, c.most-1)
			if period > 1 && k.peek(now+period-1, 1).Remaining != c.most-1 {
				t.Fatalf("%v in round %d: %+v", limit.Limit(), round, k.peek(now+period-1, 1))
			}
		}
	}
}

// A decision that is used again keeps nothing of the last.
func TestSettleOverwrites(t *testing.T) {
	for _, limit := range []string{"leaky_bucket 5/1s shape", "leaky_bucket 5/1s", "sliding_log 5/200ms", "fixed_window 5/200ms"} {
		op := weir.Op{Limit: weir.MustCompile(limit), Cost: 1}
		d := weir.Decision{Limit: 7, Remaining: 7, RetryAfter: 7, ResetAfter: 7, ResetAt: 7, Delay: 7, Receipt: 7, Excess: 7}
		(&weir.Pending{Op: &op}).Decide(&d, 0)
		if want := (weir.Decision{Allowed: true, Limit: 5, Remaining: 4, ResetAfter: 200 * time.Millisecond, ResetAt: 200_000, Receipt: 200_000}); d != want {
			t.Errorf("%s: %+v, want %+v", limit, d, want)
		}
	}
}

// Before the epoch it is the epoch, for every algorithm.
func TestClockBeforeTheEpoch(t *testing.T) {
	for _, a := range everyAlgorithm() {
		limit := weir.MustCompile(a.String() + " 5/100us")
		before, at := key{limit: limit}, key{limit: limit}
		before.take(-7, 5)
		at.take(0, 5)
		d, want := before.peek(-7, 1), at.peek(0, 1)
		want.RetryAfter += 7 * time.Microsecond
		want.ResetAfter += 7 * time.Microsecond
		if before.State != at.State || d != want {
			t.Errorf("%v: %+v and %+v, want %+v and %+v", a, before.State, d, at.State, want)
		}
	}
}

// However long a key was unavailable, a check does not walk through the time.
func TestLongAbsence(t *testing.T) {
	k := key{limit: weir.MustCompile("sliding_buckets 5/4us buckets 2")}
	k.take(1_767_225_600_000_000, 5)
	if d := k.take(1_798_761_600_000_000, 1); d.Remaining != 4 {
		t.Errorf("%+v, want 4 left", d)
	}
}

// Sub-windows move into any ring that holds them.
func TestMoveSubWindows(t *testing.T) {
	k := key{limit: weir.MustCompile("sliding_buckets 9/50us buckets 5")}
	for _, now := range []weir.Micros{103, 115, 128, 133, 149} {
		k.take(now, 1)
	}
	for length := 5; length < 12; length++ {
		moved := key{limit: k.limit, Record: weir.Record{State: k.State, Tail: make([]int64, length)}}
		k.limit.MoveTail(moved.Tail, k.Tail, k.State)
		for now := weir.Micros(149); now < 210; now++ {
			if got, want := moved.peek(now, 8), k.peek(now, 8); got != want {
				t.Fatalf("in %d words at %d: %+v, want %+v", length, now, got, want)
			}
		}
	}
}

// A log moves into any ring that holds what still counts.
func TestMoveTail(t *testing.T) {
	k := key{limit: weir.MustCompile("sliding_log 4/100us")}
	for _, now := range []weir.Micros{1, 2, 3, 4, 103} {
		k.take(now, 1)
	}
	for length := 4; length <= 64; length *= 2 {
		moved := key{limit: k.limit, Record: weir.Record{State: k.State, Tail: make([]int64, length)}}
		k.limit.MoveTail(moved.Tail, k.Tail, k.State)
		if got, want := moved.peek(103, 3), k.peek(103, 3); got != want || want.RetryAfter != time.Microsecond {
			t.Errorf("in %d words: %+v, want %+v", length, got, want)
		}
	}
}

// Entries of a log are numbered from 0 again after 2^24 of them, and nothing else changes.
func TestLogAfterManyEntries(t *testing.T) {
	young, old := key{limit: weir.MustCompile("sliding_log 16/1ms")}, key{limit: weir.MustCompile("sliding_log 16/1ms")}
	for now := range weir.Micros(16) {
		young.take(now, 1)
		old.take(now, 1)
	}
	old.State.A += (1<<24 - 16) << 21 // the ring has 16 words
	for now := weir.Micros(16); now < 5000; now += 37 {
		if a, b := young.take(now, 1), old.take(now, 1); a != b {
			t.Fatalf("at %d: %+v and %+v", now, a, b)
		}
		if now%3 == 0 {
			young.refund(weir.Latest, 2)
			old.refund(weir.Latest, 2)
		}
	}
}

// Of ops that share a state, only the last one changes it, by the costs of all of them.
func TestDecideAllChargesASharedStateOnce(t *testing.T) {
	limit := weir.MustCompile("fixed_window 10/1m")
	other := weir.MustCompile("fixed_window 10/1h")
	ops := []weir.Op{{Key: "a", Limit: other, Cost: 5}, {Key: "a", Limit: limit, Cost: 1}, {Key: "b", Limit: limit, Cost: 4}, {Key: "a", Limit: limit, Cost: 2}}
	charges := make([]weir.Pending, len(ops))
	for i := range ops {
		charges[i].Op = &ops[i]
	}
	weir.DecideAll(nil, 0, charges)
	for i, want := range []int64{5, 0, 4, 3} {
		if got := charges[i].Next.A; got != want {
			t.Errorf("op %d leaves a state with %d units, want %d", i, got, want)
		}
	}
}
