package weir_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
)

// at returns an open hold, of those that were all reserved under the key's limit.
func (k *held) at(i int) (*weir.Compiled, weir.Held) {
	if i == len(k.open) {
		return nil, weir.Held{}
	}
	return k.limit, *k.open[i]
}

// A denial says that what is missing is only reserved if, and only if, the op would be allowed once all
// open holds have given back what they have.
func TestOnlyReserved(t *testing.T) {
	said := map[weir.Algorithm]int{}
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t)
		k := held{key: key{limit: limit}}
		for _, s := range drawHistory(t, limit, false) {
			switch {
			case len(k.open) > 0 && rapid.IntRange(0, 3).Draw(t, "settle") == 0:
				h := k.open[rapid.IntRange(0, len(k.open)-1).Draw(t, "which")]
				k.settle(h, s.now, rapid.Int64Range(0, h.Cost+2).Draw(t, "used"))
			case rapid.IntRange(0, 3).Draw(t, "plain") == 0:
				k.take(s.now, s.cost)
			default:
				k.reserve(s.now, s.cost)
			}
			op := weir.Op{Limit: limit, Cost: rapid.Int64Range(1, limit.Capacity()+1).Draw(t, "cost"), Leave: rapid.Int64Range(0, 2).Draw(t, "leave")}
			charge := weir.Pending{Op: &op, Prev: k.State, Tail: k.Tail}
			d := op.Peek(k.State, k.Tail, s.now)
			before := d
			charge.TellReserved(&d, s.now, k.at)

			after := held{key: k.key}
			after.Tail = slices.Clone(k.Tail)
			for _, h := range k.open {
				given := *h
				after.open = append(after.open, &given)
			}
			for len(after.open) > 0 {
				after.settle(after.open[rapid.IntRange(0, len(after.open)-1).Draw(t, "first")], s.now, 0)
			}
			l := limit.Limit()
			tells := !l.CountDenied && !l.Shape && l.Algorithm != weir.InFlight
			want := tells && !before.Allowed && before.RetryAfter != weir.Never && op.Peek(after.State, after.Tail, s.now).Allowed
			if (d.Reserved > 0) != want {
				t.Fatalf("%v at %d: %+v, want only reserved: %v; %d open holds", l, s.now, d, want, len(k.open))
			}
			if !want {
				if d != before {
					t.Fatalf("%v at %d: %+v became %+v", l, s.now, before, d)
				}
				continue
			}
			said[l.Algorithm]++
			if d.RetryAfter != min(before.RetryAfter, time.Second) || d.Reserved < op.Cost-before.Remaining || d.Allowed {
				t.Fatalf("%v at %d: %+v became %+v", l, s.now, before, d)
			}
		}
	})
	for _, a := range weir.Algorithms() {
		if said[a] == 0 {
			t.Errorf("%v: no denial was only reserved", a)
		}
	}
}

// Holds that were reserved under another N are counted on only if they give that much back.
func TestOnlyReservedOfAChangedLimit(t *testing.T) {
	said := 0
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t)
		l := limit.Limit()
		l.N = rapid.Int64Range(1, 20).Draw(t, "other n")
		changed, err := l.Compile()
		if err != nil {
			t.Skip(err)
		}
		k, under := held{key: key{limit: limit}}, map[*weir.Held]*weir.Compiled{}
		for i, s := range drawHistory(t, limit, false) {
			if i > 5 {
				k.limit = changed
			}
			if h, _ := k.reserve(s.now, s.cost); h != nil {
				under[h] = k.limit
			}
			op := weir.Op{Limit: changed, Cost: rapid.Int64Range(1, changed.Capacity()).Draw(t, "cost")}
			charge := weir.Pending{Op: &op, Prev: k.State, Tail: k.Tail}
			d := op.Peek(k.State, k.Tail, s.now)
			charge.TellReserved(&d, s.now, func(i int) (*weir.Compiled, weir.Held) {
				if i == len(k.open) {
					return nil, weir.Held{}
				}
				return under[k.open[i]], *k.open[i]
			})
			if d.Reserved == 0 {
				continue
			}
			said++
			state, tail := k.State, slices.Clone(k.Tail)
			for i := len(k.open) - 1; i >= 0; i-- { // the last first, so that none moves up
				state, _ = under[k.open[i]].Release(state, tail, *k.open[i], k.open[i].Cost)
			}
			if after := op.Peek(state, tail, s.now); !after.Allowed {
				t.Fatalf("%v became %v: at %d %+v, but with all given back %+v", limit.Limit(), l, s.now, d, after)
			}
		}
	})
	if said == 0 {
		t.Error("nothing was only reserved")
	}
}

// However many holds are open, a denial looks at 64 of them.
func TestOnlyReservedLooksAtFew(t *testing.T) {
	limit := weir.MustCompile("fixed_window 1000/1h")
	k := key{limit: limit}
	k.take(0, 1000)
	for _, c := range []struct{ cost, reserved int64 }{{64, 64}, {65, 0}} {
		op, looked := weir.Op{Limit: limit, Cost: c.cost}, 0
		charge := weir.Pending{Op: &op, Prev: k.State}
		d := op.Peek(k.State, nil, 0)
		charge.TellReserved(&d, 0, func(int) (*weir.Compiled, weir.Held) {
			looked++
			return limit, weir.Held{Cost: 1, Receipt: weir.Receipt(k.State.Fresh)}
		})
		if d.Reserved != c.reserved || looked != 64 {
			t.Errorf("of %d units %d are only reserved, want %d; it looked at %d holds", c.cost, d.Reserved, c.reserved, looked)
		}
	}
}
