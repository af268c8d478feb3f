package clock

import (
	"testing"
	"time"
)

func TestUntilWhole(t *testing.T) {
	for _, c := range []struct {
		at       time.Duration // of the day
		d, until time.Duration
	}{
		{0, time.Second, time.Second},
		{300 * time.Millisecond, time.Second, 700 * time.Millisecond},
		{300 * time.Millisecond, 250 * time.Millisecond, 200 * time.Millisecond},
		{time.Second - time.Microsecond, time.Second, time.Millisecond},
		{7 * time.Second, 5 * time.Second, 3 * time.Second},
	} {
		now := time.Date(2026, 7, 14, 0, 0, 0, 0, time.UTC).Add(c.at)
		if got := UntilWhole(now, c.d); got != c.until {
			t.Errorf("%s after midnight, %s until the next %s; expected %s", c.at, got, c.d, c.until)
		}
	}
}
