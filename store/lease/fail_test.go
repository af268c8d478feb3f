package lease

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// remaining is what the store itself says is free.
func remaining(t *testing.T, store weir.Store, limit *weir.Compiled) int64 {
	t.Helper()
	return testkit.Must(store.Peek(t.Context(), nil, weir.Op{Key: "k", Limit: limit}))(t)[0].Remaining
}

// spend takes single units as long as that needs no call, and returns how many.
func spend(t *testing.T, s *Store, limit *weir.Compiled) (spent int64) {
	t.Helper()
	for s.Stats().Leased > 0 {
		if !take(t, s, "k", limit, 1).Allowed {
			t.Fatal("denied with units on lease")
		}
		spent++
	}
	return spent
}

// A process dies after it has spent units, and before it has reported them. Others get what it was not granted, and when
// its lease ends, what it was granted is charged.
func TestProcessDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		taken := warm(t, s, "k", hourly)
		n.set(func() { n.down = true }) // what it says from now on, nobody hears
		leased := n.Account("k", hourly).Out
		taken += spend(t, s, hourly)
		other := holder(t, n.reference, Options{})
		var others int64
		for until := time.Now().Add(2 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
			if take(t, other, "k", hourly, 1).Allowed {
				others++
			}
		}
		if others < 800 || taken+others > 1000 {
			t.Errorf("one took %d and was granted %d more, and died; the other took %d of 1000", taken, leased, others)
		}
		if a := n.Account("k", hourly); a.Out > others+other.Stats().Leased {
			t.Errorf("%d are still on lease", a.Out)
		}
	})
}

// While the store is unavailable, what is held is spent, until the lease ends. Then its error is returned. What was
// spent is reported when it is back, without a request.
func TestStoreUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		taken := warm(t, s, "k", hourly)
		n.set(func() { n.down = true })
		for range s.Stats().Leased {
			if d := take(t, s, "k", hourly, 1); !d.Allowed {
				t.Fatalf("denied with units on lease: %+v", d)
			}
			taken++
		}
		_, err := s.Take(t.Context(), nil, weir.Op{Key: "k", Limit: hourly, Cost: 1})
		if err != errDown {
			t.Fatalf("with nothing left: %v, want the error of the store", err)
		}
		time.Sleep(10 * time.Second) // the lease has ended long ago
		if stats := s.Stats(); stats.Keys != 1 || stats.Unanswered != 1 {
			t.Errorf("what was spent is not known any more: %+v", stats)
		}
		calls := n.calls.Load()
		time.Sleep(10 * time.Second)
		if more := n.calls.Load() - calls; more > 4 {
			t.Errorf("%d calls to an unavailable store within 10s", more)
		}
		n.set(func() { n.down = false })
		time.Sleep(2 * lastRetry)
		if got := remaining(t, n, hourly); got > 1000-taken {
			t.Errorf("%d remain after %d of 1000", got, taken)
		}
		if stats := s.Stats(); stats.Keys != 0 || stats.Unanswered != 0 {
			t.Errorf("%+v", stats)
		}
	})
}

// Units are not spent when their lease has ended, counted from when it was asked for.
func TestDeadline(t *testing.T) {
	for _, c := range []struct {
		after time.Duration // sending
		local bool
	}{{978 * time.Millisecond, true}, {979 * time.Millisecond, false}, {5 * time.Second, false}} {
		synctest.Test(t, func(t *testing.T) {
			s, n := opened(t, 100*time.Millisecond)
			var sent time.Time
			n.set(func() { n.onLease = func([]weir.LeaseOp) { sent = time.Now() } })
			warm(t, s, "k", hourly)
			n.set(func() { n.down, n.onLease = true, nil })
			time.Sleep(c.after - time.Since(sent))
			_, err := s.Take(t.Context(), nil, weir.Op{Key: "k", Limit: hourly, Cost: 1})
			if local := err == nil; local != c.local {
				t.Errorf("%v after the lease was asked for: %v, %+v", c.after, err, s.Stats())
			}
		})
	}
}

