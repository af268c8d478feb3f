package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAgreesWithTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		for range 5 {
			if got, want := c.Now(), time.Now().UnixMicro(); got != want {
				t.Fatalf("Now() = %d, want %d", got, want)
			}
			time.Sleep(700*time.Millisecond + 3*time.Microsecond)
		}
	})
}

// shifted reads a wall clock that was set by so much.
func shifted(by *time.Duration) func(time.Time) (int64, time.Duration) {
	return func(start time.Time) (int64, time.Duration) {
		wall, since := readBoth(start)
		return wall + by.Microseconds(), since
	}
}

func TestFollowsAWallClockThatIsSet(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour, 2 * tolerance * time.Microsecond} {
		synctest.Test(t, func(t *testing.T) {
			var set time.Duration
			c := newClock(shifted(&set))
			set = step
			time.Sleep(resync / 2)
			if got, want := c.Now(), time.Now().UnixMicro(); got != want {
				t.Fatalf("before the comparison Now() = %d, want the old time %d", got, want)
			}
			time.Sleep(resync)
			if got, want := c.Now(), time.Now().Add(step).UnixMicro(); got != want {
				t.Fatalf("after a step of %v Now() = %d, want %d", step, got, want)
			}
		})
	}
}

func TestLeavesJitterAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := time.Duration(0)
		c := newClock(shifted(&set))
		set = -tolerance * time.Microsecond
		time.Sleep(2 * resync)
		if got, want := c.Now(), time.Now().UnixMicro(); got != want {
			t.Fatalf("Now() = %d, want %d", got, want)
		}
	})
}

// A goroutine that is paused on its way to the comparison does not take the
// pause for a step of the clock.
func TestPauseIsNoStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(func(start time.Time) (int64, time.Duration) {
			time.Sleep(50 * time.Millisecond)
			return readBoth(start)
		})
		time.Sleep(2 * resync)
		c.Now()
		if got, want := c.Now(), time.Now().UnixMicro(); got != want {
			t.Fatalf("Now() = %d, want %d", got, want)
		}
	})
}
