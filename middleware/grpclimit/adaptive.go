package grpclimit

import (
	"context"

	"google.golang.org/grpc/status"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/adaptive"
	"github.com/weirhq/weir/internal/priority"
	"github.com/weirhq/weir/rule"
)

// Adaptive is a limit of the calls in flight. It adapts between Min and Max to how many calls
// the handlers can answer at the same time. Further calls get Unavailable, first those of low
// priority. Only calls that the rules allow count, so denied ones are charged nevertheless. A
// stream counts until its handler has returned.
type Adaptive struct{ Min, Max int }

// AdaptiveLimit returns the state of Options.Adaptive. Observers of the engine that are an
// [engine.AdaptiveObserver], such as metrics, show it, too.
func (l *Limiter) AdaptiveLimit() engine.AdaptiveLimit { return l.front.AdaptiveLimit() }

// Protection returns the state of Options.Protect. Observers of the engine that are an
// [engine.ProtectionObserver], such as metrics, show it, too.
func (l *Limiter) Protection() engine.Protection { return l.front.Gate.Protection() }

// within calls a handler if there is a place for a call of this priority.
func (l *Limiter) within(ctx context.Context, method string, p rule.Priority, handler func() error) (err error) {
	if l.front.Adaptive == nil {
		return handler()
	}
	if !l.front.Adaptive.Acquire(l.front.Now(), priority.Class(p-rule.Low)) {
		return l.shed(ctx, method)
	}
	ended := false
	defer func() {
		o := adaptive.OutcomeOf(ctx, ended, httpStatus(status.Code(err)))
		l.front.Adaptive.Release(l.front.Now(), o)
	}()
	err = handler()
	ended = true
	return err
}

// shed ends a call for which there is no place.
func (l *Limiter) shed(ctx context.Context, method string) error {
	d := translate(engine.DescribeOverload(new(engine.Verdict)))
	if l.options.Deny != nil {
		if err := l.options.Deny(ctx, method, d); err != nil {
			return err
		}
	}
	return d.Err()
}
