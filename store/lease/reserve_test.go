package lease

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// holding is a network to a store with holds, which do not expire.
type holding struct {
	*network
	mu    sync.Mutex
	holds map[weir.HoldID]*theirs
	lost  int // answers to settlements
}

// theirs is a hold of the store.
type theirs struct {
	tags    []string
	ops     []weir.Op
	settled []weir.SettledPart
}

var _ weir.HoldStore = (*holding)(nil)

func (h *holding) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	first := len(dst)
	dst, err := h.Take(ctx, dst, ops...)
	if err != nil || !weir.Allowed(dst[first:]) {
		return dst, err
	}
	open := &theirs{tags: r.Tags, ops: slices.Clone(ops)}
	for i := range ops {
		open.ops[i].Receipt = dst[first+i].Receipt
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds[r.ID] = open
	return dst, nil
}

func (h *holding) Settle(ctx context.Context, s weir.Settlement) (weir.Settled, error) {
	if err := h.pass(ctx); err != nil {
		return weir.Settled{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	settled, err := h.settleLocked(ctx, s)
	if h.lost > 0 {
		h.lost--
		return weir.Settled{}, errDown
	}
	return settled, err
}

func (h *holding) settleLocked(ctx context.Context, s weir.Settlement) (weir.Settled, error) {
	open := h.holds[s.ID]
	switch {
	case open == nil && s.Ops == nil:
		return weir.Settled{}, nil
	case open == nil:
		open = &theirs{tags: s.Tags, ops: slices.Clone(s.Ops)}
		for i := range open.ops {
			open.ops[i].Cost = 0
		}
		h.holds[s.ID] = open
	case open.settled != nil:
		return weir.Settled{State: weir.HoldSettled, Parts: open.settled, Repeated: true}, nil
	}
	for i, op := range open.ops {
		if op.Final {
			continue
		}
		cost := op.Cost
		if s.Ops != nil {
			cost = s.Ops[i].Cost
		}
		var tag string
		if open.tags != nil {
			tag = open.tags[i]
		}
		used := s.Units(tag, cost)
		switch more := used - op.Cost; {
		case more > 0:
			if _, err := h.reference.Take(ctx, nil, weir.Op{Key: op.Key, Limit: op.Limit, Cost: more, Always: true}); err != nil {
				return weir.Settled{}, err
			}
		case more < 0:
			if err := h.reference.Refund(ctx, weir.Op{Key: op.Key, Limit: op.Limit, Cost: -more, Receipt: op.Receipt}); err != nil {
				return weir.Settled{}, err
			}
		}
		open.settled = append(open.settled, weir.SettledPart{Tag: tag, Cost: op.Cost, Used: used})
	}
	return weir.Settled{State: weir.HoldSettled, Parts: open.settled}, nil
}

// openedHolding is a store with leases on a store with holds.
func openedHolding(t *testing.T, trip time.Duration) (*Store, *holding) {
	n := &holding{network: &network{reference: newReference(wallNow), trip: trip}, holds: map[weir.HoldID]*theirs{}}
	return holder(t, n, Options{}), n
}

// reserve reserves units of a key in this process.
func reserve(t *testing.T, s *Store, limit *weir.Compiled, cost int64) weir.HoldID {
	t.Helper()
	id := weir.NewHoldID()
	op := weir.Op{Key: "k", Limit: limit, Cost: cost}
	if d := testkit.Must(s.Reserve(t.Context(), nil, weir.Reservation{ID: id, InProcess: true, Tags: []string{"tag"}}, op))(t); !d[0].Allowed {
		t.Fatalf("%+v", d)
	}
	return id
}

func settle(t *testing.T, s *Store, id weir.HoldID, used int64) weir.Settled {
	t.Helper()
	return testkit.Must(s.Settle(t.Context(), weir.Settlement{ID: id, Used: func(string, int64) int64 { return used }}))(t)
}

// warmed is a key with so many units leased, and how many are used. Nothing is under way.
func warmed(t *testing.T, s *Store, limit *weir.Compiled, units int64) (taken int64) {
	t.Helper()
	for taken < 900 && s.Stats().Leased < units {
		if !take(t, s, "k", limit, 1).Allowed {
			t.Fatal("denied")
		}
		taken++
		time.Sleep(3 * time.Millisecond)
		synctest.Wait()
	}
	if s.Stats().Leased < units {
		t.Fatalf("%+v", s.Stats())
	}
	return taken
}

// A hold that ends in this process needs no call. What it has reserved serves no others, what it has not used does again, and
// what it has used beyond that is spent, too. Others see only what was used.
func TestReserveInProcess(t *testing.T) {
	for _, text := range []string{"fixed_window 1000/1h", "token_bucket 1000/1h", "sliding_window 1000/1h", "sliding_log 1000/1h"} {
		for _, used := range []int64{0, 3, 7, 9} {
			synctest.Test(t, func(t *testing.T) {
				limit := weir.MustCompile(text)
				s, n := openedHolding(t, time.Millisecond)
				taken := warmed(t, s, limit, 20)
				calls, before := n.calls.Load(), s.Stats().Leased
				id := reserve(t, s, limit, 7)
				if got := s.Stats().Leased; got != before-7 {
					t.Errorf("%s: %d can be spent after a reservation of 7, %d before", text, got, before)
				}
				open := testkit.Must(s.Settle(t.Context(), weir.Settlement{ID: id, TTL: time.Minute}))(t)
				if want := []weir.SettledPart{{Tag: "tag", Cost: 7}}; open.State != weir.HoldOpen || open.Expires != wallNow().Add(time.Minute) || !slices.Equal(open.Parts, want) {
					t.Errorf("%s: extended: %+v", text, open)
				}
				done := settle(t, s, id, used)
				if want := []weir.SettledPart{{Tag: "tag", Cost: 7, Used: used}}; done.State != weir.HoldSettled || done.Repeated || !slices.Equal(done.Parts, want) {
					t.Errorf("%s: %+v", text, done)
				}
				if got := s.Stats().Leased; got != before-used || n.calls.Load() != calls {
					t.Errorf("%s: %d can be spent after %d were used, %d before; %d calls", text, got, used, before, n.calls.Load()-calls)
				}
				if again := settle(t, s, id, used); again.State != weir.HoldUnknown {
					t.Errorf("%s: again: %+v", text, again)
				}
				testkit.OK(t, s.Close(t.Context()))
				if got := remaining(t, n, limit); got != 1000-taken-used || n.Account("k", limit).Out != 0 {
					t.Errorf("%s: %d remain after %d and %d of 1000, %d on lease", text, got, taken, used, n.Account("k", limit).Out)
				}
			})
		}
	}
}

// A hold that others may settle, and one for which too little is leased, are in the store, which leases more then.
func TestReserveAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := openedHolding(t, time.Millisecond)
		for inProcess, want := range map[bool]int{false: 20, true: 6} {
			n.holds = map[weir.HoldID]*theirs{}
			for range 20 {
				id := weir.NewHoldID()
				op := weir.Op{Key: "k", Limit: hourly, Cost: 3}
				testkit.Must(s.Reserve(t.Context(), nil, weir.Reservation{ID: id, InProcess: inProcess}, op))(t)
				time.Sleep(5 * time.Millisecond)
				synctest.Wait()
				settle(t, s, id, 3)
			}
			if got := len(n.holds); got > want || !inProcess && got != want {
				t.Errorf("in this process %v: %d of 20 holds were in the store, at most %d were to be", inProcess, got, want)
			}
		}
		testkit.OK(t, s.Close(t.Context()))
		if got := remaining(t, n, hourly); got != 1000-120 {
			t.Errorf("%d remain after 120 of 1000", got)
		}
	})
}

