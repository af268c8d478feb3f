package clock

import (
	"context"
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
