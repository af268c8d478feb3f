package memory

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// A call does the work of its own keys, and of a few holds more, however many have expired.
func TestExpiryWorkIsBounded(t *testing.T) {
	l := weir.MustParseLimit("token_bucket 1000000/1h")
	l.Release = true
	limit := testkit.Must(l.Compile())(t)
	s, clock := open(0)
	op := func(key int) weir.Op { return weir.Op{Key: fmt.Sprint(key), Limit: limit, Cost: 1000} }
	const keys, each = 20, 200
	for i := range keys * each {
		reserve(t, s, i, op(i%keys), false)
	}
	clock.Pass(weir.Micros(time.Minute.Microseconds()))
	c := s.core.Load()
	left := func() (n int) {
		for i := range c.shards {
			for _, first := range c.shards[i].table.held {
				n += len(first.all())
			}
		}
		return n
	}
	testkit.Must(s.Peek(t.Context(), nil, weir.Op{Key: "none", Limit: limit, Cost: 1}))(t)
	if left() != keys*each {
		t.Errorf("%d holds are left after a look at another key", left())
	}
	for key := range keys / 2 {
		if d := testkit.Must(s.Peek(t.Context(), nil, op(key)))(t); d[0].Remaining != 1_000_000 {
			t.Errorf("key %d: %d remain", key, d[0].Remaining)
		}
		if want := (keys - key - 1) * each; left() != want {
			t.Errorf("key %d: %d holds are left, want %d", key, left(), want)
		}
	}
	c.holdShard(&weir.HoldID{}).open.hand = 250 // whose ids are among the last
	for range keys * each {                     // all have their turn, in the shard of the reservations
		before, id := left(), weir.NewHoldID()
		id[14], id[15] = 0, 0
		testkit.Must(s.Reserve(t.Context(), nil, weir.Reservation{ID: id, TTL: time.Millisecond}, weir.Op{Key: "-1", Limit: limit, Cost: 1}))(t)
		if ended := before - left() + 1; ended > passed*(1+swept)+1 { // one of them is of its own key
			t.Errorf("a reservation has ended %d holds", ended)
		}
		clock.Pass(1000)
	}
	if left() > 100 {
		t.Errorf("%d holds are left in the end", left())
	}
	checkKeys(t, s, DefaultMaxKeys)
}

// A hold that has expired for one of its keys has expired, even if the clock steps back.
func TestHoldLapses(t *testing.T) {
	l := weir.MustParseLimit("fixed_window 10/1d")
	l.Release = true
	a := weir.Op{Key: "a", Limit: testkit.Must(l.Compile())(t), Cost: 5}
	b := a
	b.Key = "b"
	for _, s := range []weir.Settlement{{TTL: time.Hour}, {Used: func(string, int64) int64 { return 5 }}} {
		store, clock := open(0)
		s.ID = weir.NewHoldID()
		testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: s.ID, TTL: time.Minute}, a, b))(t)
		clock.Pass(weir.Micros(time.Minute.Microseconds()))
		testkit.Must(store.Peek(t.Context(), nil, a))(t)
		clock.Pass(-weir.Micros(time.Second.Microseconds()))
		if done := testkit.Must(store.Settle(t.Context(), s))(t); done.State != weir.HoldExpired {
			t.Errorf("%+v", done)
		}
		if d := testkit.Must(store.Peek(t.Context(), nil, a, b))(t); d[0].Remaining != 10 || d[1].Remaining != 10 {
			t.Errorf("%+v", d)
		}
		checkKeys(t, store, DefaultMaxKeys)
	}
}

// A few keys with many holds leave places for others.
func TestHoldsAreShared(t *testing.T) {
	s, _ := open(4096)
	limit := weir.MustCompile("fixed_window 1000000/1d")
	ask := func(key string) bool {
		d := testkit.Must(s.Reserve(t.Context(), nil, weir.Reservation{ID: weir.NewHoldID()}, weir.Op{Key: key, Limit: limit, Cost: 1}))(t)
		if !d[0].Allowed && d[0].RetryAfter != weir.DefaultHoldTTL {
			t.Fatalf("%+v", d)
		}
		return d[0].Allowed
	}
	for i := range 20 {
		n := 0
		for key := fmt.Sprint("greedy ", i); ask(key); n++ {
		}
		if n == 0 || n > 4096/maxRemembered/share {
			t.Fatalf("key %d has %d holds", i, n)
		}
	}
	for i := range 3 {
		if !ask(fmt.Sprint("modest ", i)) {
			t.Errorf("another key has no place")
		}
	}
	checkKeys(t, s, 4096)
}

// Reservations, settlements, expiry, resets, other requests and snapshots at the same time
// keep the lists right, and give back what was taken.
func TestHoldStress(t *testing.T) {
	l := weir.MustParseLimit("sliding_log 100000/1h")
	limits := []*weir.Compiled{testkit.Must(l.Compile())(t), weir.MustCompile("token_bucket 100000/1h")}
	l.Release, l.Name = true, "release"
	limits = append(limits, testkit.Must(l.Compile())(t))
	s, clock := open(2048)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			var open []weir.HoldID
			for range 1500 {
				var ops []weir.Op
				for i, limit := range limits[:1+random.IntN(3)] {
					ops = append(ops, weir.Op{Key: fmt.Sprint(random.IntN(5), i), Limit: limit, Cost: 1 + random.Int64N(5)})
				}
				switch random.IntN(12) {
				case 0:
					clock.Pass(weir.Micros(random.Int64N(1_000_000)))
				case 1:
					if _, err := s.Take(t.Context(), nil, ops...); err != nil {
						t.Error(err)
					}
				case 2:
					if err := s.Reset(t.Context(), ops[0]); err != nil {
						t.Error(err)
					}
				case 3:
					if random.IntN(20) == 0 {
						var b bytes.Buffer
						if err := s.Snapshot(&b); err != nil {
							t.Error(err)
						}
						if err := New(Options{MaxKeys: 2048, Clock: clock.Now}).Restore(&b); err != nil {
							t.Error(err)
						}
					}
				case 4, 5, 6, 7:
					id := weir.NewHoldID()
					d, err := s.Reserve(t.Context(), nil, weir.Reservation{ID: id, TTL: time.Duration(1+random.IntN(10)) * time.Second}, ops...)
					if err != nil {
						t.Error(err)
					}
					if weir.Allowed(d) {
						open = append(open, id)
					}
				default:
					if len(open) == 0 {
						continue
					}
					i := random.IntN(len(open))
					settlement := weir.Settlement{ID: open[i], TTL: time.Second}
					if random.IntN(4) > 0 {
						used := random.Int64N(8)
						settlement.Used = func(string, int64) int64 { return used }
					}
					if _, err := s.Settle(t.Context(), settlement); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	checkKeys(t, s, 2048)
	clock.Pass(weir.Micros((2 * time.Minute).Microseconds()))
	for range 5000 { // all have their turn
		testkit.Must(s.Reserve(t.Context(), nil, weir.Reservation{ID: weir.NewHoldID(), TTL: time.Millisecond}, weir.Op{Key: "last", Limit: limits[0], Cost: 1}))(t)
		clock.Pass(1000)
	}
	checkKeys(t, s, 2048)
	c := s.core.Load()
	if n := c.holds[0].open.count; n > 100 {
		t.Errorf("%d holds are open", n)
	}
}
