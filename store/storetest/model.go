package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/traffic/scenario"
)

// testModel plays the same random history to the store and to the bare arithmetic, and
// demands the same answers at every step. Every run has another history.
func testModel(t *testing.T, open Open) {
	for _, limit := range limits(t, "5") {
		t.Run(limit.Limit().String(), func(t *testing.T) { history(t, open(t), limit, 400) })
	}
	t.Run("several limits", func(t *testing.T) {
		history(t, open(t), nil, 1500)
	})
}

// history draws from one limit, or from all of them if it is nil.
func history(t *testing.T, subject Subject, only *weir.Compiled, steps int) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	model := scenario.NewModel()
	pool := []*weir.Compiled{only}
	if only == nil {
		pool = append(limits(t, "5"), limits(t, "9")...)
	}
	now := weir.MicrosOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	latest := now
	var taken []weir.Op // that may be given back
	for step := range steps {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
		now = max(now+leap(random), latest-back)
		latest = max(latest, now)
		model.Now = now
		subject.Set(now)
		ops := draw(random, pool)
		ask, expect, verb := subject.Store.Take, model.Take, "take"
		switch random.IntN(10) {
		case 0, 1:
			ask, expect, verb = subject.Store.Peek, model.Peek, "peek"
		case 2:
			verb = "charge"
			for i := range ops {
				ops[i].Always = !ops[i].Look
				ops[i].Cost += random.Int64N(3) * random.Int64N(40) // now and then more than a key may owe
			}
		}
		got, err := ask(t.Context(), nil, ops...)
		must(err)
		want, err := expect(t.Context(), nil, ops...)
		must(err)
		for i := range ops {
			if got[i] != want[i] {
				t.Fatalf("seed %d, step %d at %d: %s %d of %q under %s, op %d of %d:\n got %+v\nwant %+v",
					seed, step, now, verb, ops[i].Cost, ops[i].Key, ops[i].Limit.Limit(), i+1, len(ops), got[i], want[i])
			}
		}
		if verb == "charge" || verb == "take" && weir.Allowed(got) {
			for i := range ops {
				ops[i].Receipt = got[i].Receipt
			}
			taken = append(taken[max(0, len(taken)-5):], ops...)
		}
		if renewed := renewable(random, taken); len(renewed) > 0 {
			got, err := subject.Store.Take(t.Context(), nil, renewed...)
			must(err)
			want, err := model.Take(t.Context(), nil, renewed...)
			must(err)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d at %d: renew %+v:\n got %+v\nwant %+v", seed, step, now, renewed, got, want)
			}
		}
		if len(taken) > 0 && random.IntN(4) == 0 {
			back := refundable(random, taken)
			must(subject.Store.Refund(t.Context(), back...))
			must(model.Refund(t.Context(), back...))
		}
		if random.IntN(100) == 0 {
			must(subject.Store.Reset(t.Context(), ops...))
			must(model.Reset(t.Context(), ops...))
		}
	}
}

// renewable draws places from what was taken.
func renewable(random *rand.Rand, taken []weir.Op) (ops []weir.Op) {
	for _, op := range taken {
		if op.Limit.Algorithm() == weir.InFlight && op.Receipt != 0 && random.IntN(4) == 0 {
			op.Cost, op.Always, op.Look = 1, true, false
			ops = append(ops, op)
		}
	}
	return ops
}

// refundable draws from what was taken: one or several, in any order, now and then
// not all of it, or whatever is the latest.
func refundable(random *rand.Rand, taken []weir.Op) []weir.Op {
	var ops []weir.Op
	for _, i := range random.Perm(len(taken))[:1+random.IntN(min(3, len(taken)))] {
		op := taken[i]
		op.Cost -= random.Int64N(op.Cost)
		if random.IntN(5) == 0 {
			op.Receipt = weir.Latest
		}
		ops = append(ops, op)
	}
	return ops
}

// back is how far the clock steps back from the latest time: a store that has
// forgotten a recovered key by then could not know better.
const back = weir.Micros(10_000_000)

// leap is how far the clock moves: often not at all, seldom far, sometimes back.
func leap(random *rand.Rand) weir.Micros {
	switch random.IntN(10) {
	case 0, 1, 2:
		return 0
	case 3:
		return 1
	case 4:
		return -weir.Micros(random.Int64N(int64(back)))
	case 5:
		return weir.Micros(random.Int64N(300_000_000))
	default:
		return weir.Micros(random.Int64N(15_000_000))
	}
}

func draw(random *rand.Rand, pool []*weir.Compiled) []weir.Op {
	n := 1
	if len(pool) > 1 {
		n += random.IntN(4)
	}
	ops := make([]weir.Op, n)
	for i := range ops {
		ops[i] = weir.Op{
			Key:   fmt.Sprintf("key %d", random.IntN(4)),
			Limit: pool[random.IntN(len(pool))],
			Cost:  1 + random.Int64N(3)*random.Int64N(3),
		}
		if random.IntN(4) == 0 {
			ops[i].MaxDelay = time.Duration(random.Int64N(60)) * time.Second
		}
		if random.IntN(3) == 0 {
			ops[i].Leave = random.Int64N(ops[i].Limit.Capacity() + 2) // with the last two nothing fits
		}
		ops[i].Look = random.IntN(6) == 0
	}
	return ops
}
