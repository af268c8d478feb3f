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

// staying returns a context that does not end before the store has answered, if what a request
// takes is to be given back: of a client that leaves meanwhile, nobody would know what it has taken, and a
// place or a hold would be missing for others until it expires. The timeout of the store still counts.
func (e *Engine) staying(ctx context.Context, v *Verdict) context.Context {
	if e.timeout > 0 && (v.places > 0 || v.how != nil) && ctx.Err() == nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// until returns a context that ends at a deadline, if there is one.
func until(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	if deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline)
}
