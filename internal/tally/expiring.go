package tally

import (
	"sync"
	"time"
)

// Expiring is a number of things that end at a known time, or earlier. The beginning and the
// early end of a thing may be counted by different processes: one adds 1 until the known time,
// the other adds -1 until the same time. The sum of all processes is right at every moment, and
// no process keeps anything after that time, whatever became of the others.
//
// The zero value has none. It is safe for concurrent use.
type Expiring struct {
	mu   sync.Mutex
	n    int64
	due  map[int64]int64 // how many end, by the Unix second, rounded up
	last time.Time       // up to which area is known
	area time.Duration
}

// Add counts n more things from now until a time; n can be negative.
func (c *Expiring) Add(n int64, now, until time.Time) {
	second := until.Unix()
	if until.Nanosecond() > 0 {
		second++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passLocked(now)
	if second <= c.last.Unix() {
		return // it has ended
	}
	c.n += n
	if c.due == nil {
		c.due = map[int64]int64{}
	}
	if c.due[second] += n; c.due[second] == 0 {
		delete(c.due, second)
	}
}

// Take returns how many there are now, and the sum of the time that each was there since the
// last call.
func (c *Expiring) Take(now time.Time) (n int64, area time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passLocked(now)
	area, c.area = c.area, 0
	return c.n, area
}

// passLocked lets the time pass. A clock that was set back stands still.
func (c *Expiring) passLocked(now time.Time) {
	if !now.After(c.last) {
		return
	}
	if c.n != 0 || len(c.due) > 0 {
		c.area += time.Duration(c.n) * now.Sub(c.last)
		if now.Unix() > c.last.Unix() { // things end at whole seconds
			c.endLocked(now)
		}
	}
	c.last = now
}

func (c *Expiring) endLocked(now time.Time) {
	for second, n := range c.due {
		if over := now.Sub(time.Unix(second, 0)); over >= 0 {
			c.n -= n
			c.area -= time.Duration(n) * over
			delete(c.due, second)
		}
	}
}
