package memory

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// plainKey is a key with its open holds by the plain definition: to give back walks all of them, and
// knows which were reserved later by what was in the bucket, as Redis does.
type plainKey struct {
	weir.Record
	limit   *weir.Compiled
	open    []*plainHold
	soonest weir.Micros // not later than the first of them expires
}

type plainHold struct {
	weir.Held
	id      weir.HoldID
	expires weir.Micros
}

func (k *plainKey) find(id weir.HoldID) *plainHold {
	if i := slices.IndexFunc(k.open, func(h *plainHold) bool { return h.id == id }); i >= 0 {
		return k.open[i]
	}
	return nil
}

func (k *plainKey) end(h *plainHold, units int64) {
	i := slices.Index(k.open, h)
	k.open = slices.Delete(k.open, i, i+1)
	var back int64
	k.State, back = k.limit.Release(k.State, k.Tail, h.Held, units)
	for _, later := range k.open {
		if back > 0 && (later.At > h.At || later.At == h.At && later.Level > h.Level) {
			later.Level = max(0, later.Level-back)
		}
	}
}

func (k *plainKey) charge(now weir.Micros, op weir.Op) weir.Decision {
	next, d := op.Decide(k.State, k.Tail, now)
	k.Keep(k.limit, next)
	return d
}

func (k *plainKey) expire(now weir.Micros) {
	if now < k.soonest {
		return
	}
	var due []*plainHold
	k.soonest = math.MaxInt64
	for _, h := range k.open {
		if h.expires <= now {
			due = append(due, h)
		} else {
			k.soonest = min(k.soonest, h.expires)
		}
	}
	slices.SortFunc(due, func(a, b *plainHold) int {
		return cmp.Or(cmp.Compare(a.expires, b.expires), bytes.Compare(a.id[:], b.id[:]))
	})
	for _, h := range due {
		units := h.Cost
		if !k.limit.ReturnsExpired() {
			units = 0
		}
		k.end(h, units)
	}
}

// A key with 10,000 open holds is at each step what the plain definition says, for whatever order they end
// in, across expiry, extensions, and a restart.
func TestManyHoldsByDefinition(t *testing.T) {
	for _, text := range []string{
		"token_bucket 6000000/10m", "leaky_bucket 6000000/10m release", "sliding_window 200000/10m release",
	} {
		t.Run(text, func(t *testing.T) { manyHoldsByDefinition(t, weir.MustCompile(text), 10_000, 2_000, 10*time.Second) })
	}
}

// The same is true if a third of them expire in one step, and so all at once.
func TestManyExpireByDefinition(t *testing.T) {
	for _, algorithm := range weir.Algorithms() {
		l := weir.Limit{Algorithm: algorithm, N: 1_000_000, Period: 10 * time.Minute, Release: true}
		t.Run(algorithm.String(), func(t *testing.T) {
			most := manyHoldsByDefinition(t, testkit.Must(l.Compile())(t), 3_000, 600, 4*time.Minute)
			if most <= 512 {
				t.Errorf("only %d have expired in a step", most)
			}
		})
	}
	t.Run("shape", func(t *testing.T) {
		manyHoldsByDefinition(t, weir.MustCompile("leaky_bucket 1000000/10m shape release"), 1_500, 600, 4*time.Minute)
	})
}

