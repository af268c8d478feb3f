package memory

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

func reserve(t *testing.T, s *Store, n int, op weir.Op, release bool) weir.HoldID {
	t.Helper()
	r := weir.Reservation{ID: weir.HoldID{byte(n), byte(n >> 8)}, TTL: time.Minute, Tags: []string{"tag"}}
	if release {
		l := op.Limit.Limit()
		l.Release = true
		op.Limit = testkit.Must(l.Compile())(t)
	}
	if d := testkit.Must(s.Reserve(t.Context(), nil, r, op))(t); !d[0].Allowed {
		t.Fatalf("%+v", d)
	}
	return r.ID
}

func settle(t *testing.T, s *Store, id weir.HoldID, used int64) weir.Settled {
	t.Helper()
	return testkit.Must(s.Settle(t.Context(), weir.Settlement{ID: id, Used: func(string, int64) int64 { return used }}))(t)
}

// Holds survive a restart: the open ones can be settled, or expire, and the ended ones are
// remembered.
func TestRestoreHolds(t *testing.T) {
	for _, limit := range every {
		if limit.Limit().Shape {
			continue
		}
		s, clock := open(0)
		op := weir.Op{Key: "k", Limit: limit, Cost: 2}
		first, second := reserve(t, s, 1, op, true), reserve(t, s, 2, weir.Op{Key: "j", Limit: limit, Cost: 2}, true)
		ended := reserve(t, s, 3, weir.Op{Key: "l", Limit: limit, Cost: 2}, false)
		settle(t, s, ended, 1)
		var b bytes.Buffer
		testkit.OK(t, s.Snapshot(&b))
		next := restored(t, clock, b.Bytes())
		var again bytes.Buffer
		testkit.OK(t, next.Snapshot(&again))
		if !bytes.Equal(b.Bytes(), again.Bytes()) {
			t.Errorf("%v: a snapshot changed by being restored", limit.Limit())
		}
		if done := settle(t, next, first, 0); done.State != weir.HoldSettled || done.Parts[0].Tag != "tag" {
			t.Errorf("%v: %+v", limit.Limit(), done)
		}
		if done := settle(t, next, ended, 0); done.State != weir.HoldSettled || done.Parts[0].Used != 1 {
			t.Errorf("%v: %+v", limit.Limit(), done)
		}
		clock.Pass(weir.Micros(time.Minute.Microseconds()))
		if done := settle(t, next, second, 0); done.State != weir.HoldExpired {
			t.Errorf("%v: %+v", limit.Limit(), done)
		}
		if got := next.Stats().Keys; got > 1 {
			t.Errorf("%v: %d keys are left, want only that of the hold that was kept", limit.Limit(), got)
		}
	}
}

// A hold that was reserved while the snapshot was being written has no charge in it, and so
// must not be in it. It is in the next one, even if that one failed.
func TestSnapshotWithoutNewHolds(t *testing.T) {
	for _, fails := range []bool{false, true} {
		s, clock := open(0)
		op := weir.Op{Key: "k", Limit: weir.MustCompile("fixed_window 10/1d"), Cost: 5}
		for i := range 5000 { // which are written before the holds are copied
			take(t, s, fmt.Sprint("other ", i), op.Limit)
		}
		var b bytes.Buffer
		var late weir.HoldID
		func() {
			defer func() {
				if (recover() != nil) != fails {
					t.Error("the panic did not reach the caller")
				}
			}()
			testkit.OK(t, s.Snapshot(&during{&b, func() {
				if late = reserve(t, s, 1, op, false); fails {
					panic("no disk")
				}
			}}))
			next := restored(t, clock, b.Bytes())
			testkit.Must(next.Take(t.Context(), nil, op))(t)
			if done := settle(t, next, late, 0); done.State != weir.HoldUnknown {
				t.Errorf("%+v", done)
			}
		}()
		b.Reset()
		testkit.OK(t, s.Snapshot(&b))
		if done := settle(t, restored(t, clock, b.Bytes()), late, 0); done.State != weir.HoldSettled {
			t.Errorf("in the next snapshot: %+v", done)
		}
	}
}

