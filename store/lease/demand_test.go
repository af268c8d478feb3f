package lease

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// With more demand than there is, two processes together allow nearly what the store alone would, with fewer calls.
func TestDemandAboveTheLimit(t *testing.T) {
	for _, text := range []string{"fixed_window 500/1s", "sliding_window 500/1s", "token_bucket 500/1s", "sliding_log 500/1s", "token_bucket 500/1s burst 5000"} {
		limit := weir.MustCompile(text)
		exact, _ := demand(t, limit, false)
		leased, calls := demand(t, limit, true)
		t.Logf("%s: %d allowed with leases, %d without; %.2f calls for a check", text, leased, exact, calls)
		if float64(leased) < 0.95*float64(exact) || calls > 0.8 {
			t.Errorf("%s: %d allowed with leases, %d without; %.2f calls for a check", text, leased, exact, calls)
		}
	}
}

// demand offers 800 requests a second to two processes, and returns how many they allow, and the calls for each.
func demand(t *testing.T, limit *weir.Compiled, leases bool) (allowed int64, calls float64) {
	synctest.Test(t, func(t *testing.T) {
		shared := newReference(wallNow)
		var wg sync.WaitGroup
		var got, all, made atomic.Int64
		for range 2 {
			n := &network{reference: shared, trip: time.Millisecond}
			var store weir.Store = n
			if leases {
				store = holder(t, n, Options{})
			}
			wg.Go(func() {
				for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Duration(rand.ExpFloat64() * float64(time.Second/400))) {
					wg.Go(func() {
						all.Add(1)
						if testkit.Must(store.Take(t.Context(), nil, weir.Op{Key: "k", Limit: limit, Cost: 1}))(t)[0].Allowed {
							got.Add(1)
						}
					})
				}
			})
			defer func() {
				made.Add(n.calls.Load())
				allowed, calls = got.Load(), float64(made.Load())/float64(all.Load())
			}()
		}
		wg.Wait()
	})
	return allowed, calls
}

// When a denial is not remembered any more, one request asks, and others do not wait for the same answer.
func TestOneAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := weir.MustCompile("fixed_window 40/1h")
		s, n := opened(t, 100*time.Millisecond)
		exhaust(t, s, n, limit)
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			if synctest.Wait(); s.entry(t, "k").deniedUntil > s.now().elapsed {
				take(t, s, "k", limit, 1)
			}
		}
		for synctest.Wait(); s.entry(t, "k").deniedUntil > s.now().elapsed; synctest.Wait() { // since the last one, which may have asked
			time.Sleep(100 * time.Millisecond)
		}
		calls := n.calls.Load()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { take(t, s, "k", limit, 1) })
			synctest.Wait()
		}
		start := time.Now()
		wg.Wait()
		if got := n.calls.Load() - calls; got != 1 || time.Since(start) != 100*time.Millisecond {
			t.Errorf("%d calls in %v", got, time.Since(start))
		}
	})
}

// entry is what a store knows of a key.
func (s *Store) entry(t *testing.T, key string) *entry {
	t.Helper()
	for i := range s.shards {
		for _, e := range s.shards[i].keys {
			if e.key == key {
				return e
			}
		}
	}
	t.Fatalf("nothing is known of %q", key)
	return nil
}

// A denial that was on its way when the key was reset is not remembered.
func TestDenialBeforeReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := weir.MustCompile("fixed_window 40/1h")
		s, n := opened(t, time.Millisecond)
		exhaust(t, s, n, limit)
		op := weir.Op{Key: "k", Limit: limit, Cost: 1}
		testkit.OK(t, s.Reset(t.Context(), op)) // forgets the denial; the units are used up again
		testkit.Must(n.reference.Take(t.Context(), nil, weir.Op{Key: "k", Limit: limit, Cost: 40, Always: true}))(t)
		n.set(func() { n.trip = 100 * time.Millisecond })
		var wg sync.WaitGroup
		wg.Go(func() {
			if take(t, s, "k", limit, 1).Allowed {
				t.Error("allowed too much")
			}
		})
		time.Sleep(70 * time.Millisecond)
		testkit.OK(t, s.Reset(t.Context(), op))
		wg.Wait()
		if d := take(t, s, "k", limit, 1); !d.Allowed {
			t.Errorf("after a reset: %+v", d)
		}
	})
}

// Messages that go on with the leases of many keys leave together.
func TestRenewsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		const keys = 60
		begin := time.Now()
		for i := range keys {
			for range 4 {
				take(t, s, fmt.Sprint("k", i), hourly, 1)
			}
			time.Sleep(time.Until(begin.Add(time.Duration(i) * 5 * time.Millisecond)))
		}
		var mu sync.Mutex
		messages, instants := 0, map[time.Duration]bool{}
		n.set(func() {
			n.onLease = func([]weir.LeaseOp) {
				mu.Lock()
				defer mu.Unlock()
				messages++
				instants[time.Since(begin)] = true
			}
		})
		time.Sleep(time.Until(begin.Add(time.Second))) // then the first key is idle
		mu.Lock()
		defer mu.Unlock()
		if messages < keys/2 || len(instants) > messages/4 {
			t.Errorf("%d messages at %d instants", messages, len(instants))
		}
	})
}
