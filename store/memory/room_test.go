package memory

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

const second = weir.Micros(1_000_000)

var today = weir.MicrosOf(time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC))

func take(t *testing.T, s *Store, key string, limit *weir.Compiled) weir.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), nil, weir.Op{Key: key, Limit: limit, Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	return d[0]
}

// open returns a store with a clock that begins today.
func open(maxKeys int) (*Store, *fake) {
	clock := new(fake)
	clock.Set(today)
	return New(Options{MaxKeys: maxKeys, Clock: clock.Now}), clock
}

// exhaust takes until a key is denied.
func exhaust(t *testing.T, s *Store, key string, limit *weir.Compiled) {
	t.Helper()
	for range limit.Capacity() {
		take(t, s, key, limit)
	}
	if take(t, s, key, limit).Allowed {
		t.Fatalf("%s is not limited after %d units", key, limit.Capacity())
	}
}

// A victim is limited; a flood of new keys many times the size of the store
// comes, of which some recover now and then. The victim must stay limited.
func TestFloodDoesNotFreeTheVictim(t *testing.T) {
	for _, limit := range []string{
		"fixed_window 5/1h", "sliding_window 5/1h", "sliding_buckets 5/1h",
		"sliding_log 5/1h", "token_bucket 5/1h", "leaky_bucket 5/1h",
	} {
		t.Run(limit, func(t *testing.T) {
			const maxKeys = 2000
			s, clock := open(maxKeys)
			victim, quick := weir.MustCompile(limit), weir.MustCompile("fixed_window 5/1s")
			exhaust(t, s, "victim", victim)
			for i := range 20 * maxKeys {
				take(t, s, fmt.Sprintf("flood %d", i), quick)
				if i%maxKeys == maxKeys/2 {
					clock.Pass(2 * second) // all of the flood so far has recovered
				}
				if keys := s.Stats().Keys; keys > maxKeys {
					t.Fatalf("%d keys after %d requests, at most %d were promised", keys, i, maxKeys)
				}
			}
			if take(t, s, "victim", victim).Allowed {
				t.Error("the flood freed the victim")
			}
			if st := s.Stats(); st.Expired < 10*maxKeys {
				t.Errorf("recovered keys were not the ones to go: %+v", st)
			}
		})
	}
}

// As long as one recovered key is left anywhere, it is the one that goes: of
// 63 limited keys and one recovered, none of the limited is lost.
func TestLastRecoveredKeyGoesFirst(t *testing.T) {
	s, clock := open(weir.MaxOps)
	slow, quick := weir.MustCompile("fixed_window 1/1h"), weir.MustCompile("fixed_window 9/1s")
	for i := range weir.MaxOps - 1 {
		exhaust(t, s, fmt.Sprint("slow ", i), slow)
	}
	for i := range 500 {
		take(t, s, fmt.Sprint("quick ", i), quick)
		clock.Pass(second)
	}
	for i := range weir.MaxOps - 1 {
		if take(t, s, fmt.Sprint("slow ", i), slow).Allowed {
			t.Errorf("slow %d was freed although a recovered key could have gone", i)
		}
	}
	if st := s.Stats(); st.Evicted != 0 {
		t.Errorf("%+v: a key that still counted was evicted", st)
	}
}

// Without any recovered key something has to go: then those who are not being
// denied, and the bound is kept.
func TestFullOfLivingKeys(t *testing.T) {
	const maxKeys = 5000
	s, _ := open(maxKeys)
	limit := weir.MustCompile("fixed_window 2/1h")
	for i := range 50 {
		exhaust(t, s, fmt.Sprint("victim ", i), limit)
	}
	for i := range 10 * maxKeys {
		take(t, s, fmt.Sprint("flood ", i), limit)
	}
	st := s.Stats()
	if st.Keys > maxKeys || st.Keys+st.Evicted != 50+10*maxKeys || st.Expired != 0 {
		t.Errorf("%+v", st)
	}
	for i := range 50 {
		if take(t, s, fmt.Sprint("victim ", i), limit).Allowed {
			t.Errorf("victim %d was freed", i)
		}
	}
}

