package adaptive

import (
	"context"
	"errors"
	"fmt"
)

// MaxLimit is the highest limit.
const MaxLimit = 1_000_000

// Bounds are between what a limit adapts. The zero value is no limit.
type Bounds struct{ Min, Max int }

// Check says what is wrong with bounds, and how to correct it.
func (b Bounds) Check() error {
	switch {
	case b == Bounds{}:
	case b.Min < 1:
		return fmt.Errorf("the minimum is %d; it must be at least 1, for example 5", b.Min)
	case b.Max < b.Min:
		return fmt.Errorf("the maximum, %d, is less than the minimum, %d; write for example %d", b.Max, b.Min, max(1000, b.Min))
	case b.Max > MaxLimit:
		return fmt.Errorf("the maximum is %d; it must be at most %d, for example 1000", b.Max, MaxLimit)
	}
	return nil
}

// Limiter returns a limiter within the bounds, or nil without bounds.
func (b Bounds) Limiter() *Limiter {
	if b == (Bounds{}) {
		return nil
	}
	return New(b.Min, b.Max)
}

// OutcomeOf is that of a request over HTTP with this context: of one whose client has left, of one
// that has ended with a status, or of one whose response was torn. A deadline that has passed is no
// response in time.
func OutcomeOf(ctx context.Context, ended bool, status int) Outcome {
	switch err := ctx.Err(); {
	case errors.Is(err, context.Canceled):
		return Ignored
	case err != nil, !ended, status == 502, status == 503, status == 504:
		return Failure
	}
	return Success
}
