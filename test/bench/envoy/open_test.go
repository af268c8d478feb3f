package envoy

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSchedule(t *testing.T) {
	const perSecond = 10_000
	due := schedule(perSecond, 10*time.Second, 1)
	if !slices.IsSorted(due) || due[len(due)-1] >= 10*time.Second {
		t.Errorf("it is not in order, or ends at %v", due[len(due)-1])
	}
	// The deviation of a Poisson count is its root; the seed is fixed, so this fails always or never.
	if n := float64(len(due)); math.Abs(n-10*perSecond) > 4*math.Sqrt(10*perSecond) {
		t.Errorf("%v requests in 10 s, want about %d", n, 10*perSecond)
	}
	short := 0 // the gaps below the mean are 1 - 1/e of all
	for i := range due[1:] {
		if due[i+1]-due[i] < time.Second/perSecond {
			short++
		}
	}
	if share := float64(short) / float64(len(due)); math.Abs(share-(1-1/math.E)) > 0.01 {
		t.Errorf("%.3f of the gaps are short", share)
	}
	if !slices.Equal(due, schedule(perSecond, 10*time.Second, 1)) || slices.Equal(due, schedule(perSecond, 10*time.Second, 2)) {
		t.Error("the schedule does not depend on the seed alone")
	}
}

func virtual(due time.Time) error {
	time.Sleep(time.Until(due))
	return nil
}

// Requests leave although earlier ones are not answered.
func TestOpenLoopWaitsForNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var left [3]time.Duration
		r, err := openLoop([]time.Duration{0, time.Millisecond, 2 * time.Millisecond}, 10, virtual, func(n int) error {
			left[n] = time.Since(begin)
			time.Sleep(time.Second)
			return nil
		})
		if want := [3]time.Duration{0, time.Millisecond, 2 * time.Millisecond}; left != want || err != nil {
			t.Errorf("they left at %v, %v", left, err)
		}
		if r.Done != 3 || r.Unsent != 0 || r.P99 != time.Second {
			t.Errorf("%+v", r)
		}
	})
}

// A request that leaves late has waited since it was due.
func TestOpenLoopCountsFromTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := func(due time.Time) error { return virtual(due.Add(7 * time.Millisecond)) }
		r, err := openLoop([]time.Duration{0, time.Millisecond}, 10, late, func(int) error { return nil })
		if err != nil || r.P50 != 7*time.Millisecond || r.P99 != 7*time.Millisecond {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// What is not sent is a failure, not left out.
func TestOpenLoopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFlight, most atomic.Int64
		due := []time.Duration{0, 0, 0, 0, 2 * time.Second} // the last finds a worker again
		r, err := openLoop(due, 2, virtual, func(int) error {
			most.Store(max(most.Load(), inFlight.Add(1)))
			time.Sleep(time.Second)
			inFlight.Add(-1)
			return nil
		})
		if err != nil || r.Done != 3 || r.Unsent != 2 || most.Load() != 2 {
			t.Errorf("%+v, at most %d in flight, %v", r, most.Load(), err)
		}
		if r.P50.Round(100*time.Millisecond) != time.Second || r.P99 != giveUp || r.Rate() != 1 {
			t.Errorf("%+v", r)
		}
	})
}

func TestOpenLoopErrors(t *testing.T) {
	no := errors.New("no")
	if _, err := openLoop([]time.Duration{0, 0}, 2, virtual, func(n int) error { return []error{no, nil}[n] }); !errors.Is(err, no) {
		t.Errorf("a failed request: %v", err)
	}
	if _, err := openLoop([]time.Duration{0}, 2, func(time.Time) error { return no }, func(int) error { return nil }); !errors.Is(err, no) {
		t.Errorf("a failed wait: %v", err)
	}
}

func TestPacer(t *testing.T) {
	p, err := newPacer()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for _, wait := range []time.Duration{-time.Second, 0, time.Nanosecond, 100 * time.Microsecond, 3 * time.Millisecond} {
		due := time.Now().Add(wait)
		if err := p.until(due); err != nil || time.Now().Before(due) {
			t.Errorf("%v: it ended too early, or with %v", wait, err)
		}
	}
}