// All or none, and what is final is spent at once.
func TestReserveSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := openedHolding(t, time.Millisecond)
		daily := weir.MustCompile("sliding_log 1000/1d")
		ops := []weir.Op{{Key: "k", Limit: hourly, Cost: 5}, {Key: "k", Limit: daily, Cost: 1, Final: true}}
		ids := []weir.HoldID{}
		for range 40 {
			id := weir.NewHoldID()
			if d := testkit.Must(s.Reserve(t.Context(), nil, weir.Reservation{ID: id, InProcess: true}, ops...))(t); !weir.Allowed(d) {
				t.Fatalf("%+v", d)
			}
			ids = append(ids, id)
			time.Sleep(5 * time.Millisecond)
			synctest.Wait()
		}
		if got := len(n.holds); got > 20 {
			t.Errorf("%d of 40 holds are in the store", got)
		}
		ops[1].Cost = 2000
		if d := testkit.Must(s.Reserve(t.Context(), nil, weir.Reservation{ID: weir.NewHoldID(), InProcess: true}, ops...))(t); weir.Allowed(d) {
			t.Errorf("%+v", d)
		}
		for _, id := range ids {
			if done := settle(t, s, id, 2); done.State != weir.HoldSettled {
				t.Errorf("%+v", done)
			}
		}
		testkit.OK(t, s.Close(t.Context()))
		for limit, want := range map[*weir.Compiled]int64{hourly: 1000 - 80, daily: 1000 - 40} {
			if got := remaining(t, n, limit); got != want {
				t.Errorf("%d of %v remain, want %d", got, limit.Limit(), want)
			}
		}
	})
}

