package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirhq/weir"
)

// charge takes everything that the enforced rules want, or nothing, and then, if the
// request passes, what the shadow rules want.
func (e *Engine) charge(ctx context.Context, in *installed, v *Verdict) error {
	now := v.began
	if !e.isQuick { // it may have waited for the store
		now = e.elapsed()
	}
	return e.chargeSince(ctx, now, in, v)
}

// chargeNow does so for a request that has not waited since it began.
func (e *Engine) chargeNow(ctx context.Context, in *installed, v *Verdict) error {
	return e.chargeSince(ctx, v.began, in, v)
}

func (e *Engine) chargeSince(ctx context.Context, began time.Duration, in *installed, v *Verdict) error {
	if results := v.inGroup(enforced); len(results) > 0 {
		if err := e.takeResults(ctx, began, v, enforced, results); err != nil {
			return e.degrade(ctx, e.deadlineSince(began), in, v, err)
		}
	}
	var deadline time.Time
	if v.countsLater || v.penalties > 0 || v.warns || v.upTo[enforced] < len(v.Results) { // there may be more calls
		deadline = e.deadlineSince(began)
	}
	return e.concludeCharge(ctx, deadline, in, v)
}

// concludeCharge does what follows from what the store has said of the enforced rules.
func (e *Engine) concludeCharge(ctx context.Context, deadline time.Time, in *installed, v *Verdict) error {
	rest := ctx
	e.countDenied(ctx, deadline, in, v)
	e.rememberUsage(v.inGroup(enforced))
	e.startPenalties(ctx, deadline, in, v)
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

// takeResults charges some results as the verdict says: all or none, with a hold, or always. If parts of the
// store do not answer, those of the enforced results that are elsewhere are decided nevertheless. The clock was read just before, by
// which a store in this process decides; for others than enforced results, when the request began.
func (e *Engine) takeResults(ctx context.Context, read time.Duration, v *Verdict, g group, results []Result) (err error) {
	ops := v.opsOf(results)
	v.failed = nil
	switch {
	case v.charging.holds(results):
		v.decisions, err = e.reserveResults(ctx, v, g, results, ops)
		if errors.Is(err, weir.ErrHoldsFull) {
			v.charging.way, v.Unheld = plain, v.Hold == (weir.HoldID{})
			return e.takeResults(ctx, e.elapsed(), v, g, results) // as a check, after many calls perhaps
		}
	case e.partial != nil && g == enforced:
		v.decisions, v.failed, err = e.takePartialAt(ctx, read, v.decisions[:0], ops...)
	default:
		v.decisions, err = e.takeAt(ctx, read, v.decisions[:0], ops...)
	}
	if err == nil {
		err = v.record(results)
		e.endOutages(results)
	}
	return err
}

// peek finds out what charge would decide.
func (e *Engine) peek(ctx context.Context, in *installed, v *Verdict) error {
	v.charging.way = peeked
	if len(v.Results) > 0 {
		if err := e.peekResults(ctx, v, v.Results); err != nil {
			return e.degrade(ctx, e.deadline(), in, v, err)
		}
	}
	v.conclude()
	v.hearSoft()
	return nil
}

// askStore is Take or Peek of a store.
type askStore func(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error)

// peekResults finds out what the store says of the first results, and charges nothing. If parts of the store do
// not answer, the results that are elsewhere are decided nevertheless.
func (e *Engine) peekResults(ctx context.Context, v *Verdict, results []Result) error {
	peek := e.store.Peek
	if e.partial != nil {
		peek = func(ctx context.Context, dst []weir.Decision, ops ...weir.Op) (_ []weir.Decision, err error) {
			dst, v.failed, err = e.partial.PeekPartial(ctx, dst, ops...)
			return dst, err
		}
	}
	return e.askResults(ctx, peek, v, results, v.opsOf(results))
}

// askResults puts what a store says of some ops into their results.
func (e *Engine) askResults(ctx context.Context, store askStore, v *Verdict, results []Result, ops []weir.Op) error {
	var err error
	v.failed = nil
	if v.decisions, err = store(ctx, v.decisions[:0], ops...); err != nil {
		return err
	}
	return v.record(results)
}

// opsOf makes the ops of results, from one on.
func (v *Verdict) opsOf(results []Result) []weir.Op {
	v.ops = slices.Grow(v.ops[:0], len(results))[:len(results)]
	for i := range results {
		r, op := &results[i], &v.ops[i]
		r.fillOp(op, r.Compiled, &v.charging)
	}
	return v.ops
}

// fillOp makes the op that asks a limit for what the result is about. It writes each field in its
// place, because the processor waits when it copies what it has just written.
func (r *Result) fillOp(op *weir.Op, limit *weir.Compiled, how *charging) {
	op.Key, op.Limit, op.Cost, op.Leave, op.Look = r.Key, limit, r.Cost, r.Leave, r.Look
	op.Always, op.Final = how.way == always, how.isFinal(r)
	op.MaxDelay, op.Receipt = 0, 0
	if r.Look {
		op.Cost, op.Leave, op.Always = 1, 0, false
	}
}

// record takes over what a store has decided. The error is that of a result that it could not decide, or
// of the hold. That it could not decide a shadow is no news.
func (v *Verdict) record(results []Result) (err error) {
	if len(v.failed) > len(results) {
		err = v.failed[len(results)]
	}
	for i := range results {
		if v.failed != nil && v.failed[i] != nil {
			if !results[i].Shadow {
				err = v.failed[i]
			}
			continue
		}
		results[i].Decision, results[i].Asked = v.decisions[i], true
	}
	return err
}

// chargeShadows charges the shadow rules of a request that is allowed; of one that is
// denied, those that count such, and the others are only looked at.
func (e *Engine) chargeShadows(ctx context.Context, v *Verdict) error {
	if v.Degraded != nil {
		return nil
	}
	if !v.Allowed && !v.isAlways() {
		v.charging.way = plain // there is no hold on what is denied
	}
	var quiet error
	if shadows := v.inGroup(shadow); len(shadows) > 0 {
		quiet = e.chargeQuietShadows(ctx, v, shadows)
	}
	counting := v.inGroup(countingShadow)
	if len(counting) == 0 || ctx.Err() != nil {
		return quiet
	}
	for i := range counting {
		r := &counting[i]
		r.Look = r.Look || v.isDeniedBefore(r)
	}
	// Each is charged whatever the others say.
	return errors.Join(quiet, e.takeResults(ctx, v.began, v, countingShadow, counting))
}

// chargeQuietShadows charges shadow rules that do not count denied requests. As a rule
// they all allow, and are one call. What one of them would deny costs the others nothing:
// they are charged again without it.
func (e *Engine) chargeQuietShadows(ctx context.Context, v *Verdict, shadows []Result) error {
	if !v.Allowed && !v.isAlways() {
		return e.askResults(ctx, e.store.Peek, v, shadows, v.opsOf(shadows))
	}
	err := e.takeResults(ctx, v.began, v, shadow, shadows)
	for err == nil && !v.isAlways() && !weir.Allowed(v.decisions) {
		at := passing(shadows)
		if len(at) == 0 {
			break
		}
		left := make([]Result, len(at))
		for i, from := range at {
			left[i] = shadows[from]
		}
		err = e.takeResults(ctx, v.began, v, shadow, left)
		for i, from := range at {
			shadows[from] = left[i]
		}
	}
	return err
}

// passing are the places of results whose rules have not denied.
func passing(results []Result) (at []int) {
	for i := 0; i < len(results); {
		n, pass := i, true
		for ; n < len(results) && results[n].Rule == results[i].Rule && results[n].Demand == results[i].Demand; n++ {
			pass = pass && results[n].Allowed
		}
		for ; i < n; i++ {
			if pass {
				at = append(at, i)
			}
		}
	}
	return at
}

// A store that waits for another machine may have a timeout. Whatever an engine asks it for
// one request then takes no longer than one call. The first call needs no deadline for that.

// deadline returns when a request that begins now must be answered; zero if at any time.
func (e *Engine) deadline() (t time.Time) {
	if e.timeout > 0 {
		t = time.Now().Add(e.timeout)
	}
	return t
}

// deadlineSince returns when one that has begun must be.
func (e *Engine) deadlineSince(began time.Duration) (t time.Time) {
	if e.timeout > 0 {
		t = time.Now().Add(e.timeout + began - e.elapsed())
	}
	return t
}

// staying returns a context that does not end before the store has answered, if what a request
// takes is to be given back: of a client that leaves meanwhile, nobody would know what it has taken, and a
// place or a hold would be missing for others until it expires. The timeout of the store still counts.
func (e *Engine) staying(ctx context.Context, v *Verdict) context.Context {
	if e.timeout > 0 && (v.places > 0 || v.charging.way == reserved || v.isAlways()) && ctx.Err() == nil {
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
