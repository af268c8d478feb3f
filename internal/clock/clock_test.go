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

func TestFollowsAWallClockThatIsSet(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var set time.Duration
			wall := func() time.Time { return time.Now().Add(set) }
			c := newClock(wall)
			set = step
			time.Sleep(resync / 2)
			if got, want := c.Now(), time.Now().UnixMicro(); got != want {
				t.Fatalf("before the comparison Now() = %d, want the old time %d", got, want)
			}
			time.Sleep(resync)
			if got, want := c.Now(), wall().UnixMicro(); got != want {
				t.Fatalf("after a step of %v Now() = %d, want %d", step, got, want)
			}
		})
	}
}

func TestLeavesJitterAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := time.Duration(0)
		c := newClock(func() time.Time { return time.Now().Add(set) })
		set = -tolerance * time.Microsecond
		time.Sleep(2 * resync)
		if got, want := c.Now(), time.Now().UnixMicro(); got != want {
			t.Fatalf("Now() = %d, want %d", got, want)
		}
	})
}