// What a hold has used beyond what is leased here, the store charges: once, although its answer is lost.
func TestSettleMoreThanIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := openedHolding(t, time.Millisecond)
		taken := warmed(t, s, hourly, 20)
		id := reserve(t, s, hourly, 7)
		n.lost = 2
		settlement := weir.Settlement{ID: id, Used: func(string, int64) int64 { return 500 }}
		for range 2 {
			if _, err := s.Settle(t.Context(), settlement); err != errDown {
				t.Errorf("%v, want that the answer was lost", err)
			}
		}
		done := testkit.Must(s.Settle(t.Context(), settlement))(t)
		if want := []weir.SettledPart{{Tag: "tag", Cost: 7, Used: 500}}; done.State != weir.HoldSettled || !slices.Equal(done.Parts, want) {
			t.Errorf("%+v", done)
		}
		testkit.OK(t, s.Close(t.Context()))
		if got := remaining(t, n, hourly); got != 1000-taken-500 {
			t.Errorf("%d remain after %d and 500 of 1000", got, taken)
		}
	})
}

// A hold that lasts is charged, also if the key is idle, and its lease ends. What it has not used is given back.
func TestHoldThatLasts(t *testing.T) {
	for _, text := range []string{"fixed_window 1000/1h", "sliding_window 1000/1h", "sliding_log 1000/1h", "sliding_buckets 1000/1h", "token_bucket 1000/1000d"} {
		for _, used := range []int64{0, 2, 7, 30} {
			synctest.Test(t, func(t *testing.T) {
				limit := weir.MustCompile(text)
				s, n := openedHolding(t, time.Millisecond)
				taken := warmed(t, s, limit, 20)
				before := n.leases.Load()
				id := reserve(t, s, limit, 7)
				time.Sleep(5 * time.Second)
				if got, calls := remaining(t, n, limit), n.leases.Load()-before; got != 1000-taken-7 || n.Account("k", limit).Out != 0 || s.Stats().Keys != 0 || calls > 5 {
					t.Errorf("%s: %d remain after %d and 7 of 1000, %d on lease, after %d messages", text, got, taken, n.Account("k", limit).Out, calls)
				}
				if open := testkit.Must(s.Settle(t.Context(), weir.Settlement{ID: id, TTL: time.Minute}))(t); open.State != weir.HoldOpen {
					t.Errorf("%s: %+v", text, open)
				}
				if done := settle(t, s, id, used); done.State != weir.HoldSettled || done.Parts[0].Used != used {
					t.Errorf("%s: %+v", text, done)
				}
				if got := remaining(t, n, limit); got != 1000-taken-used {
					t.Errorf("%s: %d remain after %d and %d of 1000", text, got, taken, used)
				}
			})
		}
	}
}

// Requests that last for many periods take units in one of them only.
func TestLongRequestsDoNotFillALimit(t *testing.T) {
	for _, text := range []string{"fixed_window 1000/1m", "token_bucket 1000/1m", "sliding_window 1000/1m", "sliding_log 1000/1m"} {
		synctest.Test(t, func(t *testing.T) {
			limit := weir.MustCompile(text)
			s, n := openedHolding(t, time.Millisecond)
			var open []weir.HoldID
			denied := 0
			for range 3000 { // 10 a second, of 16
				id := weir.NewHoldID()
				op := weir.Op{Key: "k", Limit: limit, Cost: 1}
				if testkit.Must(s.Reserve(t.Context(), nil, weir.Reservation{ID: id, InProcess: true}, op))(t)[0].Allowed {
					open = append(open, id)
				} else {
					denied++
				}
				time.Sleep(100 * time.Millisecond)
			}
			if denied > 0 || len(n.holds) > 300 {
				t.Errorf("%s: %d of 3000 were denied, and %d were in the store", text, denied, len(n.holds))
			}
			for _, id := range open {
				settle(t, s, id, 1)
			}
		})
	}
}