// Records of holds that have ended are used again, and give their memory back.
func TestRecordsGiveMemoryBack(t *testing.T) {
	s, _ := open(1 << 15) // with one shard of holds
	limits := []*weir.Compiled{weir.MustCompile("fixed_window 100000/1d"), weir.MustCompile("token_bucket 100000/1d")}
	hold := func(i int) (id weir.HoldID) {
		id = weir.HoldID{byte(i), byte(i >> 8)}
		var ops []weir.Op
		for _, limit := range limits[:1+i%2] {
			ops = append(ops, weir.Op{Key: fmt.Sprint("k", i%50), Limit: limit, Cost: 1})
		}
		testkit.Must(s.Reserve(t.Context(), nil, weir.Reservation{ID: id}, ops...))(t)
		return id
	}
	o := &s.core.Load().holds[0].open
	var ids []weir.HoldID
	for i := range 1000 {
		ids = append(ids, hold(i))
	}
	if most := 1500/chunkHolds + 1; len(o.chunks) != most {
		t.Errorf("%d chunks for 1500 records, want %d", len(o.chunks), most)
	}
	for _, id := range ids[2:] {
		settle(t, s, id, 1)
	}
	left := 0
	for _, c := range o.chunks {
		if c != nil {
			left++
		}
	}
	if left != 1 || o.spare == nil {
		t.Errorf("%d chunks are left", left)
	}
	chunks := len(o.chunks)
	for i := range 900 {
		hold(i + 2000)
	}
	if len(o.chunks) != chunks {
		t.Errorf("%d chunks, before %d", len(o.chunks), chunks)
	}
	checkKeys(t, s, 1<<15)
}

// during does something at the first write.
type during struct {
	*bytes.Buffer
	once func()
}

func (d *during) Write(p []byte) (int, error) {
	if d.once != nil {
		d.once()
		d.once = nil
	}
	return d.Buffer.Write(p)
}

// A flood of new keys does not push out one with an open hold.
func TestHeldKeysStay(t *testing.T) {
	s, _ := open(64)
	op := weir.Op{Key: "held", Limit: weir.MustCompile("fixed_window 10/1d"), Cost: 5}
	id := reserve(t, s, 1, op, false)
	for i := range 10_000 {
		take(t, s, fmt.Sprint("flood ", i), weir.MustCompile("1000/1d"))
	}
	settle(t, s, id, 3)
	if d := testkit.Must(s.Peek(t.Context(), nil, op))(t); d[0].Remaining != 7 {
		t.Errorf("%d remain, want 7", d[0].Remaining)
	}
	checkKeys(t, s, 64)
}

// Open holds are bounded, in all, and what needs none goes on.
func TestTooManyHolds(t *testing.T) {
	s, clock := open(64)
	limit := weir.MustCompile("fixed_window 10/1d")
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		_, err = s.Reserve(t.Context(), nil, weir.Reservation{ID: weir.HoldID{byte(n), byte(n >> 8)}}, weir.Op{Key: fmt.Sprint(n), Limit: limit, Cost: 1})
	}
	if !errors.Is(err, weir.ErrHoldsFull) || n < 8 || n > 64 {
		t.Errorf("%d holds, then %v", n, err)
	}
	l := testkit.Must(weir.NewLimiter(s, weir.MustParseLimit("fixed_window 10/1h")))(t)
	for _, want := range []int64{4, -1} { // remaining
		h, d, err := l.Reserve(t.Context(), "unheld", 6, 0)
		if err != nil || h != nil || d.Allowed != (want >= 0) || d.Remaining != 4 {
			t.Errorf("without a place: %+v, %+v, %v", h, d, err)
		}
		if done := testkit.Must(h.Settle(t.Context(), 1))(t); done.State != weir.HoldUnknown {
			t.Errorf("%+v", done)
		}
		if done := testkit.Must(h.Extend(t.Context(), time.Hour))(t); done.State != weir.HoldUnknown {
			t.Errorf("%+v", done)
		}
	}
	for i := range 1000 {
		take(t, s, fmt.Sprint("other ", i), limit)
	}
	clock.Pass(weir.Micros((2 * time.Minute).Microseconds()))
	reserve(t, s, 5000, weir.Op{Key: "later", Limit: limit, Cost: 1}, false)
}