// The bound holds when many goroutines bring several new keys at once.
func TestMaxKeysUnderContention(t *testing.T) {
	const maxKeys = 100
	s, clock := open(maxKeys)
	limit := weir.MustCompile("sliding_log 3/1m")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				ops := make([]weir.Op, 1+i%7)
				for j := range ops {
					ops[j] = weir.Op{Key: fmt.Sprint(g, i, j), Limit: limit, Cost: 1}
				}
				d, err := s.Take(t.Context(), nil, ops...)
				if err != nil || !d[0].Allowed {
					t.Errorf("a new key was answered %+v, %v", d, err)
				}
				if i%50 == 0 {
					clock.Pass(second)
				}
				if keys := s.Stats().Keys; keys > maxKeys {
					t.Errorf("%d keys", keys)
				}
			}
		})
	}
	wg.Wait()
	checkKeys(t, s, maxKeys)
}

// Large requests whose own keys are evicted to make room for them must not wait
// for each other's room.
func TestLargeRequestsInASmallStore(t *testing.T) {
	s, _ := open(weir.MaxOps)
	limit := weir.MustCompile("fixed_window 1000000/1h")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for range 200 {
				ops := make([]weir.Op, 40)
				for i := range ops {
					ops[i] = weir.Op{Key: fmt.Sprint(random.IntN(100)), Limit: limit, Cost: 1}
				}
				if _, err := s.Take(t.Context(), nil, ops...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	checkKeys(t, s, weir.MaxOps)
}

// A key that only a denial charges counts as a key.
func TestDeniedKeysAreCounted(t *testing.T) {
	s, _ := open(0)
	plain, counting := weir.MustCompile("fixed_window 5/1m"), weir.MustCompile("fixed_window 5/1m count_denied")
	for i := range 100 {
		key := fmt.Sprint(i)
		_, err := s.Take(t.Context(), nil, weir.Op{Key: key, Limit: plain, Cost: 1}, weir.Op{Key: key, Limit: counting, Cost: 9})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Stats().Keys; got != 100 {
		t.Errorf("%d keys, want 100", got)
	}
	checkKeys(t, s, DefaultMaxKeys)
}

// A clock that was far ahead for a moment does not stop keys from going.
func TestKeysGoAfterAClockThatWasAhead(t *testing.T) {
	s, clock := open(0)
	limit := weir.MustCompile("fixed_window 5/1s")
	clock.Pass(365 * 86_400 * second)
	for i := range 1000 {
		take(t, s, fmt.Sprint("ahead ", i), limit)
	}
	clock.Set(today)
	for i := range 30 {
		for j := range 1000 {
			take(t, s, fmt.Sprint(i, j), limit)
		}
		clock.Pass(second)
	}
	if got := s.Stats().Keys; got > 16_000 {
		t.Errorf("%d keys are left of 30000 that lasted a second", got)
	}
}

// checkKeys compares the count with what is there.
func checkKeys(t *testing.T, s *Store, most int64) {
	t.Helper()
	var n int64
	c := s.core.Load()
	checkHolds(t, c)
	for i := range c.shards {
		n += int64(c.shards[i].table.keys)
		for slot, e := range c.shards[i].table.entries {
			if earliest := c.shards[i].earliest.Load(); !e.free() && !c.shards[i].isHeldLocked(slot) && int64(e.state.Fresh) < earliest {
				t.Fatalf("a key recovers at %d, its shard says not before %d", e.state.Fresh, earliest)
			}
		}
	}
	if got := s.Stats().Keys; got != n || n > most {
		t.Errorf("the count says %d keys, there are %d, at most %d were promised", got, n, most)
	}
}

// Idle keys go by themselves, and their memory with them.
func TestIdleKeysGo(t *testing.T) {
	s, clock := open(0)
	limits := []*weir.Compiled{weir.MustCompile("5/1s"), weir.MustCompile("sliding_log 5/1s"), weir.MustCompile("sliding_buckets 5/1s")}
	for i := range 30_000 {
		take(t, s, fmt.Sprint(i), limits[i%3])
	}
	if got := s.Stats().Keys; got != 30_000 {
		t.Fatalf("%d keys, want 30000", got)
	}
	clock.Pass(60 * second)
	for i := range 6000 { // touches every shard
		take(t, s, fmt.Sprint("later ", i), limits[0])
	}
	if got := s.Stats(); got.Keys != 6000 || got.Expired != 30_000 || got.Evicted != 0 {
		t.Errorf("%+v, want 6000 keys left", got)
	}
	c := s.core.Load()
	slots, words := 0, 0
	for i := range c.shards {
		slots += len(c.shards[i].table.entries)
		if c.shards[i].arena == nil {
			continue
		}
		for _, class := range c.shards[i].arena.classes {
			for _, chunk := range class.chunks {
				words += len(chunk)
			}
		}
	}
	if slots > 30_000 || words != 0 {
		t.Errorf("%d slots and %d words of tails are still held for 6000 keys", slots, words)
	}
	checkKeys(t, s, DefaultMaxKeys)
}

// Reset frees the key at once.
func TestResetFreesTheKey(t *testing.T) {
	s, _ := open(0)
	limit := weir.MustCompile("sliding_log 5/1m")
	take(t, s, "k", limit)
	for range 2 {
		if err := s.Reset(t.Context(), weir.Op{Key: "k", Limit: limit}); err != nil {
			t.Fatal(err)
		}
		if got := s.Stats(); got != (Stats{}) {
			t.Errorf("%+v, want nothing", got)
		}
	}
}

// Denials and peeks of strangers make no keys.
func TestOnlyChargesMakeKeys(t *testing.T) {
	s, _ := open(0)
	limit := weir.MustCompile("5/1m")
	for i := range 100 {
		op := weir.Op{Key: fmt.Sprint(i), Limit: limit, Cost: 6}
		if _, err := s.Take(t.Context(), nil, op); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Peek(t.Context(), nil, op); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Stats().Keys; got != 0 {
		t.Errorf("%d keys, want none", got)
	}
}

// Takes, peeks, resets, snapshots and a moving clock, all at once; run with
// -race.
func TestEverythingAtOnce(t *testing.T) {
	s, clock := open(300)
	limits := []*weir.Compiled{
		weir.MustCompile("5/1s"), weir.MustCompile("sliding_log 5/1s"), weir.MustCompile("sliding_window 5/1s count_denied"),
		weir.MustCompile("sliding_buckets 5/1s"), weir.MustCompile("fixed_window 5/1s"), weir.MustCompile("leaky_bucket 5/1s shape"),
	}
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for range 2000 {
				ops := make([]weir.Op, 1+random.IntN(4))
				for i := range ops {
					ops[i] = weir.Op{Key: fmt.Sprint(random.IntN(200)), Limit: limits[random.IntN(len(limits))], Cost: 1}
				}
				var err error
				switch random.IntN(20) {
				case 0:
					_, err = s.Peek(t.Context(), nil, ops...)
				case 1:
					err = s.Reset(t.Context(), ops...)
				case 2:
					clock.Pass(weir.Micros(random.Int64N(200_000)) - 50_000)
				default:
					_, err = s.Take(t.Context(), nil, ops...)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			if err := s.Snapshot(discard{}); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	checkKeys(t, s, 300)
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// The hot path of the fixed-size algorithms allocates nothing, for one op and
// for several, allowed and denied.
func TestTakeAllocatesNothing(t *testing.T) {
	s, _ := open(0)
	dst := make([]weir.Decision, 0, 4)
	ctx := t.Context()
	for _, text := range []string{"fixed_window 500/1h", "sliding_window 500/1h", "token_bucket 500/1h", "leaky_bucket 500/1h"} {
		limit := weir.MustCompile(text)
		ops := []weir.Op{{Key: "a", Limit: limit, Cost: 1}, {Key: "b", Limit: limit, Cost: 1}, {Key: "c", Limit: limit, Cost: 1}}
		for _, n := range []int{1, 3} {
			got := testing.AllocsPerRun(1000, func() {
				if _, err := s.Take(ctx, dst, ops[:n]...); err != nil {
					t.Fatal(err)
				}
			})
			if got != 0 {
				t.Errorf("%s: %v allocations in a Take of %d ops, want 0", text, got, n)
			}
		}
	}
}

// Not one that is denied, and the soonest to recover.
func TestLeastMissed(t *testing.T) {
	keys := []entry{{id{1, 1}, weir.State{Fresh: 5}}, {id{2, 1 | deniedBit}, weir.State{Fresh: 1}}, {}, {id{3, 1}, weir.State{Fresh: 9}}}
	for turn := range keys {
		var sh shard
		sh.table.entries = append(keys[turn:len(keys):len(keys)], keys[:turn]...)
		for from := range int64(9) {
			if slot := sh.leastLocked(from); sh.table.entries[slot].id.hi != 1 {
				t.Errorf("turned by %d, from %d: %+v has to go", turn, from, sh.table.entries[slot])
			}
		}
	}
}

// A new key that is denied and counted is marked at once.
func TestNewKeyIsMarkedDenied(t *testing.T) {
	s, _ := open(0)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("fixed_window 5/1h count_denied"), Cost: 6}
	if _, err := s.Take(t.Context(), nil, op); err != nil {
		t.Fatal(err)
	}
	k, sh := s.core.Load().identify(&op)
	if slot, found := sh.table.find(k); !found || !sh.table.entries[slot].denied() {
		t.Error("the key is not marked")
	}
}

func TestShards(t *testing.T) {
	for maxKeys, want := range map[int]int{1: 1, 1023: 1, 1024: 2, 64 * 512: 64, 64 * 4096: 64, 65 * 4096: 128, 128 * 4096: 128, 1 << 20: 256, 1 << 30: 4096} {
		c := newCore([32]byte{}, maxKeys)
		if got := len(c.shards); got != want || math.MaxUint64>>c.shift != uint64(want-1) {
			t.Errorf("%d keys have %d shards and shift %d, want %d", maxKeys, got, c.shift, want)
		}
	}
}

// Who has recovered is kept for the grace, for a clock that is set back.
func TestGrace(t *testing.T) {
	for passed, want := range map[weir.Micros]int64{second + grace - 1: 0, second + grace: 1} {
		s, clock := open(0)
		take(t, s, "k", weir.MustCompile("fixed_window 5/1s"))
		clock.Pass(passed)
		take(t, s, "k", weir.MustCompile("fixed_window 5/1s"))
		if got := s.Stats().Expired; got != want || grace != 10*second {
			t.Errorf("%d us later %d keys were forgotten, want %d", passed, got, want)
		}
	}
}

// A log that grows gives its shorter tails back.
func TestGrowingLogLeaksNothing(t *testing.T) {
	s, clock := open(0)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("sliding_log 64/1d"), Cost: 1}
	_, sh := s.core.Load().identify(&op)
	for range 64 {
		take(t, s, "k", op.Limit)
		clock.Pass(1)
	}
	for size, c := range sh.arena.classes {
		if held := c.given - len(c.unused); held != 0 && size != 6 || size == 6 && held != 1 {
			t.Errorf("%d blocks of %d words are held", held, 1<<size)
		}
	}
}

// To make room for one key of a request, the store evicts another one of the same request.
// That one begins again, and is not remembered from before.
func TestKeyEvictedForItsOwnRequest(t *testing.T) {
	s, _ := open(weir.MaxOps)
	limit := weir.MustCompile("token_bucket 100/1h")
	for i := range weir.MaxOps {
		cost := int64(20)
		if i == 0 {
			cost = 10 // it resets first, so it is the first to go
		}
		if _, err := s.Take(t.Context(), nil, weir.Op{Key: fmt.Sprint(i), Limit: limit, Cost: cost}); err != nil {
			t.Fatal(err)
		}
	}
	d, err := s.Take(t.Context(), nil, weir.Op{Key: "0", Limit: limit, Cost: 1}, weir.Op{Key: "new", Limit: limit, Cost: 1})
	if err != nil || d[0].Remaining != 99 || d[1].Remaining != 99 {
		t.Errorf("%+v, %v", d, err)
	}
	if got := s.Stats(); got != (Stats{Keys: weir.MaxOps, Evicted: 2}) {
		t.Errorf("%+v", got)
	}
}
