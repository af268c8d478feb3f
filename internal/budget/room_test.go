package budget

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Never is more taken than there is, and everybody gets a turn.
func TestRoom(t *testing.T) {
	r := New(10)
	var taken, most atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			n := int64(i%12 + 1) // also more than there is at all
			if err := r.Take(t.Context(), n); err != nil {
				t.Error(err)
				return
			}
			now := taken.Add(min(n, 10))
			for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
			}
			taken.Add(-min(n, 10))
			r.Give(n)
		})
	}
	wg.Wait()
	if most.Load() > 10 || r.free != 10 || r.waiting.Len() != 0 {
		t.Errorf("%d were taken at once; %d are free in the end, %d wait", most.Load(), r.free, r.waiting.Len())
	}
}

// Who came first is served first, even if there were room for those behind; who gives up
// makes place for them.
func TestRoomIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(10)
		if err := r.Take(t.Context(), 8); err != nil {
			t.Fatal(err)
		}
		large, small := make(chan error, 1), make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			large <- r.Take(ctx, 5)
		}()
		synctest.Wait()
		go func() { small <- r.Take(t.Context(), 2) }()
		synctest.Wait()
		if len(large)+len(small) != 0 {
			t.Error("somebody was served out of turn")
		}
		if err := <-large; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who wanted much: %v", err)
		}
		if err := <-small; err != nil {
			t.Errorf("who wanted little: %v", err)
		}
		r.Give(8)
		r.Give(2)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Take(ended, 10); err != nil {
			t.Errorf("there was room: %v", err)
		}
		if err := r.Take(ended, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("there was none: %v", err)
		}
	})
}
