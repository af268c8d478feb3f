package storetest

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// together runs f in many goroutines that start at once, and returns how often
// it said yes.
func together(t *testing.T, goroutines, times int, f func(goroutine int) (bool, error)) int64 {
	t.Helper()
	var yes atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for g := range goroutines {
		wg.Go(func() {
			<-start
			for range times {
				ok, err := f(g)
				if err != nil {
					t.Error(err)
					return
				}
				if ok {
					yes.Add(1)
				}
			}
		})
	}
	close(start)
	wg.Wait()
	return yes.Load()
}

// testExactlyN has 100 goroutines fight for N units.
func testExactlyN(t *testing.T, open Open) {
	for _, limit := range limits(t, "57") {
		t.Run(limit.Limit().String(), func(t *testing.T) {
			subject := opened(t, open)
			got := together(t, 100, 3, func(int) (bool, error) {
				d, err := subject.Store.Take(t.Context(), nil, weir.Op{Key: "k", Limit: limit, Cost: 1})
				return err == nil && d[0].Allowed, err
			})
			if got != 57 {
				t.Errorf("%d of 300 were allowed, want 57", got)
			}
		})
	}
}

// testAllOrNone has goroutines take the same two limits in both orders. The
// tighter one decides, and the wider one must not have paid for denials.
func testAllOrNone(t *testing.T, open Open) {
	tight, wide := limits(t, "30"), limits(t, "50")
	for i := range tight {
		if tight[i].Limit().CountDenied {
			continue
		}
		t.Run(tight[i].Limit().String(), func(t *testing.T) {
			subject := opened(t, open)
			a := weir.Op{Key: "a", Limit: tight[i], Cost: 1}
			b := weir.Op{Key: "b", Limit: wide[i], Cost: 1}
			got := together(t, 40, 3, func(g int) (bool, error) {
				ops := []weir.Op{a, b}
				if g%2 == 1 {
					ops = []weir.Op{b, a}
				}
				d, err := subject.Store.Take(t.Context(), nil, ops...)
				return err == nil && d[0].Allowed && d[1].Allowed, err
			})
			if got != 30 {
				t.Errorf("%d were allowed, want 30", got)
			}
			d := testkit.Must(subject.Store.Peek(t.Context(), nil, a, b))(t)
			if d[0].Remaining != 0 || d[1].Remaining != 20 {
				t.Errorf("%d and %d remain, want 0 and 20: a denied request was charged", d[0].Remaining, d[1].Remaining)
			}
		})
	}
}
