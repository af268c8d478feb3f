package redis

import (
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/internal/traffic/scenario"
	"github.com/weirhq/weir/store/storetest"
)

// clusterClient starts a cluster and returns a client of it.
func clusterClient(t *testing.T) rueidis.Client {
	t.Helper()
	config, err := ParseURL(clusterURL(testredis.StartSteadyCluster(t)) + "?timeout=30s")
	if err != nil {
		t.Fatal(err)
	}
	client, err := rueidis.NewClient(config.Client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// On a cluster, requests for several slots are answered as they are elsewhere, as
// long as they come one by one. With a hash tag for a prefix there is one slot, and
// the whole suite must pass.
func TestCluster(t *testing.T) {
	client, opened := clusterClient(t), 0
	subject := func(t *testing.T, prefix string) storetest.Subject {
		opened++
		var clock fake
		store := storeOn(t, client, Options{Prefix: fmt.Sprintf(prefix, opened), Clock: clock.Now})
		return storetest.Subject{Store: store, Set: clock.Set}
	}
	t.Run("OneSlot", func(t *testing.T) {
		open := func(t *testing.T) storetest.Subject { return subject(t, "{weir%d}:") }
		storetest.Run(t, open)
		storetest.RunHolds(t, open)
	})
	many := func(t *testing.T, prefix string) storetest.Subject {
		s := subject(t, prefix)
		withManySoon(t, s.Store.(*Store))
		return s
	}
	t.Run("Holds", func(t *testing.T) { testHoldsOnSlots(t, subject(t, "weir%d:")) })
	t.Run("ManyHolds", func(t *testing.T) {
		storetest.RunHolds(t, func(t *testing.T) storetest.Subject { return many(t, "{weir%d}:") })
		testHoldsOnSlots(t, many(t, "weir%d:"))
		storetest.RunManyHolds(t, func(t *testing.T) storetest.Subject {
			s := subject(t, "{weir%d}:")
			withMany(s.Store.(*Store))
			return s
		}, 1)
	})
	t.Run("OddKeys", func(t *testing.T) { testHoldsOnOddKeys(t, subject(t, "weir%d:")) })
	t.Run("Scenarios", func(t *testing.T) {
		cases, err := scenario.Cases()
		if err != nil {
			t.Fatal(err)
		}
		for _, script := range cases {
			t.Run(path.Base(script.Name), func(t *testing.T) {
				if err := script.Run(t.Context(), scenario.Subject(subject(t, "weir%d:"))); err != nil {
					t.Error(err)
				}
			})
		}
	})
	t.Run("Histories", func(t *testing.T) { clusterHistory(t, subject(t, "weir%d:"), 1000) })
	t.Run("GiveBack", func(t *testing.T) { testGiveBack(t, subject) })
	t.Run("NeverTooMuch", func(t *testing.T) { testNeverTooMuch(t, subject) })
}

// clusterHistory compares requests of up to four limits, most of them on several
// slots, with the arithmetic. The clock does not go back: what a refund leaves knows
// less of the past.
func clusterHistory(t *testing.T, subject storetest.Subject, steps int) {
	var pool []*weir.Compiled
	for _, text := range []string{
		"fixed_window 5/1m", "fixed_window 7/1m count_denied", "sliding_window 6/1m", "sliding_buckets 5/1m buckets 6",
		"sliding_log 5/1m", "token_bucket 5/1m", "token_bucket 7/1m burst 9", "leaky_bucket 7/1m burst 5 shape",
	} {
		limit := weir.MustParseLimit(text)
		limit.Name = text // or two of them would share what a client has used
		compiled, err := limit.Compile()
		if err != nil {
			t.Fatal(err)
		}
		pool = append(pool, compiled)
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	model := scenario.NewModel()
	now := weir.MicrosOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	denied := 0
	for step := range steps {
		now += weir.Micros(random.Int64N(4) * random.Int64N(6_000_000))
		model.Now = now
		subject.Set(now)
		ops := make([]weir.Op, 1+random.IntN(4))
		for i := range ops {
			ops[i] = weir.Op{Key: fmt.Sprint("client ", random.IntN(3)), Limit: pool[random.IntN(len(pool))], Cost: 1 + random.Int64N(3), Look: random.IntN(5) == 0}
		}
		got, err := subject.Store.Take(t.Context(), nil, ops...)
		if err != nil {
			t.Fatal(err)
		}
		want, err := model.Take(t.Context(), nil, ops...)
		if err != nil {
			t.Fatal(err)
		}
		if !weir.Allowed(want) {
			denied++
		}
		for i := range ops {
			if got[i] != want[i] {
				t.Fatalf("seed %d, step %d at %d: %d of %q under %v, op %d of %d:\n got %+v\nwant %+v",
					seed, step, now, ops[i].Cost, ops[i].Key, ops[i].Limit.Limit(), i+1, len(ops), got[i], want[i])
			}
		}
	}
	if denied < steps/10 || denied > steps*9/10 {
		t.Errorf("%d of %d were denied, which shows little", denied, steps)
	}
}

// Many at once take limits on several slots, of which one is used up. What was
// taken of the others is given back to the last unit.
func testGiveBack(t *testing.T, open func(*testing.T, string) storetest.Subject) {
	for _, algorithm := range append(weir.Algorithms(), weir.InFlight) {
		t.Run(algorithm.String(), func(t *testing.T) {
			subject := open(t, "weir%d:")
			subject.Set(1_767_225_600_000_000)
			ops := []weir.Op{
				{Key: "a", Limit: weir.MustCompile(algorithm.String() + " 30/1h"), Cost: 1},
				{Key: "b", Limit: weir.MustCompile(algorithm.String() + " 1000/1h"), Cost: 1},
				{Key: "c", Limit: weir.MustCompile(algorithm.String() + " 2000/1h"), Cost: 2},
			}
			allowed := atomic.Int64{}
			var wg sync.WaitGroup
			for g := range 20 {
				wg.Go(func() {
					mine := []weir.Op{ops[g%3], ops[(g+1)%3], ops[(g+2)%3]}
					for range 10 {
						d, err := subject.Store.Take(t.Context(), nil, mine...)
						if err != nil {
							t.Error(err)
						}
						if weir.Allowed(d) {
							allowed.Add(1)
						}
					}
				})
			}
			wg.Wait()
			d, err := subject.Store.Peek(t.Context(), nil, ops...)
			if err != nil {
				t.Fatal(err)
			}
			n := allowed.Load()
			if n != 30 || d[0].Remaining != 0 || d[1].Remaining != 970 || d[2].Remaining != 1940 {
				t.Errorf("%d were allowed, want 30; %d, %d and %d remain, want 0, 970 and 1940", n, d[0].Remaining, d[1].Remaining, d[2].Remaining)
			}
		})
	}
}

// When each of the limits may deny, some who come at the same time may both be
// denied where one of them would have fitted, but never are too many allowed, and
// afterwards nothing is missing.
func testNeverTooMuch(t *testing.T, open func(*testing.T, string) storetest.Subject) {
	for _, algorithm := range append(weir.Algorithms(), weir.InFlight) {
		t.Run(algorithm.String(), func(t *testing.T) {
			subject := open(t, "weir%d:")
			subject.Set(1_767_225_600_000_000)
			limit := weir.MustCompile(algorithm.String() + " 40/1h")
			var wg sync.WaitGroup
			var used [3]atomic.Int64 // of each key
			early := atomic.Int64{}
			for g := range 30 {
				wg.Go(func() {
					for i := range 10 {
						x, y := (g+i)%3, (g+i+1)%3
						d, err := subject.Store.Take(t.Context(), nil,
							weir.Op{Key: fmt.Sprint("k", x), Limit: limit, Cost: 1}, weir.Op{Key: fmt.Sprint("k", y), Limit: limit, Cost: 1})
						switch {
						case err != nil:
							t.Error(err)
						case weir.Allowed(d):
							used[x].Add(1)
							used[y].Add(1)
						case used[x].Load() < 40 && used[y].Load() < 40:
							early.Add(1)
						}
					}
				})
			}
			wg.Wait()
			for i := range used {
				n := used[i].Load()
				d, err := subject.Store.Peek(t.Context(), nil, weir.Op{Key: fmt.Sprint("k", i), Limit: limit})
				if err != nil {
					t.Fatal(err)
				}
				if n > 40 || d[0].Remaining != 40-n {
					t.Errorf("%d of 40 were allowed to key %d, %d remain", n, i, d[0].Remaining)
				}
			}
			t.Logf("used %d, %d and %d of 40; %d of 300 may have been denied too early", used[0].Load(), used[1].Load(), used[2].Load(), early.Load())
		})
	}
}
