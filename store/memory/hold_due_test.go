package memory

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// Holds that end all at once leave the key and the other holds as if they had ended one after the other, whatever
// else the key was charged for and got back, and if the limit has changed.
func TestManyExpireAsOneByOne(t *testing.T) {
	for _, l := range expiring() {
		for range 8 {
			seed := rand.Uint64()
			one, all := newExpiry(t, l, seed, 5), newExpiry(t, l, seed, 1<<20)
			one.live()
			all.live()
			one.compare(all)
		}
	}
}

// A call that ends many holds looks at no other ones of the key, whether these are few or most.
func TestManyExpireAlone(t *testing.T) {
	for _, text := range []string{"token_bucket 1000000000/1h", "sliding_window 1000000000/1h", "sliding_log 1000000/1h"} {
		for _, share := range []weir.Micros{50, 2} {
			const holds = 4000
			s, clock, op := many(t, text, true, holds)
			clock.Pass(weir.Micros(time.Minute.Microseconds()) + 1_000_000/share - holds) // which many took
			c := s.core.Load()
			key := c.idOf(op.Key, op.Limit)
			_, k := c.shardOf(key).heldLocked(key)
			others := map[*hold]*terms{}
			for _, h := range k.all() {
				if h.expires > clock.Now() {
					others[h], h.under = h.under, nil // so that who looks at it panics
				}
			}
			if due := holds - len(others); due < manyDue || (due < holds/fewOfAll) != (share == 50) {
				t.Fatalf("%d of %d are due", due, holds)
			}
			testkit.Must(s.Peek(t.Context(), nil, op))(t)
			for h, under := range others {
				h.under = under
			}
			if left := len(k.all()); left != len(others) {
				t.Errorf("%s: %d holds are left, want %d", text, left, len(others))
			}
			checkHolds(t, c)
		}
	}
}

// What has expired is sorted by its numbers, and by ids if these are equal, however far they are apart.
func TestDueIsSorted(t *testing.T) {
	for _, span := range []int64{1, 40, 1 << 11, 1 << 12, 1 << 30, 1 << 52} {
		k, due := new(keyHolds), []dueHold{}
		for i := range 500 {
			h := new(hold)
			binary.BigEndian.PutUint64(h.id[:], rand.Uint64())
			k.due = append(k.due, deadline{hold: h})
			due = append(due, dueHold{by: 1<<40 + rand.Int64N(span), place: int32(i)})
		}
		want := slices.SortedFunc(slices.Values(due), func(a, b dueHold) int {
			return cmp.Or(cmp.Compare(a.by, b.by), bytes.Compare(k.due[a.place].hold.id[:], k.due[b.place].hold.id[:]))
		})
		if got := k.sorted(due); !slices.Equal(got, want) {
			t.Errorf("of numbers that are %d apart at most: %v, want %v", span, got, want)
		}
	}
}

// expiring is a limit of each algorithm that gives back the units of holds that expire.
func expiring() (all []weir.Limit) {
	for _, a := range weir.Algorithms() {
		all = append(all, weir.Limit{Algorithm: a, N: 2000, Period: time.Minute, Release: true})
	}
	return append(all, weir.Limit{Algorithm: weir.LeakyBucket, N: 2000, Period: time.Minute, Release: true, Shape: true})
}

// expiry is a key whose holds expire, and how many of them at most before somebody looks.
type expiry struct {
	t      *testing.T
	store  *Store
	clock  *fake
	limits [2]*weir.Compiled
	random *rand.Rand
	atOnce int
	seed   uint64
	opened int
}

func newExpiry(t *testing.T, l weir.Limit, seed uint64, atOnce int) *expiry {
	e := &expiry{t: t, random: rand.New(rand.NewPCG(seed, 0)), atOnce: atOnce, seed: seed}
	e.store, e.clock = open(1 << 20)
	e.limits[0] = testkit.Must(l.Compile())(t)
	switch e.random.IntN(3) {
	case 0:
		l.N++
	case 1:
		l.Release = false
	}
	e.limits[1] = testkit.Must(l.Compile())(t)
	return e
}

