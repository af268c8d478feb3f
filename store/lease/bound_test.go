package lease

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
)

// admission is units that were allowed at an instant.
type admission struct {
	at    weir.Micros
	units int64
}

// journal is what an observer sees who knows nothing of leases.
type journal struct {
	mu   sync.Mutex
	all  []admission
	most int64 // largest cost
}

// add notes a request that was allowed: when it was decided, here or in the store.
func (j *journal) add(d *weir.Decision, cost int64) { j.addAt(decidedAt(d), cost) }

func decidedAt(d *weir.Decision) weir.Micros {
	if d.Receipt < localReceipt {
		return d.ResetAt - weir.Micros(d.ResetAfter/time.Microsecond)
	}
	return wallNow()
}

func (j *journal) addAt(at weir.Micros, cost int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = append(j.all, admission{at, cost})
	j.most = max(j.most, cost)
}

// total and worst are all units, and the most of them in any (t−period, t].
func (j *journal) total() (n int64) {
	for _, a := range j.all {
		n += a.units
	}
	return n
}

func (j *journal) worst(period weir.Micros) (most int64) {
	slices.SortStableFunc(j.all, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
	var sum int64
	first := 0
	for _, a := range j.all {
		sum += a.units
		for j.all[first].at <= a.at-period {
			sum -= j.all[first].units
			first++
		}
		most = max(most, sum)
	}
	return most
}

var bounded = []string{
	"fixed_window 50/1s", "fixed_window 100/10s", "sliding_window 50/1s", "sliding_window 100/10s", "sliding_log 50/1s", "sliding_log 100/10s",
	"sliding_buckets 50/1s", "sliding_buckets 100/10s", "token_bucket 50/1s", "token_bucket 100/10s burst 40", "leaky_bucket 50/1s", "fixed_window 200/hour zone UTC",
}

// Several processes with leases, and one without, never allow more than the limit's bound, whatever happens to their messages.
func TestNeverOverTheBound(t *testing.T) {
	for _, text := range bounded {
		t.Run(text, func(t *testing.T) {
			local := int64(0)
			for round := range 6 {
				seed := rand.Uint64()
				synctest.Test(t, func(t *testing.T) { local += schedule(t, weir.MustCompile(text), seed, round) })
			}
			if local == 0 {
				t.Error("nothing was decided locally")
			}
		})
	}
}

// schedule runs processes with random traffic on one key. In later rounds their network is worse. It returns
// how many requests were decided without a call.
func schedule(t *testing.T, limit *weir.Compiled, seed uint64, round int) (local int64) {
	random := rand.New(rand.NewPCG(seed, 0))
	shared := newReference(wallNow)
	other := weir.MustCompile("sliding_log 100000/1h")
	var j journal
	var wg sync.WaitGroup
	end := time.Now().Add(min(10*limit.Limit().Period, 12*time.Second))
	var stores []*Store
	for i := range 4 {
		n := &holding{network: &network{reference: shared, trip: time.Duration(random.Int64N(int64(20 * time.Millisecond)))}, holds: map[weir.HoldID]*theirs{}}
		var store weir.Store = n
		if i > 0 {
			s := holder(t, n, Options{Term: []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second}[random.IntN(3)]})
			stores = append(stores, s)
			store = s
		}
		if round > 1 {
			wg.Go(func() { worsen(n.network, rand.New(rand.NewPCG(seed, uint64(i))), end) })
		}
		for c := range 3 {
			random := rand.New(rand.NewPCG(seed, uint64(10+3*i+c)))
			wg.Go(func() { client(t, store, limit, other, random, end, &j) })
		}
	}
	wg.Wait()
	for _, s := range stores {
		local += s.Stats().Local
	}
	period := weir.Micros(limit.Limit().Period.Microseconds())
	got, most := j.worst(period), limit.Bound(max(1, j.most))
	if got > most {
		t.Fatalf("seed %d: %d units of %v within one period, its bound is %d", seed, got, limit.Limit(), most)
	}
	if limit.Algorithm() == weir.FixedWindow {
		windows := map[weir.Micros]int64{}
		for _, a := range j.all {
			if windows[a.at/period] += a.units; windows[a.at/period] > limit.Capacity() {
				t.Fatalf("seed %d: %d units of %v in one window", seed, windows[a.at/period], limit.Limit())
			}
		}
	}
	if total := j.total(); total < limit.Capacity()/2 {
		t.Errorf("seed %d: only %d units", seed, total)
	}
	return local
}

// worsen makes a network unavailable for a while, slow, and lose or double what goes through it.
func worsen(n *network, random *rand.Rand, end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		n.set(func() {
			n.down = random.IntN(4) == 0
			n.lose = random.IntN(3)
			n.double = random.IntN(3) == 0
			n.trip = time.Duration(random.Int64N(1 << (10 + random.IntN(21))))
		})
	}
	n.set(func() { n.down, n.lose = false, 0 })
}

// client sends requests of any kind and speed.
func client(t *testing.T, store weir.Store, limit, other *weir.Compiled, random *rand.Rand, end time.Time, j *journal) {
	pace := time.Duration(1 + random.Int64N(int64(50*time.Millisecond)))
	for time.Now().Before(end) {
		ops := []weir.Op{{Key: "k", Limit: limit, Cost: 1}}
		if random.IntN(4) == 0 {
			ops[0].Cost = 1 + random.Int64N(7)
		}
		if random.IntN(5) == 0 {
			ops[0].Leave = 5
		}
		if random.IntN(3) == 0 {
			ops = append(ops, weir.Op{Key: fmt.Sprint(random.IntN(2)), Limit: other, Cost: 1})
		}
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		if s, ok := store.(*Store); ok && random.IntN(4) == 0 {
			serve(ctx, s, ops, random, j)
			cancel()
			continue
		}
		d, err := store.Take(ctx, nil, ops...)
		cancel()
		if err == nil && weir.Allowed(d) {
			if random.IntN(20) == 0 && store.Refund(context.Background(), weir.Op{Key: "k", Limit: limit, Cost: ops[0].Cost, Receipt: d[0].Receipt}) == nil {
				continue
			}
			j.add(&d[0], ops[0].Cost)
		}
		if random.IntN(30) == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		}
		time.Sleep(time.Duration(random.Int64N(int64(pace))))
	}
}

// serve reserves units for a request, which uses some of them, or all.
func serve(ctx context.Context, s *Store, ops []weir.Op, random *rand.Rand, j *journal) {
	id := weir.NewHoldID()
	d, err := s.Reserve(ctx, nil, weir.Reservation{ID: id, InProcess: true}, ops...)
	if err != nil || !weir.Allowed(d) {
		return
	}
	at, used := decidedAt(&d[0]), random.Int64N(ops[0].Cost+1)
	time.Sleep(time.Duration(random.Int64N(1 << (10 + random.IntN(22)))))
	j.addAt(at, used)
	// If it fails, what was reserved stays charged.
	_, _ = s.Settle(context.Background(), weir.Settlement{ID: id, Used: func(_ string, cost int64) int64 { return min(used, cost) }})
}
