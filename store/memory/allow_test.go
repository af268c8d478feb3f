package memory

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// Of two stores that are alike, one is asked by AllowOne and the other by Take. They answer
// alike and remember the same, whatever happens in between: sweeps, holds that expire,
// refunds, and a clock that is set back.
func TestAllowOneEqualsTake(t *testing.T) {
	var limits []*weir.Compiled
	for _, text := range []string{
		"token_bucket 5/1s", "token_bucket 500/1s", "token_bucket 7/3s burst 3", "token_bucket 3000000/1s", "leaky_bucket 5/1m", "leaky_bucket 5/1s shape",
		"fixed_window 5/1s", "fixed_window 5/1s count_denied", "fixed_window 50/month", "sliding_window 5/1s", "sliding_log 5/1s", "sliding_buckets 5/1s",
	} {
		l := weir.MustParseLimit(text)
		l.Release = true
		c, err := l.Compile()
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, c)
	}
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			one, clock := open(1000)
			other := New(Options{MaxKeys: 1000, Clock: clock.Now})
			both := []*Store{one, other}
			for _, s := range both {
				s.core.Store(newCore([seedLen]byte{}, 1000)) // the same seed
			}
			for i := range 2000 {
				// Few keys and limits at first, so that each matters to its shard.
				op := weir.Op{Key: fmt.Sprint(random.IntN(1 + int(seed))), Limit: limits[random.IntN(min(2+int(seed), len(limits)))], Cost: 1}
				switch random.IntN(10) {
				case 0:
					clock.Pass(weir.Micros(random.IntN(3_000_000)))
				case 1:
					clock.Pass(-weir.Micros(random.IntN(1_500_000)))
				case 2:
					var id weir.HoldID
					binary.BigEndian.PutUint64(id[:], uint64(i))
					for _, s := range both {
						if _, err := (*quick)(s).ReserveOne(t.Context(), id, time.Second, op.Key, op.Limit, 2); err != nil {
							t.Fatal(err)
						}
					}
				case 3:
					op.Receipt = weir.Latest
					for _, s := range both {
						if err := s.Refund(t.Context(), op); err != nil {
							t.Fatal(err)
						}
					}
				default:
					clock.Pass(weir.Micros(random.IntN(50_000)))
				}
				got, err := (*quick)(one).AllowOne(t.Context(), op.Key, op.Limit)
				if want := take(t, other, op.Key, op.Limit).Allowed; err != nil || got != want {
					t.Fatalf("step %d, %v: %t, %v; want %t", i, op.Limit.Limit(), got, err, want)
				}
				alike(t, one, other)
			}
		})
	}
}

// alike requires that two stores with the same seed remember the same.
func alike(t *testing.T, a, b *Store) {
	t.Helper()
	if a.Stats() != b.Stats() {
		t.Fatalf("%+v, want %+v", a.Stats(), b.Stats())
	}
	c, d := a.core.Load(), b.core.Load()
	for i := range c.shards {
		x, y := &c.shards[i], &d.shards[i]
		if !slices.Equal(x.table.entries, y.table.entries) || x.earliest.Load() != y.earliest.Load() || x.sweep != y.sweep || x.releases != y.releases {
			t.Fatalf("shard %d remembers %+v, want %+v", i, x.table.entries, y.table.entries)
		}
	}
}

// The quick way denies what is invalid as Take does.
func TestAllowOneOfNothing(t *testing.T) {
	s, _ := open(1000)
	limit := weir.MustCompile("5/1s")
	for key, limit := range map[string]*weir.Compiled{"": limit, strings.Repeat("k", weir.MaxKeyLen+1): limit, strings.Repeat("k", 2*weir.MaxKeyLen): limit, "k": nil} {
		if allowed, err := (*quick)(s).AllowOne(t.Context(), key, limit); allowed || err == nil {
			t.Errorf("a key of %d bytes under %v is allowed: %v", len(key), limit, err)
		}
	}
	if allowed, err := (*quick)(s).AllowOne(t.Context(), strings.Repeat("k", weir.MaxKeyLen), limit); !allowed || err != nil {
		t.Errorf("the longest key: %t, %v", allowed, err)
	}
}

// Whatever the algorithm, a known key is asked for once: to read the clock, hash the key and
// take the lock again would take as long as all the rest.
func TestAllowOneAsksOnce(t *testing.T) {
	limits := []string{"leaky_bucket 5/1m shape", "fixed_window 5/1m count_denied", "fixed_window 5/month"}
	for _, a := range weir.Algorithms() {
		limits = append(limits, a.String()+" 5/1m")
	}
	for _, text := range limits {
		reads := 0
		s := New(Options{Clock: func() weir.Micros { reads++; return today }})
		limit := weir.MustCompile(text)
		take(t, s, "alice", limit)
		reads = 0
		if allowed, err := (*quick)(s).AllowOne(t.Context(), "alice", limit); !allowed || err != nil || reads != 1 {
			t.Errorf("%s: %t, %v, with %d looks at the clock", text, allowed, err, reads)
		}
	}
}