// A machine is suspended: its monotonic clock stands still, and the time of day has moved on when it wakes. If only the
// time of day is set back, that changes nothing. So it is for a caller who reads the clock itself.
func TestSuspended(t *testing.T) {
	take := map[string]func(context.Context, *Store, weir.Op) error{
		"Take": func(ctx context.Context, s *Store, op weir.Op) error {
			_, err := s.Take(ctx, nil, op)
			return err
		},
		"TakePartialAt": func(ctx context.Context, s *Store, op weir.Op) error {
			q := s.Quick(s).(*quick)
			_, _, err := q.TakePartialAt(ctx, q.Elapsed(), nil, op)
			return err
		},
	}
	for _, c := range []struct {
		step  time.Duration
		local bool
	}{{time.Hour, false}, {time.Second, false}, {-time.Hour, true}, {0, true}} {
		for name, take := range take {
			synctest.Test(t, func(t *testing.T) {
				n := &network{reference: newReference(wallNow), trip: time.Millisecond}
				start, step := time.Now(), time.Duration(0)
				s := holder(t, n, Options{Clock: func() (time.Time, time.Duration) { return time.Now().Add(step), time.Since(start) }})
				warm(t, s, "k", hourly)
				n.set(func() { n.down = true })
				step = c.step
				if err := take(t.Context(), s, weir.Op{Key: "k", Limit: hourly, Cost: 1}); (err == nil) != c.local {
					t.Errorf("%s after %v: %v", name, c.step, err)
				}
			})
		}
	}
}

// An answer is lost: the next message says all again, and what was spent is charged once.
func TestAnswersLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		taken := warm(t, s, "k", hourly)
		n.set(func() { n.lose = 3; n.double = true })
		taken += spend(t, s, hourly)
		time.Sleep(300 * time.Millisecond)
		testkit.OK(t, s.Close(t.Context()))
		if got, out := remaining(t, n, hourly), n.Account("k", hourly).Out; got != 1000-taken || out != 0 {
			t.Errorf("%d remain after %d of 1000, %d on lease", got, taken, out)
		}
	})
}

// A request that needs units of its own process sends another message while one is on its way. The answer to the first
// one comes later, and counts for nothing.
func TestAnswerOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		warm(t, s, "k", hourly)
		n.set(func() { n.trip = 400 * time.Millisecond })
		held := s.Stats().Leased
		for range held - 1 { // the last ones ask for more
			take(t, s, "k", hourly, 1)
		}
		synctest.Wait()
		n.set(func() { n.trip = time.Millisecond })
		if s.Stats().Leased != 1 {
			t.Fatalf("%+v", s.Stats())
		}
		if d := take(t, s, "k", hourly, 2); !d.Allowed {
			t.Errorf("%+v", d)
		}
		for range 100 {
			take(t, s, "k", hourly, 1)
			time.Sleep(10 * time.Millisecond)
			if out, leased := n.Account("k", hourly).Out, s.Stats().Leased; leased > out {
				t.Fatalf("%d can be spent, and the store has %d on lease", leased, out)
			}
		}
	})
}

// The store has lost the lease, as after a failover: what is spent is charged, and the rest is not spent once the holder knows.
func TestStoreLosesLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		taken := warm(t, s, "k", hourly)
		n.Lose("k", hourly)
		taken += spend(t, s, hourly)
		testkit.OK(t, s.Close(t.Context()))
		if got := remaining(t, n, hourly); got != 1000-taken {
			t.Errorf("%d remain after %d of 1000", got, taken)
		}
	})
}

