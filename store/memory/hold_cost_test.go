package memory

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir"
)

// many opens a store with holds of one key that expire one after the other within a second, a
// minute from now.
func many(b testing.TB, text string, release bool, holds int) (*Store, *fake, weir.Op) {
	return manyFor(b, text, release, holds, func(i int) time.Duration {
		return time.Minute + time.Second*time.Duration(i)/time.Duration(holds) + time.Duration(holds-1-i)*time.Microsecond
	})
}

// manyFor is many with other times to live.
func manyFor(b testing.TB, text string, release bool, holds int, ttl func(i int) time.Duration) (*Store, *fake, weir.Op) {
	l := weir.MustParseLimit(text)
	l.Release = release
	limit, err := l.Compile()
	if err != nil {
		b.Fatal(err)
	}
	s, clock := open(1 << 22)
	s.core.Load().maxOfKey = 1 << 17
	op := weir.Op{Key: "k", Limit: limit, Cost: 1}
	for i := range holds {
		clock.Pass(1) // a log has an entry for each
		reserveNth(b, s, i, ttl(i), op)
	}
	return s, clock, op
}

func reserveNth(b testing.TB, s *Store, n int, ttl time.Duration, op weir.Op) weir.HoldID {
	b.Helper()
	r := weir.Reservation{TTL: ttl}
	binary.BigEndian.PutUint64(r.ID[:], uint64(n+1)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint16(r.ID[14:], uint16(n>>6))
	if d, err := s.Reserve(b.Context(), nil, r, op); err != nil || !d[0].Allowed {
		b.Fatalf("%+v, %v", d, err)
	}
	return r.ID
}

// BenchmarkManyHolds says what the open holds of a key cost a reservation and a settlement on it: go test
// -bench ManyHolds -benchtime 1000x ./store/memory. Keys with few and many take turns of 100 holds; times are
// processor time of the fastest tenth, because the machine may be busy.
func BenchmarkManyHolds(b *testing.B) {
	counts := []int{10, 1_000, 100_000}
	for _, text := range []string{"token_bucket 1000000000/1h", "sliding_window 1000000000/1h"} {
		b.Run(text, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var stores [3]*Store
			var reserving, settling [3][]int64
			var op weir.Op
			var size uint64
			for i, n := range counts {
				before := heapBytes()
				stores[i], _, op = many(b, text, true, n)
				size = heapBytes() - before
			}
			var ids [100]weir.HoldID
			for turn := range b.N {
				for i, s := range stores {
					began := threadTime()
					for j := range ids {
						ids[j] = reserveNth(b, s, counts[i]+turn*len(ids)+j, time.Hour, op)
					}
					half := threadTime()
					for _, id := range ids {
						if _, err := s.Settle(b.Context(), weir.Settlement{ID: id, Used: func(string, int64) int64 { return 0 }}); err != nil {
							b.Fatal(err)
						}
					}
					reserving[i], settling[i] = append(reserving[i], half-began), append(settling[i], threadTime()-half)
				}
			}
			for i, n := range counts {
				slices.Sort(reserving[i])
				slices.Sort(settling[i])
				b.ReportMetric(float64(reserving[i][b.N/10])/float64(len(ids)), fmt.Sprintf("ns/reserve-%d", n))
				b.ReportMetric(float64(settling[i][b.N/10])/float64(len(ids)), fmt.Sprintf("ns/settle-%d", n))
			}
			b.ReportMetric(float64(size)/100_000, "B/hold")
		})
	}
}

func threadTime() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return t.Nano()
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkExpireMany lets 100,000 holds of a key expire within a second, and says how long the longest
// call on it took if calls come that often, or once, of holds that expire in no order: processor time of its
// thread, because the machine may be busy.
func BenchmarkExpireMany(b *testing.B) {
	const holds = 100_000
	for _, text := range []string{
		"token_bucket 1000000000/1h", "fixed_window 1000000000/1h", "sliding_window 1000000000/1h", "sliding_buckets 1000000000/1h", "sliding_log 1000000/1h",
	} {
		for _, every := range []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second, 0} {
			name := fmt.Sprint(text, "/", every)
			if every == 0 {
				name = text + "/shuffled"
			}
			b.Run(name, func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				var longest int64
				for range b.N {
					b.StopTimer()
					step, expire := every, many
					if every == 0 {
						step, expire = time.Second, shuffled
					}
					s, clock, op := expire(b, text, true, holds)
					clock.Pass(weir.Micros(time.Minute.Microseconds()))
					b.StartTimer()
					for at := time.Duration(0); at < time.Second; at += step {
						clock.Pass(weir.Micros(step.Microseconds()))
						began := threadTime()
						if _, err := s.Peek(b.Context(), nil, op); err != nil {
							b.Fatal(err)
						}
						longest = max(longest, threadTime()-began)
					}
				}
				b.ReportMetric(float64(longest)/1000, "µs/longest")
			})
		}
	}
}

// shuffled is many, but the holds do not expire in the order of their reservation.
func shuffled(b testing.TB, text string, release bool, holds int) (*Store, *fake, weir.Op) {
	order := rand.New(rand.NewPCG(1, 2)).Perm(holds)
	return manyFor(b, text, release, holds, func(i int) time.Duration {
		return time.Minute + time.Second*time.Duration(order[i])/time.Duration(holds)
	})
}
