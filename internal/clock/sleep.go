package clock

import (
	"context"
	"math/rand/v2"
	"time"
)

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