// Holds that have ended make room for others: to remember them must not let a flood of
// requests, each settled at once, make the next one fail.
func TestEndedHoldsMakeRoom(t *testing.T) {
	s, _ := open(64)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("fixed_window 1000/1d"), Cost: 1}
	first := reserve(t, s, 0, op, false)
	for n := 1; n < 100; n++ {
		settle(t, s, reserve(t, s, n, op, false), 0)
	}
	if done := settle(t, s, weir.HoldID{99}, 1); done.State != weir.HoldSettled || !done.Repeated {
		t.Errorf("the last is %+v", done)
	}
	if done := settle(t, s, weir.HoldID{1}, 1); done.State != weir.HoldUnknown {
		t.Errorf("the oldest is %+v", done)
	}
	if done := settle(t, s, first, 0); done.State != weir.HoldSettled || done.Repeated {
		t.Errorf("the open one is %+v", done)
	}
	if held := s.core.Load().holds[0].found(); held > 64/maxRemembered {
		t.Errorf("%d are remembered", held)
	}
}

// found is how many holds the directories have.
func (sh *holdShard) found() (n int) {
	for i := range sh.directories {
		n += sh.directories[i].count
	}
	return n
}

// all lists the open holds of a key.
func (k *keyHolds) all() (all []*hold) {
	if k != nil {
		for _, d := range k.due {
			all = append(all, d.hold)
		}
	}
	return all
}

// checkHolds compares orders, numbers, records and directories with each other.
func checkHolds(t *testing.T, c *core) {
	t.Helper()
	listed := map[*hold]bool{}
	for i := range c.shards {
		sh := &c.shards[i]
		for slot, k := range sh.table.held {
			e := &sh.table.entries[slot]
			for i, p := range k.all() {
				if !p.isListed() || p.under.among != k || !e.is(k.id) || p.releases() && p.expires < max(k.nextRelease(), sh.releases) ||
					int(p.place) != i || k.due[i].at != p.expires || p.leaks() && int(p.number) >= len(k.levels) {
					t.Fatalf("%+v among %+v of %v", p, k, e)
				}
				listed[p] = true
			}
			if k != nil && len(k.due) == 0 {
				t.Fatalf("%v has no hold: %+v", e, k)
			}
		}
	}
	for i := range c.holds {
		sh, records, open, ended, forgotten := &c.holds[i], 0, 0, 0, 0
		isIn := func(id weir.HoldID) bool {
			return c.holdShard(&id) == sh && sh.findLocked(&id) != nil
		}
		for h := range sh.open.all() {
			open++
			for p := h; ; p = sh.open.at(int(p.next - 1)) {
				if records++; p.id != h.id || p.expires != h.expires || (p.record > 0) != (p == h) {
					t.Fatalf("%+v is a part of %+v", p, h)
				}
				if p.next == 0 {
					break
				}
			}
			for _, p := range sh.open.parts(h) {
				if p.isListed() != listed[p] {
					t.Fatalf("%+v is listed: %v", p, listed[p])
				}
				delete(listed, p)
			}
			if !isIn(h.id) {
				t.Fatalf("%+v is not in the directory", h)
			}
		}
		used, room := 0, 0
		for number, chunk := range sh.open.chunks {
			isRoomy := slices.Contains(sh.open.roomy, int32(number))
			if chunk != nil {
				used += bits.OnesCount64(chunk.used)
			}
			if isRoomy != (chunk == nil || chunk.used != fullChunk) {
				t.Fatalf("chunk %d is full: %+v", number, sh.open.roomy)
			}
			if isRoomy {
				room++
			}
		}
		if used != records || records != sh.open.records || room != len(sh.open.roomy) {
			t.Fatalf("%d records of %d are in use in %d chunks with room: %+v", used, records, room, sh.open)
		}
		for i, chunk := range sh.ended.chunks {
			if i == 0 {
				chunk = chunk[sh.ended.begin:]
			}
			for len(chunk) > 0 {
				e := cut(chunk)
				ended, chunk = ended+1, chunk[len(e):]
				if e.isForgotten() {
					forgotten++
				} else if !isIn(e.id()) {
					t.Fatalf("%v has ended, and is not in the directory", e.id())
				}
			}
		}
		if open != sh.open.count || ended != sh.ended.count || open+ended-forgotten != sh.found() || open+ended > c.maxHolds || records > c.maxParts {
			t.Fatalf("%d are open, with %d records, and %d have ended: %+v", open, records, ended, sh.open)
		}
	}
	if len(listed) > 0 {
		t.Fatalf("%d parts have no open hold", len(listed))
	}
}