// live lets time pass in which nobody looks, then in which a number of holds expires at most.
func (e *expiry) live() {
	refunds := e.random.IntN(3) == 0
	var taken []weir.Op
	var early []weir.HoldID
	for range 400 {
		e.clock.Pass(weir.Micros(e.random.Int64N(20_000)))
		op := weir.Op{Key: "k", Limit: e.limits[e.random.IntN(100)/99], Cost: 1 + e.random.Int64N(3)}
		if e.random.IntN(10) > 0 {
			e.opened++
			r := weir.Reservation{TTL: 15*time.Second + time.Duration(e.random.Int64N(int64(15*time.Second)))}
			binary.BigEndian.PutUint64(r.ID[:], uint64(e.opened)*0x9e3779b97f4a7c15)
			if testkit.Must(e.store.Reserve(e.t.Context(), nil, r, op))(e.t)[0].Allowed && e.random.IntN(8) == 0 {
				early = append(early, r.ID)
			}
			if len(early) > 5 {
				settle(e.t, e.store, early[0], 0)
				early = early[1:]
			}
			continue
		}
		op.Cost *= 20
		if op.Receipt = testkit.Must(e.store.Take(e.t.Context(), nil, op))(e.t)[0].Receipt; op.Receipt != 0 {
			taken = append(taken, op)
		}
		if refunds && len(taken) > 2 {
			testkit.OK(e.t, e.store.Refund(e.t.Context(), taken[0]))
			taken = taken[1:]
		}
	}
	testkit.Must(e.store.Take(e.t.Context(), nil, weir.Op{Key: "k", Limit: e.limits[e.random.IntN(2)], Cost: 1}))(e.t)
	for end := e.clock.Now() + 20_000_000; e.clock.Now() < end; {
		e.clock.Set(min(end, e.next()))
		testkit.Must(e.store.Peek(e.t.Context(), nil, weir.Op{Key: "k", Limit: e.limits[0], Cost: 1}))(e.t)
	}
	checkHolds(e.t, e.store.core.Load())
}

// next is when so many more have expired that somebody looks.
func (e *expiry) next() weir.Micros {
	var times []weir.Micros
	for _, p := range e.parts() {
		times = append(times, p.expires)
	}
	if len(times) == 0 {
		return 1 << 52
	}
	slices.Sort(times)
	return times[min(len(times), e.atOnce)-1]
}

func (e *expiry) parts() []*hold {
	c := e.store.core.Load()
	_, k := c.shardOf(c.idOf("k", e.limits[0])).heldLocked(c.idOf("k", e.limits[0]))
	return k.all()
}

// compare compares two that have lived the same.
func (e *expiry) compare(other *expiry) {
	e.t.Helper()
	var ends [2]map[weir.HoldID]weir.Held
	var states [2]weir.State
	var tails [2][]int64
	for i, x := range []*expiry{e, other} {
		c := x.store.core.Load()
		key := c.idOf("k", x.limits[0])
		sh := c.shardOf(key)
		slot, found := sh.table.find(key)
		if found {
			states[i], tails[i] = sh.table.entries[slot].state, sh.tail(slot)
		}
		ends[i] = map[weir.HoldID]weir.Held{}
		for _, p := range x.parts() {
			ends[i][p.id] = p.under.among.held(p)
		}
	}
	limit := e.limits[0]
	if states[0] != states[1] || len(ends[0]) != len(ends[1]) {
		e.t.Fatalf("%v, seed %d: %+v and %d holds, all at once %+v and %d", limit.Limit(), e.seed, states[0], len(ends[0]), states[1], len(ends[1]))
	}
	for id, h := range ends[0] {
		if ends[1][id] != h {
			e.t.Fatalf("%v, seed %d: %+v, all at once %+v", limit.Limit(), e.seed, h, ends[1][id])
		}
	}
	for later := range weir.Micros(70) {
		op, now := weir.Op{Key: "k", Limit: limit, Cost: 1000}, e.clock.Now()+later*1_000_000
		if one, all := op.Peek(states[0], tails[0], now), op.Peek(states[1], tails[1], now); one != all {
			e.t.Fatalf("%v, seed %d: %+v, all at once %+v", limit.Limit(), e.seed, one, all)
		}
	}
}
