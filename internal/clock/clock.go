// Package clock reads the time of day at the price of one clock, not two.
package clock

import (
	"sync/atomic"
	"time"
)

// resync is how long the monotonic clock is trusted before it is compared with
// the wall clock again. Only steps of the wall clock and a suspended machine
// make them differ, so a second is often enough.
const resync = time.Second

// tolerance is the difference, in microseconds, that is left alone: reading two
// clocks one after the other never agrees to the last microsecond.
const tolerance = 1000

// Clock tells microseconds since the Unix epoch. It reads the monotonic clock
// alone, which is half the price of time.Now, and follows the wall clock when
// that is set: within a second, and backwards too.
type Clock struct {
	start  time.Time
	wall   func() time.Time
	offset atomic.Int64 // epoch microseconds at start, as known now
	check  atomic.Int64 // nanoseconds since start at which to compare again
}

// New returns a clock that agrees with time.Now.
func New() *Clock { return newClock(time.Now) }

func newClock(wall func() time.Time) *Clock {
	now := wall()
	c := &Clock{start: time.Now(), wall: wall}
	c.offset.Store(now.UnixMicro())
	c.check.Store(int64(resync))
	return c
}

// Now returns the microseconds since the Unix epoch.
func (c *Clock) Now() int64 {
	since := time.Since(c.start)
	if int64(since) >= c.check.Load() {
		c.compare(since)
	}
	return c.offset.Load() + since.Microseconds()
}

// compare may run in several goroutines at once: they all find the same.
func (c *Clock) compare(since time.Duration) {
	c.check.Store(int64(since + resync))
	offset := c.wall().UnixMicro() - since.Microseconds()
	if drift := offset - c.offset.Load(); drift > tolerance || drift < -tolerance {
		c.offset.Store(offset)
	}
}