// A refund of all that was charged leaves the key, as long as it has a hold.
func TestRefundOfAHeldKey(t *testing.T) {
	s, _ := open(0)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("fixed_window 10/1h"), Cost: 2}
	d := testkit.Must(s.Reserve(t.Context(), nil, weir.Reservation{ID: weir.HoldID{1}}, op))(t)
	op.Receipt = d[0].Receipt
	testkit.OK(t, s.Refund(t.Context(), op))
	checkKeys(t, s, 1)
	if done := settle(t, s, weir.HoldID{1}, 5); done.State != weir.HoldSettled {
		t.Errorf("%+v", done)
	}
	checkKeys(t, s, 1)
}

// Each of many callers that settle a hold at once has an answer of its own.
func TestSettleOneAtOnce(t *testing.T) {
	s, _ := open(0)
	l := testkit.Must(weir.NewLimiter(s, weir.MustParseLimit("fixed_window 10/1h")))(t)
	h, _, err := l.Reserve(t.Context(), "k", 2, 0)
	testkit.OK(t, err)
	var callers sync.WaitGroup
	var first atomic.Int64
	for i := range int64(8) {
		callers.Go(func() {
			done, err := h.Settle(t.Context(), i)
			if err != nil || done.State != weir.HoldSettled || !done.Repeated && !first.CompareAndSwap(0, done.Parts[0].Used+1) {
				t.Errorf("%+v, %v", done, err)
			}
		})
	}
	callers.Wait()
	if done := testkit.Must(h.Settle(t.Context(), 9))(t); !done.Repeated || done.Parts[0].Used != first.Load()-1 {
		t.Errorf("%+v after %d", done, first.Load()-1)
	}
}

// An id can be used once, and again when its hold is forgotten, even if its record had no
// turn to be removed yet. What was refused charged nothing.
func TestIDsOfForgottenHolds(t *testing.T) {
	limit := testkit.Must(weir.Limit{N: 100, Period: time.Hour}.Compile())(t)
	ops := []weir.Op{{Key: "a", Limit: limit, Cost: 1}, {Key: "b", Limit: limit, Cost: 1}}
	for n := 1; n <= len(ops); n++ {
		s, clock := open(1000) // with one shard of holds
		again := func(id weir.HoldID) error {
			_, err := s.Reserve(t.Context(), nil, weir.Reservation{ID: id}, ops[:n]...)
			return err
		}
		var last weir.HoldID
		for i := range 3 * passed {
			last = reserve(t, s, i, ops[0], false)
			settle(t, s, last, 1)
		}
		if err := again(last); !errors.Is(err, weir.ErrHoldExists) {
			t.Errorf("%d ops: %v", n, err)
		}
		if d := testkit.Must(s.Peek(t.Context(), nil, ops[0]))(t); d[0].Remaining != 100-3*passed {
			t.Errorf("%d ops: %+v", n, d)
		}
		clock.Pass(weir.Micros((2 * weir.HoldMemory).Microseconds()))
		testkit.OK(t, again(last))
		checkHolds(t, s.core.Load())
	}
}
