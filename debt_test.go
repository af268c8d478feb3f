package weir_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
)

// charge takes the cost whether or not it fits, and keeps that.
func (k *key) charge(now weir.Micros, cost int64) weir.Decision {
	op := k.op(cost)
	op.Always = true
	next, d := op.Decide(k.State, k.Tail, now)
	k.Keep(k.limit, next)
	return d
}

// drawDebts draws a history in which some steps are charges, and some of these costly.
func drawDebts(t *rapid.T, limit *weir.Compiled) []step {
	steps := drawHistory(t, limit, true)
	for i := range steps {
		s := &steps[i]
		s.debt = rapid.IntRange(0, 3).Draw(t, "charge") == 0
		if s.debt && rapid.Bool().Draw(t, "far beyond") {
			s.cost += rapid.Int64Range(0, 6*limit.Capacity()).Draw(t, "beyond")
		}
	}
	return steps
}

// A debt counts like any other units: every verdict and delay is the oracle's, and the
// time to wait is the first microsecond at which a unit fits.
func TestDebtAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t)
		checkOracle(t, limit, drawLeaves(t, limit, drawDebts(t, limit)))
	})
}

// A charge that is too much as a whole leaves the key as it was: when the clock then steps
// back, the denied request counts in the sub-window of the debt, and expires with it.
func TestDebtBeyondAllDoesNotMoveTime(t *testing.T) {
	checkOracle(t, weir.MustCompile("sliding_buckets 1/21us buckets 2 count_denied"), []step{
		{now: 0, cost: 11, debt: true},
		{now: 11, cost: 1, debt: true},
		{now: 10, cost: 1},
		{now: 31, cost: 1},
	})
}

// checkDebt checks what a charge says about itself.
func (k *key) checkDebt(t rapid.TB, s step, d weir.Decision) {
	if d.Excess < 0 || d.Excess > s.cost || d.Allowed && d.Excess > 0 || (d.Receipt == 0) != (d.Excess == s.cost) {
		t.Fatalf("%v: a charge of %d was answered %+v", k.limit.Limit(), s.cost, d)
	}
	more := weir.Op{Limit: k.limit, Cost: 1, Always: true}
	if _, again := more.Decide(k.State, k.Tail, s.now); d.Excess > 0 && again.Excess != 1 {
		t.Fatalf("%v: of %d units %d were too much, but one more was not: %+v", k.limit.Limit(), s.cost, d.Excess, again)
	}
	if d.Allowed {
		return
	}
	if 1+s.leave > k.limit.Capacity() {
		if d.RetryAfter != weir.Never {
			t.Fatalf("%v leaves %d, so no unit is ever free, but %+v", k.limit.Limit(), s.leave, d)
		}
		return
	}
	then := s.now + weir.Micros(d.RetryAfter.Microseconds())
	if d.Remaining != 0 || then <= s.now || !k.peek(then, 1).Allowed || k.peek(then-1, 1).Allowed {
		t.Fatalf("%v at %d: %+v, but %+v and %+v", k.limit.Limit(), s.now, d, k.peek(then-1, 1), k.peek(then, 1))
	}
}

// What leaves in a period is at most the bound, and the sum of what did not fit or, of a
// queue, was not delayed.
func TestDebtIsAllThatExceedsTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := key{limit: drawLimit(t)}
		var releases []release
		var latest weir.Micros
		var maxCost, overruns int64
		for _, s := range drawDebts(t, k.limit) {
			var d weir.Decision
			if s.debt {
				free := k.peek(s.now, 0).Remaining
				d = k.charge(s.now, s.cost)
				s.cost -= d.Excess
				if k.limit.Limit().Shape {
					free = 0 // it does not wait for its turn
				}
				overruns += max(0, s.cost-free)
			} else if d = k.take(s.now, s.cost); !d.Allowed {
				continue
			}
			latest = max(latest, s.now)
			at := latest + weir.Micros(d.Delay.Microseconds())
			if n := len(releases); n > 0 {
				at = max(at, releases[n-1].at)
			}
			releases = append(releases, release{at, s.cost})
			maxCost = max(maxCost, s.cost)
		}
		got := worst(releases, weir.Micros(k.limit.Limit().Period.Microseconds()))
		if most := k.limit.Bound(max(1, maxCost)) + overruns; got > most {
			t.Fatalf("%v let %d units go in one period, its bound and the overruns are %d", k.limit.Limit(), got, most)
		}
	})
}

// A key owes at most ten times its capacity, or what can be counted exactly.
func TestMaxUsage(t *testing.T) {
	for limit, want := range map[string]int64{
		"fixed_window 10/1m": 110, "sliding_window 10/1m": 110, "sliding_buckets 10/1m": 110, "sliding_log 10/1m": 110,
		"token_bucket 10/1m": 110, "token_bucket 10/1m burst 3": 33, "leaky_bucket 10/1m shape": 110,
		"fixed_window 1125899906842624/1m":               1 << 52,
		"sliding_window 1125899906842624/1m":             1 << 52,
		"sliding_buckets 147658344175663/1m":             1<<53 - 1 - 60*147658344175663,
		"sliding_log 190650/1m":                          1<<21 - 2,
		"sliding_log 1048576/1m":                         1<<21 - 1,
		"sliding_log 16384/3650d":                        1<<15 - 1,
		"token_bucket 1000000/1s burst 1125899906842624": 1<<53 - 1,
	} {
		k := key{limit: weir.MustCompile(limit)}
		if got := k.limit.MaxUsage(); got != want {
			t.Errorf("%s: MaxUsage is %d, want %d", limit, got, want)
		}
		now := weir.Micros(1_767_225_600_000_000)
		var charged int64
		for range 64 {
			d := k.charge(now, min(want, weir.MaxUnits))
			charged += min(want, weir.MaxUnits) - d.Excess
			if d.Excess > 0 {
				break
			}
		}
		most := want
		if limit == "token_bucket 1000000/1s burst 1125899906842624" {
			most -= int64(now) // the time at which it is reset is exact, too
		}
		if charged != most {
			t.Errorf("%s: %d units were charged, want %d", limit, charged, most)
		}
	}
}

// The same as charged one by one, a charge of many is a constant number of words.
func TestDebtOfALogIsOneWord(t *testing.T) {
	k := key{limit: weir.MustCompile("sliding_log 100/1s")}
	k.take(1, 100)
	k.charge(2, 900)
	if d := k.peek(2, 1); k.limit.TailLen(k.State) != 2 || d.RetryAfter != time.Second {
		t.Errorf("%d words, %+v", k.limit.TailLen(k.State), d)
	}
}
