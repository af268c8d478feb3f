package engine

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir"
)

// charge takes everything that the enforced rules want, or nothing, and then, if the
// request passes, what the shadow rules want.
func (e *Engine) charge(ctx context.Context, in *installed, v *Verdict) error {
	deadline := e.deadline()
	if results := v.at(enforced); len(results) > 0 {
		if err := e.take(ctx, v, enforced, results); err != nil {
			return e.degradeCharge(ctx, deadline, in, v, err)
		}
	}
	return e.finish(ctx, deadline, in, v)
}

// finish does what follows from what the store has said of the enforced rules.
func (e *Engine) finish(ctx context.Context, deadline time.Time, in *installed, v *Verdict) error {
	rest := ctx
	e.remember(v.at(enforced))
	e.penalize(ctx, deadline, in, v)
	v.conclude()
	if v.warns || v.upTo[enforced] < len(v.Results) { // there are more calls
		var cancel context.CancelFunc
		rest, cancel = until(ctx, deadline)
		defer cancel()
	}
	// A shadow has no say: that the store could not be asked is no news. Nor is the end of the context,
	// if there is a charge already that the caller may give back.
	if err := e.chargeShadows(rest, v); err != nil && v.upTo[enforced] == 0 {
		return ctx.Err()
	}
	v.hearSoft()
	if !v.Allowed && v.places > 0 {
		e.leavePlaces(rest, v)
	}
	if v.warns {
		e.warn(rest, v)
	}
	return nil
}

// take charges some results as the verdict says: all or none, with a hold, or always. If parts of the
// store do not answer, those of the enforced results that are elsewhere are decided nevertheless.
func (e *Engine) take(ctx context.Context, v *Verdict, p place, results []Result) (err error) {
	ops := v.opsOf(results)
	v.failed = nil
	switch {
	case v.how.holds(results):
		v.decisions, err = e.hold(ctx, v, p, results, ops)
		if errors.Is(err, weir.ErrHoldsFull) {
			v.how, v.Unheld = nil, v.Hold == (weir.HoldID{})
			return e.take(ctx, v, p, results) // as a check
		}
	case e.memory != nil:
		v.decisions, err = e.memory.TakeAt(ctx, v.began, v.decisions[:0], ops...)
	case e.partial != nil && p == enforced:
		v.decisions, v.failed, err = e.partial.TakePartial(ctx, v.decisions[:0], ops...)
	default:
		v.decisions, err = e.store.Take(ctx, v.decisions[:0], ops...)
	}
	if err == nil {
		err = v.record(results)
	}
	return err
}

// look is charge for a peek.
func (e *Engine) look(ctx context.Context, in *installed, v *Verdict) error {
	v.peeked = true
	if len(v.Results) > 0 {
		if err := e.peek(ctx, v, v.Results); err != nil {
			return e.degrade(ctx, e.deadline(), in, v, err, e.local.Peek)
		}
	}
	v.conclude()
	v.hearSoft()
	return nil
}

// askStore is Take or Peek of a store.
type askStore func(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error)

// peek finds out what the store says of the first results, and charges nothing. If parts of the store do
// not answer, the results that are elsewhere are decided nevertheless.
func (e *Engine) peek(ctx context.Context, v *Verdict, results []Result) error {
	peek := e.store.Peek
	if e.partial != nil {
		peek = func(ctx context.Context, dst []weir.Decision, ops ...weir.Op) (_ []weir.Decision, err error) {
			dst, v.failed, err = e.partial.PeekPartial(ctx, dst, ops...)
			return dst, err
		}
	}
	return e.ask(ctx, peek, v, results, v.opsOf(results))
}

// ask puts what a store says of some ops into their results.
func (e *Engine) ask(ctx context.Context, store askStore, v *Verdict, results []Result, ops []weir.Op) error {
	var err error
	v.failed = nil
	if v.decisions, err = store(ctx, v.decisions[:0], ops...); err != nil {
		return err
	}
	return v.record(results)
}