// A lease ended while a hold was open, so the store has charged all of it. Only what was used beyond it is charged then.
func TestHoldOutlivesLease(t *testing.T) {
	for _, used := range []int64{2, 7, 30} {
		for _, known := range []bool{false, true} { // to the holder
			synctest.Test(t, func(t *testing.T) {
				s, n := openedHolding(t, time.Millisecond)
				warmed(t, s, hourly, 20)
				id := reserve(t, s, hourly, 7)
				n.set(func() { n.down = true })
				time.Sleep(1500 * time.Millisecond)
				n.set(func() { n.down = false })
				if known {
					take(t, s, "k", hourly, 1)
					warmed(t, s, hourly, 20) // by another lease
				}
				charged := 1000 - remaining(t, n, hourly) - n.Account("k", hourly).Out
				if leased := s.Stats().Leased; known { // all of it is reported when the store is closed
					charged += n.Account("k", hourly).Out - leased
				}
				settle(t, s, id, used)
				if leased, out := s.Stats().Leased, n.Account("k", hourly).Out; leased > out {
					t.Errorf("%d can be spent, and %d are on lease", leased, out)
				}
				testkit.OK(t, s.Close(t.Context()))
				if got, want := remaining(t, n, hourly), 1000-charged-max(0, used-7); got != want || n.Account("k", hourly).Out != 0 {
					t.Errorf("%d remain after %d of 7 were used, and the lease had ended, want %d", got, used, want)
				}
			})
		}
	}
}

// Close takes what is reserved for used, and what is used beyond it is charged.
func TestCloseWithHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := openedHolding(t, time.Millisecond)
		taken := warmed(t, s, hourly, 20)
		less, more := reserve(t, s, hourly, 7), reserve(t, s, hourly, 2)
		testkit.OK(t, s.Close(t.Context()))
		settle(t, s, less, 1)
		settle(t, s, more, 12)
		if got := remaining(t, n, hourly); got != 1000-taken-7-12 || n.Account("k", hourly).Out != 0 {
			t.Errorf("%d remain after %d, 7 and 12 of 1000", got, taken)
		}
	})
}

// A reservation for which too little is held is allowed if that and what the store has left are enough.
func TestReserveAllThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := openedHolding(t, time.Millisecond)
		taken := warmed(t, s, hourly, 20)
		id := reserve(t, s, hourly, 1000-taken)
		if d := take(t, s, "k", hourly, 1); d.Allowed {
			t.Errorf("with everything reserved: %+v", d)
		}
		settle(t, s, id, 100)
		testkit.OK(t, s.Close(t.Context()))
		if got := remaining(t, n, hourly); got != 1000-taken-100 {
			t.Errorf("%d remain after %d and 100 of 1000", got, taken)
		}
	})
}

// A key that is used seldom beside one that is used often: each request asks the store once to reserve, and once to settle.
func TestReserveBesideSeldomUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := openedHolding(t, time.Millisecond)
		before := int64(0)
		for i := range 1000 {
			if i == 500 {
				before = n.calls.Load()
			}
			id := weir.NewHoldID()
			ops := []weir.Op{{Key: "k", Limit: weir.MustCompile("fixed_window 100000/1h"), Cost: 1}, {Key: fmt.Sprint(i), Limit: hourly, Cost: 1}}
			testkit.Must(s.Reserve(t.Context(), nil, weir.Reservation{ID: id, InProcess: true}, ops...))(t)
			settle(t, s, id, 1)
			time.Sleep(10 * time.Millisecond)
		}
		if got := n.calls.Load() - before; got > 1050 {
			t.Errorf("%d calls for 500 requests", got)
		}
	})
}

// apart is a store of several parts, by the first byte of the key.
type apart struct{ *holding }

func (a apart) PartOf(op weir.Op) uint16 { return uint16(op.Key[0]) }

func (a apart) TakePartial(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	dst, err := a.Take(ctx, dst, ops...)
	return dst, nil, err
}

func (a apart) PeekPartial(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	dst, err := a.Peek(ctx, dst, ops...)
	return dst, nil, err
}

func (a apart) ReservePartial(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, []error, error) {
	dst, err := a.Reserve(ctx, dst, r, ops...)
	return dst, nil, err
}

// A denied reservation has what remains in the store, because what is leased here did not count for it.
func TestReserveDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &holding{network: &network{reference: newReference(wallNow), trip: time.Millisecond}, holds: map[weir.HoldID]*theirs{}}
		s := holder(t, apart{n}, Options{})
		warmed(t, s, hourly, 20)
		take(t, n, "k", hourly, remaining(t, n, hourly)-5)
		ops := []weir.Op{{Key: "k", Limit: hourly, Cost: s.Stats().Leased + 1}, {Key: "other", Limit: hourly, Cost: 1}}
		d, _, err := s.ReservePartial(t.Context(), nil, weir.Reservation{ID: weir.NewHoldID(), InProcess: true}, ops...)
		if err != nil || d[0].Allowed || d[0].Remaining != 5 {
			t.Errorf("%v %+v, want that 5 remain", err, d)
		}
	})
}
