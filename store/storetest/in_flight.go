package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// testInFlight has goroutines take, renew and give back places. There are never more at once
// than there may be, and while a place is renewed nobody loses or gains one.
func testInFlight(t *testing.T, open Open) {
	limit := weir.MustCompile("in_flight 5/1m")
	t.Run("never too many", func(t *testing.T) {
		subject := opened(t, open)
		var running, most atomic.Int64
		begun := together(t, 20, 20, func(int) (bool, error) {
			op := weir.Op{Key: "k", Limit: limit, Cost: 1}
			d, err := subject.Store.Take(t.Context(), nil, op)
			if err != nil || !d[0].Allowed {
				return false, err
			}
			if n := running.Add(1); n > 5 {
				most.Store(n)
			}
			op.Always, op.Receipt = true, d[0].Receipt
			if d, err = subject.Store.Take(t.Context(), nil, op); err != nil || !d[0].Allowed {
				return false, fmt.Errorf("renewed: %+v, %v", d, err)
			}
			running.Add(-1)
			op.Receipt = d[0].Receipt
			return true, subject.Store.Refund(t.Context(), op)
		})
		if most.Load() > 0 || begun < 5 {
			t.Errorf("%d were in flight, want at most 5; %d have begun", most.Load(), begun)
		}
		if d := peek(t, subject.Store, weir.Op{Key: "k", Limit: limit}); d.Remaining != 5 {
			t.Errorf("%d places are left at the end, want 5", d.Remaining)
		}
	})
	for _, free := range []int64{0, 1} {
		t.Run(fmt.Sprintf("renewed with %d free", free), func(t *testing.T) {
			subject := opened(t, open)
			op := weir.Op{Key: "k", Limit: limit, Cost: 1}
			receipts := make([]weir.Receipt, 5-free)
			for i := range receipts {
				receipts[i] = take(t, subject.Store, op).Receipt
			}
			allowed := together(t, len(receipts)+1, 20, func(g int) (bool, error) {
				mine := op
				if g == len(receipts) {
					d, err := subject.Store.Take(t.Context(), nil, mine)
					if err != nil || !d[0].Allowed {
						return false, err
					}
					mine.Receipt = d[0].Receipt
					return true, subject.Store.Refund(t.Context(), mine)
				}
				mine.Always, mine.Receipt = true, receipts[g]
				d, err := subject.Store.Take(t.Context(), nil, mine)
				if err == nil && !d[0].Allowed {
					err = fmt.Errorf("renewed: %+v", d[0])
				}
				if err == nil {
					receipts[g] = d[0].Receipt
				}
				return false, err
			})
			if want := 20 * free; allowed != want {
				t.Errorf("%d of 20 were allowed while places were renewed, want %d", allowed, want)
			}
		})
	}
	t.Run("no request ends", func(t *testing.T) {
		subject := opened(t, open)
		many := weir.MustCompile("in_flight 10000/1m")
		for range 100 { // 100 at a time, as one call
			testkit.Must(subject.Store.Take(t.Context(), nil, weir.Op{Key: "k", Limit: many, Cost: 100}))(t)
		}
		op := weir.Op{Key: "k", Limit: many, Cost: 1}
		subject.Set(start.Add(limit.Limit().Period) - 1)
		if d := peek(t, subject.Store, op); d.Allowed || d.RetryAfter != 1000 {
			t.Errorf("a microsecond before they expire: %+v", d)
		}
		subject.Set(start.Add(limit.Limit().Period))
		op.Cost = 10_000
		if d := take(t, subject.Store, op); !d.Allowed {
			t.Errorf("when all have expired: %+v", d)
		}
	})
}

// testHoldPlaces extends a hold on a place. It renews the place if that is wanted, and then lasts
// no longer than that.
func testHoldPlaces(t *testing.T, open Open) {
	place := weir.Op{Key: "k", Limit: weir.MustCompile("in_flight 2/1m"), Cost: 1}
	rate := weir.Op{Key: "k", Limit: weir.MustCompile("fixed_window 10/1d"), Cost: 3}
	for _, renew := range []bool{true, false} {
		t.Run(fmt.Sprintf("renew %v", renew), func(t *testing.T) {
			store, subject := holder(t, open)
			left := func(want int64) {
				t.Helper()
				if d := peek(t, store, place); d.Remaining != want {
					t.Errorf("%d places are left, want %d", d.Remaining, want)
				}
			}
			testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: holdID(1), TTL: time.Minute}, place, rate))(t)
			subject.Set(start.Add(10 * time.Second))
			other := take(t, store, place)
			subject.Set(start.Add(50 * time.Second))
			s := testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: holdID(1), TTL: time.Hour, Renew: renew}))(t)
			want := map[bool]time.Duration{true: time.Minute, false: time.Hour}[renew]
			if s.State != weir.HoldOpen || s.Expires != start.Add(50*time.Second+want) || len(s.Parts) != 2 || s.Parts[0].Cost != 1 {
				t.Fatalf("%+v", s)
			}
			left(0)
			subject.Set(start.Add(60 * time.Second))
			if !renew {
				left(1)
				return
			}
			left(0)
			subject.Set(start.Add(70 * time.Second)) // the other one has expired
			left(1)
			subject.Set(start.Add(100 * time.Second))
			testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: holdID(1), TTL: 20 * time.Second, Renew: true}))(t)
			place.Receipt = other.Receipt
			testkit.OK(t, store.Refund(t.Context(), place)) // it is free already
			subject.Set(start.Add(119 * time.Second))
			left(1)
			testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: holdID(1), Used: func(string, int64) int64 { return 0 }}))(t)
			left(2)
			if d := peek(t, store, rate); d.Remaining != 10 {
				t.Errorf("%d of the rate are left", d.Remaining)
			}
			testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: holdID(1), TTL: 20 * time.Second, Renew: true}))(t)
			left(2)
		})
	}
}
