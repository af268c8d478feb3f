// Package clock reads the time of day faster than time.Now, from the monotonic clock alone.
package clock

import (
	"context"
	"math/rand/v2"
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
	read   func(start time.Time) (wall int64, since time.Duration)
	offset atomic.Int64 // epoch microseconds at start, as known now
	check  atomic.Int64 // nanoseconds since start at which to compare again
}

// New returns a clock that agrees with time.Now.
func New() *Clock { return newClock(readBoth) }

// readBoth reads the two clocks at one instant: apart, a pause between them would
// look like a step.
func readBoth(start time.Time) (wall int64, since time.Duration) {
	now := time.Now()
	return now.UnixMicro(), now.Sub(start)
}

func newClock(read func(time.Time) (int64, time.Duration)) *Clock {
	c := &Clock{start: time.Now(), read: read}
	wall, since := read(c.start)
	c.offset.Store(wall - since.Microseconds())
	c.check.Store(int64(resync))
	return c
}

// Now returns the microseconds since the Unix epoch.
func (c *Clock) Now() int64 { return c.At(c.Since()) }

// Since returns the time since the clock was made, by the monotonic clock.
func (c *Clock) Since() time.Duration { return time.Since(c.start) }

// At returns what Now would have returned when Since returned this.
func (c *Clock) At(since time.Duration) int64 {
	if int64(since) >= c.check.Load() {
		c.compare()
	}
	return c.offset.Load() + since.Microseconds()
}

// compare may run in several goroutines at once, all of which are right.
func (c *Clock) compare() {
	wall, since := c.read(c.start)
	c.check.Store(int64(since + resync))
	offset := wall - since.Microseconds()
	if drift := offset - c.offset.Load(); drift > tolerance || drift < -tolerance {
		c.offset.Store(offset)
	}
}

// Sleep waits for so long, or until the context ends, whose error it returns then.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// UntilWhole returns how long it takes from an instant until the next multiple of a
// length of time. What is done regularly is done then, so that a process with nothing
// else to do wakes up once for all of it.
func UntilWhole(now time.Time, d time.Duration) time.Duration {
	return max(d-time.Duration(now.UnixNano())%d, time.Millisecond)
}

// Jitter is a length of time, give or take a fifth: who was started together should not ask
// together.
func Jitter(d time.Duration) time.Duration { return d - d/5 + rand.N(2*d/5+1) }