// manyHoldsByDefinition returns how many have expired in one step at most.
func manyHoldsByDefinition(t *testing.T, limit *weir.Compiled, holds, steps int, leap time.Duration) (most int) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	s, clock := open(1 << 20)
	k := plainKey{limit: limit}
	var ids []weir.HoldID // some of them have ended
	reserve := func() {
		r := weir.Reservation{TTL: time.Second * time.Duration(20+random.Int64N(600))}
		binary.BigEndian.PutUint64(r.ID[:], random.Uint64())
		op := weir.Op{Key: "k", Limit: limit, Cost: 1 + random.Int64N(9)}
		got := testkit.Must(s.Reserve(t.Context(), nil, r, op))(t)[0]
		if want := k.charge(clock.Now(), op); got != want {
			t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
		}
		if got.Allowed {
			ids = append(ids, r.ID)
			k.open = append(k.open, &plainHold{op.Held(k.State), r.ID, clock.Now().Add(r.TTL)})
			k.soonest = min(k.soonest, clock.Now().Add(r.TTL))
		}
	}
	for step := range holds + steps {
		s.core.Load().maxOfKey = 2 * holds
		if random.IntN(2) == 0 {
			clock.Pass(weir.Micros(random.Int64N(1500))) // others are at the same instant
		}
		if step >= holds+steps*3/4 && random.IntN(100) == 0 {
			clock.Pass(weir.Micros(random.Int64N(leap.Microseconds())))
		}
		if step == holds+steps*3/4 {
			clock.Pass(weir.Micros(leap.Microseconds()))
		}
		if step == holds+steps/2 {
			var b bytes.Buffer
			testkit.OK(t, s.Snapshot(&b))
			s = New(Options{MaxKeys: 1 << 20, Clock: clock.Now})
			testkit.OK(t, s.Restore(&b))
			continue
		}
		before := len(k.open)
		k.expire(clock.Now())
		most = max(most, before-len(k.open))
		switch what := random.IntN(5); {
		case step < holds || what < 2:
			reserve()
		case what < 4:
			i := random.IntN(len(ids))
			h := k.find(ids[i])
			used := random.Int64N(12)
			done := settle(t, s, ids[i], used)
			ids = slices.Delete(ids, i, i+1)
			if (h != nil) != (done.State == weir.HoldSettled && !done.Repeated) {
				t.Fatalf("seed %d, step %d: %+v", seed, step, done)
			}
			if h == nil {
				continue
			}
			if k.end(h, max(0, h.Cost-used)); used > h.Cost {
				k.charge(clock.Now(), weir.Op{Limit: limit, Cost: used - h.Cost, Always: true})
			}
		default:
			id := ids[random.IntN(len(ids))]
			extension := weir.Settlement{ID: id, TTL: time.Millisecond * time.Duration(1+random.Int64N(1000))}
			done := testkit.Must(s.Settle(t.Context(), extension))(t)
			if h := k.find(id); (h != nil) != (done.State == weir.HoldOpen) {
				t.Fatalf("seed %d, step %d: %+v", seed, step, done)
			} else if h != nil {
				h.expires = clock.Now().Add(extension.TTL)
				k.soonest = min(k.soonest, h.expires)
			}
		}
		op := weir.Op{Key: "k", Limit: limit, Cost: 1}
		if got, want := testkit.Must(s.Peek(t.Context(), nil, op))(t)[0], op.Peek(k.State, k.Tail, clock.Now()); got != want {
			t.Fatalf("seed %d, step %d: %+v, want %+v", seed, step, got, want)
		}
		c := s.core.Load()
		key := c.idOf("k", limit)
		sh := c.shardOf(key)
		slot, _ := sh.table.find(key)
		if got := sh.table.entries[slot].state; got != k.State {
			t.Fatalf("seed %d, step %d: %+v, want %+v", seed, step, got, k.State)
		}
		if step >= holds && step%400 == 0 {
			byID := map[weir.HoldID]*plainHold{}
			for _, h := range k.open {
				byID[h.id] = h
			}
			for _, p := range sh.table.held[slot].all() {
				held := p.under.among.held(p)
				if h := byID[p.id]; h != nil && (max(0, held.Level) != h.Level || held.At != h.At || p.expires != h.expires) {
					t.Fatalf("seed %d, step %d: %+v has moved up to %d, want %+v", seed, step, p, held.Level, h)
				} else if h == nil && limit.ReturnsExpired() {
					t.Fatalf("seed %d, step %d: %+v has expired", seed, step, p)
				}
			}
			checkHolds(t, c)
		}
	}
	if n := len(k.open); n < holds/2 && leap < time.Minute {
		t.Errorf("only %d holds are open in the end", n)
	}
	return most
}

