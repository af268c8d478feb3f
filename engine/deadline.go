package engine

import (
	"context"
	"time"
)

// A store that waits for another machine may have a timeout. Whatever an engine asks it for
// one request then takes no longer than one call. The first call needs no deadline for that.

// timeoutOf returns that of a store; 0 if it has none.
func timeoutOf(store any) time.Duration {
	if s, ok := store.(interface{ Timeout() time.Duration }); ok {
		return s.Timeout()
	}
	return 0
}

// deadline returns when a request that begins now must be answered; zero if at any time.
func (e *Engine) deadline() (t time.Time) {
	if e.timeout > 0 {
		t = time.Now().Add(e.timeout)
	}
	return t
}

// until returns a context that ends at a deadline, if there is one.
func until(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	if deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline)
}
