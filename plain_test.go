package weir_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/memory"
)

func TestMicros(t *testing.T) {
	at := time.Date(2026, 3, 14, 15, 9, 26, 535_897_932, time.FixedZone("", 3600))
	m := weir.MicrosOf(at)
	if got := m.Time(); !got.Equal(at.Truncate(time.Microsecond)) || got.Location() != time.UTC {
		t.Errorf("%v became %v", at, got)
	}
	if later := m.Add(time.Hour + 999*time.Nanosecond); later.Sub(m) != time.Hour {
		t.Errorf("an hour later is %v later", later.Sub(m))
	}
}

func TestPer(t *testing.T) {
	for got, want := range map[weir.Limit]string{
		weir.PerSecond(5): "5/1s", weir.PerMinute(5): "5/1m", weir.PerHour(5): "5/1h", weir.PerDay(5): "5/1d",
	} {
		if got != weir.MustParseLimit(want) {
			t.Errorf("%v, want %s", got, want)
		}
	}
	if weir.PerMinute(0).Validate() == nil {
		t.Error("a limit of 0 units is valid")
	}
}

// limited is a limiter that has been asked for some units already.
func limited(t *testing.T, limit string, store weir.Store, used int64) *weir.Limiter {
	t.Helper()
	l, err := weir.NewLimiter(store, weir.MustParseLimit(limit))
	if err != nil {
		t.Fatal(err)
	}
	if used > 0 {
		if d, err := l.Take(t.Context(), "alice", used); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	return l
}

func still() *memory.Store {
	return memory.New(memory.Options{Clock: func() weir.Micros { return 1_000_000_000 }})
}

func TestTakeUpTo(t *testing.T) {
	for _, limit := range []string{"10/1m", "fixed_window 10/1m", "sliding_log 10/1m", "sliding_log 10/1m count_denied"} {
		l := limited(t, limit, still(), 4)
		for _, c := range []struct{ ask, want, left int64 }{{2, 2, 4}, {9, 4, 0}, {1, 0, 0}, {5, 0, 0}} {
			taken, d, err := l.TakeUpTo(t.Context(), "alice", c.ask)
			if err != nil || taken != c.want || d.Allowed != (taken > 0) || d.Remaining != c.left {
				t.Errorf("%s: %d of %d, %+v, %v; want %d", limit, taken, c.ask, d, err, c.want)
			}
			if taken == 0 && d.RetryAfter <= 0 {
				t.Errorf("%s: a denial without a time to come back: %+v", limit, d)
			}
		}
	}
	if _, _, err := limited(t, "10/1m", still(), 0).TakeUpTo(t.Context(), "alice", 0); err == nil {
		t.Error("nothing at all could be taken")
	}
}

// eager is a store on which somebody else is quicker, a few times.
type eager struct {
	*memory.Store
	times int
	limit *weir.Compiled
}

func (e *eager) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if e.times > 0 {
		e.times--
		if _, err := e.Store.Take(ctx, nil, weir.Op{Key: ops[0].Key, Limit: e.limit, Cost: 2}); err != nil {
			return dst, err
		}
	}
	return e.Store.Take(ctx, dst, ops...)
}

func TestTakeUpToWhatOthersLeave(t *testing.T) {
	store := &eager{Store: still(), times: 3, limit: weir.MustCompile("10/1m")}
	taken, d, err := limited(t, "10/1m", store, 0).TakeUpTo(t.Context(), "alice", 10)
	if err != nil || taken != 4 || d.Remaining != 0 {
		t.Errorf("took %d of the 4 that others left: %+v, %v", taken, d, err)
	}
}

func TestTakeAll(t *testing.T) {
	store, few, many := still(), weir.MustCompile("1/1m"), weir.MustCompile("5/1h")
	ops := []weir.Op{{Key: "alice", Limit: few, Cost: 1}, {Key: "alice", Limit: many, Cost: 1}}
	for i, want := range []bool{true, false} {
		ok, decisions, err := weir.TakeAll(t.Context(), store, ops...)
		if err != nil || ok != want || len(decisions) != 2 || decisions[1].Remaining != 4 {
			t.Errorf("request %d: %v, %+v, %v", i, ok, decisions, err)
		}
	}
	if ok, _, err := weir.TakeAll(t.Context(), store, weir.Op{}); ok || err == nil {
		t.Errorf("an op without a key: %v, %v", ok, err)
	}
	// The plain form costs the slice that it returns. The ops are the caller's.
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { _, _, _ = weir.TakeAll(ctx, store, ops...) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