// A call does not look at the other holds of its key, and an end of a hold moves few of them.
func TestHoldsAreNotWalked(t *testing.T) {
	const holds = 10_000
	s, clock, op := many(t, "token_bucket 1000000000/1h", true, holds)
	first := reserveNth(t, s, holds, time.Second, op)
	c := s.core.Load()
	key := c.idOf(op.Key, op.Limit)
	sh := c.shardOf(key)
	slot, _ := sh.table.find(key)
	k := sh.table.held[slot]
	parts := sh.table.held[slot].all()
	for i := range k.due {
		k.due[i].hold = nil // so that who looks at one panics
	}
	last := reserveNth(t, s, holds+1, time.Hour, op)
	testkit.Must(s.Take(t.Context(), nil, op))(t)
	testkit.Must(s.Peek(t.Context(), nil, op))(t)
	testkit.Must(s.Settle(t.Context(), weir.Settlement{ID: last, TTL: 2 * time.Hour}))(t)
	for i := range parts {
		k.due[i].hold = parts[i]
	}
	settle(t, s, last, 0)
	places, records := map[int]*hold{}, map[*hold]hold{}
	for i, p := range parts {
		places[i], records[p] = p, *p
	}
	levels := slices.Clone(k.levels)
	for _, end := range []func(){
		func() { settle(t, s, first, 0) },
		func() {
			clock.Pass(weir.Micros(time.Minute.Microseconds()))
			testkit.Must(s.Peek(t.Context(), nil, op))(t)
		},
	} {
		before := k.due[0].hold
		if end(); k.due[0].hold == before {
			t.Fatal("none has ended")
		}
		changed := 0
		for i, d := range k.due {
			if d.hold != places[i] {
				places[i], changed = d.hold, changed+1
			}
			now, before := *d.hold, records[d.hold]
			if before.place = now.place; now != before {
				t.Fatalf("%+v has changed from %+v", now, before)
			}
		}
		for i := range levels {
			if k.levels[i] != levels[i] {
				levels[i], changed = k.levels[i], changed+1
			}
		}
		if changed == 0 || changed > 64 {
			t.Errorf("the end of a hold has changed %d numbers", changed)
		}
	}
	checkHolds(t, c)
}

// Numbers of holds that have ended are given again, the levels of those that are open stay, and memory is given back
// when most holds have ended.
func TestHoldsAreNumberedAgain(t *testing.T) {
	s, _, op := many(t, "token_bucket 1000000000/1h", false, 2000)
	c := s.core.Load()
	key := c.idOf(op.Key, op.Limit)
	sh := c.shardOf(key)
	slot, _ := sh.table.find(key)
	levels := map[*hold]int64{}
	for i, p := range sh.table.held[slot].all() {
		if i < 1900 {
			settle(t, s, p.id, 0)
		}
	}
	if k := sh.table.held[slot]; cap(k.due)+cap(k.levels) > 2*fewInOrder+8*101 {
		t.Errorf("there is room for %d and %d of 100 holds", cap(k.due), cap(k.levels))
	}
	for _, p := range sh.table.held[slot].all() {
		levels[p] = p.under.among.held(p).Level
	}
	for i := range 10_000 {
		settle(t, s, reserveNth(t, s, 2000+i, time.Hour, op), 0)
		if n := len(sh.table.held[slot].levels); n > fewInOrder+2*101 {
			t.Fatalf("%d numbers for 101 holds", n)
		}
	}
	for _, p := range sh.table.held[slot].all() {
		if level := p.under.among.held(p).Level; level != levels[p] {
			t.Fatalf("%+v has moved up to %d", p, level)
		}
	}
}

// What a bucket has left behind in the pool does no harm to a window.
func TestKeyHoldsAreUsedAgain(t *testing.T) {
	s, _ := open(1 << 20)
	for range 10 { // the pool may have lost what it got
		for _, limit := range []string{"token_bucket 1000000/1h", "fixed_window 1000000/1h"} {
			var ids []weir.HoldID
			for range 500 {
				id := weir.NewHoldID()
				testkit.Must(s.Reserve(t.Context(), nil, weir.Reservation{ID: id}, weir.Op{Key: "k", Limit: weir.MustCompile(limit), Cost: 1}))(t)
				if ids = append(ids, id); limit[0] == 't' && len(ids) > 2 {
					break
				}
			}
			for _, id := range ids {
				settle(t, s, id, 1)
			}
		}
	}
	checkKeys(t, s, 1<<20)
}
