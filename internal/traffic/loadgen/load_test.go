package loadgen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// taking is a call that takes so long, or until it is cut off.
func taking(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Run(t.Context(), Options{Workers: 4, Duration: 1995 * time.Millisecond, Do: func(ctx context.Context, worker int) (string, error) {
			took := 10 * time.Millisecond
			if worker == 3 {
				took = 100 * time.Millisecond
			}
			return fmt.Sprint("worker ", worker), taking(ctx, took)
		}})
		want := map[string]int64{"worker 0": 200, "worker 1": 200, "worker 2": 200, "worker 3": 20}
		if !maps.Equal(r.Outcomes, want) || r.Answered != 620 || r.Errors != 0 || r.Unfinished != 0 {
			t.Errorf("outcomes %v, %d answered, %d errors, %d unfinished", r.Outcomes, r.Answered, r.Errors, r.Unfinished)
		}
		if r.Elapsed != 2*time.Second || r.Rate() != 310 {
			t.Errorf("took %v, %v a second", r.Elapsed, r.Rate())
		}
		if got := r.Latency.Quantile(0.5); got < 10*time.Millisecond || got > 10100*time.Microsecond {
			t.Errorf("p50 %v", got)
		}
		if r.Latency.Count() != 620 || r.Latency.Max() != 100*time.Millisecond {
			t.Errorf("%d latencies of at most %v", r.Latency.Count(), r.Latency.Max())
		}
	})
}

func TestCount(t *testing.T) {
	var calls atomic.Int64
	r := Run(t.Context(), Options{Workers: 8, Count: 1000, Do: func(context.Context, int) (string, error) {
		calls.Add(1)
		return "done", nil
	}})
	if calls.Load() != 1000 || r.Outcomes["done"] != 1000 {
		t.Errorf("%d calls, %d counted", calls.Load(), r.Outcomes["done"])
	}
}

// A call that was begun in time may end; one that hangs is cut off and reported.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Run(t.Context(), Options{Workers: 2, Duration: time.Second, Grace: 3 * time.Second, Do: func(ctx context.Context, worker int) (string, error) {
			if worker == 0 {
				return "slow", taking(ctx, 1700*time.Millisecond)
			}
			return "never", taking(ctx, time.Hour)
		}})
		if r.Outcomes["slow"] != 1 || r.Unfinished != 1 || r.Errors != 0 || r.Elapsed != 4*time.Second {
			t.Errorf("outcomes %v, %d unfinished, %d errors, took %v", r.Outcomes, r.Unfinished, r.Errors, r.Elapsed)
		}
	})
}

func TestContextEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		r := Run(ctx, Options{Duration: time.Hour, Do: func(ctx context.Context, _ int) (string, error) {
			return "done", taking(ctx, 100*time.Millisecond)
		}})
		if r.Elapsed != 250*time.Millisecond || r.Answered != 2 || r.Unfinished != 1 {
			t.Errorf("took %v, %d answered, %d unfinished", r.Elapsed, r.Answered, r.Unfinished)
		}
	})
}

// Errors are counted, rested after, and remembered within bounds.
func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r := Run(t.Context(), Options{Duration: 995 * time.Millisecond, Do: func(context.Context, int) (string, error) {
			n++
			return "", errors.New(strings.Repeat("x", 1000*(n%2)) + fmt.Sprint(n/4))
		}})
		if r.Errors != 100 || r.Answered != 0 || r.Latency.Count() != 0 {
			t.Errorf("%d errors, %d answered", r.Errors, r.Answered)
		}
		if len(r.Texts) != maxTexts || len(r.Texts[0]) != maxText || r.Texts[1] != "0" {
			t.Errorf("texts %.40q", r.Texts)
		}
	})
}

func TestOutcomesAreBounded(t *testing.T) {
	var n atomic.Int64
	r := Run(t.Context(), Options{Workers: 2, Count: 1000, Do: func(context.Context, int) (string, error) {
		return fmt.Sprint(n.Add(1)), nil
	}})
	if len(r.Outcomes) > maxOutcomes+1 || r.Outcomes[Other] < 1000-maxOutcomes || r.Answered != 1000 {
		t.Errorf("%d outcomes, %d others, %d answered", len(r.Outcomes), r.Outcomes[Other], r.Answered)
	}
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []Snapshot
		Run(t.Context(), Options{Duration: time.Second + time.Millisecond, Progress: func(s Snapshot) { seen = append(seen, s) }, Do: func(ctx context.Context, _ int) (string, error) {
			return "", taking(ctx, 30*time.Millisecond)
		}})
		if len(seen) < 10 {
			t.Fatalf("told %d times", len(seen))
		}
		if s := seen[4]; s.Elapsed != 500*time.Millisecond || s.Done != 16 || s.Part < 0.49 || s.Part > 0.5 {
			t.Errorf("in the middle %+v", s)
		}
		if s := seen[len(seen)-1]; s.Part != 1 || s.Done != 34 {
			t.Errorf("at the end %+v", s)
		}
	})
}
