package front

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
)

// The window of a calendar limit is the present period, which has ended when the next
// one has begun.
func TestWindowOfCalendars(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	month := weir.MustCompile("100/month zone Europe/Berlin")
	for _, c := range []struct {
		at   time.Time
		want time.Duration
	}{
		{time.Date(2026, 2, 28, 23, 59, 59, 0, berlin), 28 * 24 * time.Hour},
		{time.Date(2026, 3, 1, 0, 0, 0, 0, berlin), 31*24*time.Hour - time.Hour},
		{time.Date(2026, 10, 5, 0, 0, 0, 0, berlin), 31*24*time.Hour + time.Hour},
	} {
		op := weir.Op{Key: "k", Limit: month, Cost: 1}
		_, d := op.Decide(weir.State{}, nil, weir.MicrosOf(c.at))
		for _, d := range []weir.Decision{d, op.Peek(weir.State{}, nil, weir.MicrosOf(c.at))} {
			if got := window(&engine.Result{Compiled: month, Decision: d}); got != c.want {
				t.Errorf("at %v: %v, want %v", c.at, got, c.want)
			}
		}
	}
}
