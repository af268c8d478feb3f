package weir_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
)

// To release many holds in one pass is the same as one after the other, for buckets and logs in any order: unless it
// says that it is not, which it does not say of holds alone.
func TestReleaseAllIsAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t)
		algorithm := limit.Limit().Algorithm
		bucket, isLog := algorithm == weir.TokenBucket || algorithm == weir.LeakyBucket, algorithm == weir.SlidingLog || algorithm == weir.InFlight
		if limit.Limit().Shape {
			t.Skip("it has no such pass")
		}
		k := held{key: key{limit: limit}}
		refunds := rapid.Bool().Draw(t, "refunds")
		var charges []given
		for _, s := range drawHistory(t, limit, false) {
			switch h, d := k.reserve(s.now, s.cost); {
			case h == nil:
			case rapid.IntRange(0, 4).Draw(t, "settle") == 0:
				k.settle(k.open[rapid.IntRange(0, len(k.open)-1).Draw(t, "which")], s.now, rapid.Int64Range(0, s.cost).Draw(t, "used"))
			case refunds && rapid.IntRange(0, 2).Draw(t, "plain") == 0:
				k.open = k.open[:len(k.open)-1]
				charges = append(charges, given{d.Receipt, s.cost})
			case len(charges) > 0 && rapid.Bool().Draw(t, "refund"):
				k.refund(charges[0].receipt, charges[0].cost)
				charges = charges[1:]
			}
		}
		all := held{key: k.key}
		all.Tail = slices.Clone(k.Tail)
		var ends, left, leftOfAll []*weir.Held
		var endsOfAll []weir.Held
		for _, h := range k.open {
			other := *h
			if rapid.Bool().Draw(t, "ends") {
				ends, endsOfAll = append(ends, h), append(endsOfAll, other)
			} else {
				left, leftOfAll = append(left, h), append(leftOfAll, &other)
			}
		}
		next, ok := limit.ReleaseAll(all.State, all.Tail, func(yield func(*weir.Held) bool) {
			var held weir.Held
			for i := range endsOfAll {
				if held = endsOfAll[i]; !yield(&held) {
					return
				}
				endsOfAll[i].Level = held.Level
			}
		})
		if !ok && !refunds {
			t.Fatalf("%v: %+v of %+v depends on the order", limit.Limit(), endsOfAll, k.State)
		}
		if !ok {
			return
		}
		all.State = next
		if bucket {
			for i, h := range leftOfAll {
				for j, end := range endsOfAll {
					if slices.Index(k.open, ends[j]) < slices.Index(k.open, left[i]) {
						h.Level -= end.Level
					}
				}
			}
		}
		order := indices(len(ends))
		if bucket || isLog {
			order = rapid.Permutation(order).Draw(t, "order")
		}
		for _, i := range order {
			k.settle(ends[i], 0, 0)
		}
		if k.State != all.State {
			t.Fatalf("%v: one after the other %+v, all at once %+v", limit.Limit(), k.State, all.State)
		}
		for i, h := range left {
			if *h != *leftOfAll[i] {
				t.Fatalf("%v: one after the other %+v, all at once %+v", limit.Limit(), h, leftOfAll[i])
			}
		}
		for later := range weir.Micros(60) {
			now := max(k.State.Fresh-weir.Micros(limit.Limit().Period.Microseconds()), 0) + later
			if one, other := k.peek(now, 1), all.peek(now, 1); one != other {
				t.Fatalf("%v at %d: one after the other %+v, all at once %+v", limit.Limit(), now, one, other)
			}
		}
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