// A lease that ended before its holder could say so is dropped, and another one begins.
func TestLeaseEndsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		taken := warm(t, s, "k", hourly)
		n.set(func() { n.down = true })
		time.Sleep(1500 * time.Millisecond)
		n.set(func() { n.down = false })
		taken += warm(t, s, "k", hourly)
		if s.Stats().Lost == 0 {
			t.Errorf("%+v", s.Stats())
		}
		if out, leased := n.Account("k", hourly).Out, s.Stats().Leased; leased > out {
			t.Errorf("%d can be spent, and the store has %d on lease", leased, out)
		}
		lost := s.Stats().Lost
		testkit.OK(t, s.Close(t.Context()))
		if got := remaining(t, n, hourly); got > 1000-taken || got < 1000-taken-2*lost {
			t.Errorf("%d remain after %d of 1000, with %d lost", got, taken, lost)
		}
	})
}

// The clock of the store jumps ahead: the lease has ended there, and what its holder could still spend counts as lost.
func TestStoreEndsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		n := &network{reference: newReference(func() weir.Micros { return wallNow() + weir.Micros(ahead.Load()) }), trip: time.Millisecond}
		s := holder(t, n, Options{})
		warm(t, s, "k", hourly)
		time.Sleep(10 * time.Millisecond)
		var held atomic.Int64
		n.set(func() { n.onLease = func([]weir.LeaseOp) { held.CompareAndSwap(0, s.Stats().Leased) } })
		ahead.Store(1_500_000) // and is not forgotten
		for held.Load() == 0 {
			take(t, s, "k", hourly, 1)
			synctest.Wait()
		}
		time.Sleep(2 * time.Millisecond)
		if got := s.Stats().Lost; got != held.Load() {
			t.Errorf("%d of %d units are lost", got, held.Load())
		}
	})
}

// A reset clears what is charged, and not what is on lease. What was spent of that, and is not reported, is charged after it.
func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		warm(t, s, "k", hourly)
		time.Sleep(10 * time.Millisecond)
		for range s.Stats().Leased - 2 {
			take(t, s, "k", hourly, 1)
		}
		taken := n.Account("k", hourly).Out - s.Stats().Leased // and not reported
		if taken < 2 {
			t.Fatalf("%d are not reported", taken)
		}
		testkit.OK(t, s.Reset(t.Context(), weir.Op{Key: "k", Limit: hourly}))
		if got := n.Account("k", hourly); remaining(t, n, hourly)+got.Out != 1000 || got.Out < taken {
			t.Errorf("%d remain, and %d are on lease; %d of these are spent", remaining(t, n, hourly), got.Out, taken)
		}
		testkit.OK(t, s.Close(t.Context()))
		if got, out := remaining(t, n, hourly), n.Account("k", hourly).Out; got != 1000-taken || out != 0 {
			t.Errorf("%d remain after a reset, with %d spent before it and not reported, and %d on lease", got, taken, out)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		taken := warm(t, s, "k", hourly)
		n.set(func() { n.down = true })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the store is unavailable: %v", err)
		}
		n.set(func() { n.down = false })
		for range 10 {
			n.calls.Store(0)
			if d := take(t, s, "other", hourly, 1); !d.Allowed || n.takes.Load() == 0 {
				t.Errorf("after Close: %+v", d)
			}
			if n.calls.Load() != 1 {
				t.Errorf("after Close, a request made %d calls", n.calls.Load())
			}
		}
		time.Sleep(time.Hour / 2)
		if got := remaining(t, n, hourly); got > 1000-taken {
			t.Errorf("%d remain after %d of 1000", got, taken)
		}
	})
}

// Close of a store that never leased anything, and while many keys have leases.
func TestCloseMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle, _ := opened(t, 0)
		testkit.OK(t, idle.Close(t.Context()))
		s, n := opened(t, time.Millisecond)
		for i := range 3000 {
			take(t, s, string(rune('a'+i/5)), hourly, 1)
		}
		if s.Stats().Leased == 0 {
			t.Fatal("nothing is leased")
		}
		testkit.OK(t, s.Close(t.Context()))
		testkit.OK(t, s.Close(t.Context()))
		for i := range 600 {
			if out := n.Account(string(rune('a'+i)), hourly).Out; out != 0 {
				t.Fatalf("%d units are still on lease", out)
			}
		}
	})
}
