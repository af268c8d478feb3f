package engine

import (
	"context"
	"hash/maphash"
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/order"
	"github.com/weirhq/weir/rule"
)

// Requests that wait for a place stand in lines: one for each client of a rule and, if the rule
// has shares, for each priority, so that the less important ones hold up no others. Only the first of
// a line asks the store. It is told of places that this engine gives back; to find those that
// others give back, or that expire, it asks again from time to time.

// While it waits, the first of a line asks again after half of the time for which it has been
// the first, within these bounds.
const (
	minAskAgain = 10 * time.Millisecond
	maxAskAgain = 500 * time.Millisecond
)

// waitingLine identifies the line of a place: rule and client, and the priority of requests that leave
// places for others.
type waitingLine struct {
	rule     string
	client   uint64 // a hash of the key
	priority rule.Priority
}

func (e *Engine) waitingLine(r *Result) waitingLine {
	return waitingLine{r.Rule.ID, e.hash(r.Key), r.priority}
}

// hash is a number for a client that is known to this process only.
func (e *Engine) hash(key string) uint64 { return maphash.String(e.hashSeed, key) }

// waits reports whether a request can wait for this place.
func (r *Result) waits() bool { return r.isPlace() && r.Rule.Wait.UpTo > 0 && !r.Shadow }

// wake tells those who wait that places were given back.
func (e *Engine) wake(ops []weir.Op) {
	if e.lines.Callers() == 0 {
		return
	}
	for i := range ops {
		e.wakeLines(waitingLine{rule: ops[i].Limit.Limit().Name, client: e.hash(ops[i].Key)})
	}
}

// wakeHeld is wake for places of a hold that has ended, if this process has reserved it.
func (e *Engine) wakeHeld(parts []weir.SettledPart) {
	if e.lines.Callers() == 0 {
		return
	}
	for i := range parts {
		if t := parseTag(parts[i].Tag); t.client != 0 {
			e.wakeLines(waitingLine{rule: t.rule, client: t.client})
		}
	}
}

// wakeLines wakes the requests of all priorities. What is free for one may not be for another.
func (e *Engine) wakeLines(l waitingLine) {
	for l.priority = 0; l.priority < rule.Critical; l.priority++ {
		e.lines.Wake(l)
	}
}

// wakeAll is wake for all places of a verdict.
func (e *Engine) wakeAll(v *Verdict) {
	for i := range v.Results {
		if r := &v.Results[i]; r.waits() {
			e.wakeLines(e.waitingLine(r))
		}
	}
}

// charge does what the engine's does. But a request that would be denied, and only because there
// is no place, waits for one if the rule says so.
func (g *Gate) charge(ctx context.Context, in *installed, v *Verdict) error {
	if g.sheds(v) {
		return nil
	}
	if v.waitUpTo == 0 {
		return g.engine.charge(g.engine.staying(ctx, v), in, v)
	}
	w := waiter{gate: g, engine: g.engine, in: in, v: v}
	err := w.run(ctx)
	if err != nil {
		v.clear() // of what was said while it waited
	}
	return err
}

// chargeNow is charge without waiting.
func (g *Gate) chargeNow(ctx context.Context, in *installed, v *Verdict) error {
	if g.sheds(v) {
		return nil
	}
	return g.engine.charge(ctx, in, v)
}

// waiter is a request that may have to wait.
type waiter struct {
	gate   *Gate
	engine *Engine
	in     *installed
	v      *Verdict
	turn   *order.Turn[waitingLine] // nil as long as it need not wait
}

func (w *waiter) run(ctx context.Context) error {
	at := w.earlier()
	if at != nil {
		if done, err := w.look(ctx); done {
			return err
		}
	} else {
		if done, err := w.ask(ctx); done {
			return err
		}
		at, _ = w.denials()
	}
	defer w.gate.delayed.Add(-1)
	if w.gate.delayed.Add(1) > w.gate.most {
		return w.deny(ctx, at)
	}
	defer func() {
		if w.turn != nil {
			w.turn.End()
		}
	}()
	patient, cancel := context.WithTimeout(ctx, min(w.v.waitUpTo, w.gate.patienceLeft(ctx)))
	defer cancel()
	return w.wait(ctx, patient, at)
}

// wait stands in line for a place, and then maybe for another, until the request is decided or
// its patience ends.
func (w *waiter) wait(ctx, patient context.Context, at *Result) error {
	for w.stand(at) {
		if w.turn.Await(patient) != nil {
			if err := ctx.Err(); err != nil {
				return err
			}
			if done, err := w.look(ctx); done {
				return err
			}
			break
		}
		next, err := w.first(ctx, patient, at)
		if next == nil {
			return err
		}
		at = next
	}
	return w.deny(ctx, at)
}

// stand stands in the line of a place, unless that is full.
func (w *waiter) stand(at *Result) bool {
	l, most := w.engine.waitingLine(at), at.Rule.Wait.Most()
	if w.turn != nil {
		return w.turn.Move(l, most)
	}
	w.turn = w.engine.lines.Enter(l, most)
	return w.turn != nil
}

// first asks for a place, as the first of its line. It returns another place for which the request
// has to wait; nil if it is decided.
func (w *waiter) first(ctx, patient context.Context, at *Result) (*Result, error) {
	for begin := time.Now(); ; {
		w.v.began = w.engine.elapsed()
		if other := w.earlier(); other != nil {
			return other, nil
		}
		if done, err := w.ask(ctx); done {
			return nil, err
		}
		if other, _ := w.denials(); other != at {
			return other, nil
		}
		if w.pause(patient, time.Since(begin), at.RetryAfter) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w.v.began = w.engine.elapsed()
		return nil, w.charge(ctx) // as if it had come now
	}
}

// pause reports whether to ask again before the patience ends.
func (w *waiter) pause(patient context.Context, first, expires time.Duration) bool {
	again := min(max(first/2, minAskAgain), maxAskAgain)
	again = again*3/4 + rand.N(again/2) // instances do not ask at the same time
	if expires > 0 {
		again = min(again, expires)
	}
	timer := time.NewTimer(again)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.turn.Woken():
		return true
	case <-patient.Done():
		return false
	}
}

// ask tries to charge the request, and reports whether it is decided: it is not if a place would
// help.
func (w *waiter) ask(ctx context.Context) (done bool, err error) {
	if w.v.counts { // a denial would be counted
		if done, err := w.look(ctx); done {
			return true, err
		}
		if place, _ := w.denials(); place != nil {
			return false, nil
		}
		return true, w.charge(ctx)
	}
	ctx = w.engine.staying(ctx, w.v)
	deadline := w.engine.deadline()
	if err := w.engine.takeResults(ctx, w.engine.elapsed(), w.v, enforced, w.v.inGroup(enforced)); err != nil {
		return true, w.engine.degrade(ctx, deadline, w.in, w.v, err)
	}
	if place, others := w.denials(); place != nil && !others {
		return false, nil
	}
	return true, w.engine.concludeCharge(ctx, deadline, w.in, w.v)
}

// charge charges the request, or denies it.
func (w *waiter) charge(ctx context.Context) error {
	return w.engine.charge(w.engine.staying(ctx, w.v), w.in, w.v)
}

// look finds out whether a place would help, and decides the request if not.
func (w *waiter) look(ctx context.Context) (done bool, err error) {
	deadline := w.engine.deadline()
	err = w.engine.peekResults(ctx, w.v, w.v.inGroup(enforced))
	if err != nil && w.v.failed == nil {
		return true, w.engine.degrade(ctx, deadline, w.in, w.v, err)
	}
	if _, others := w.denials(); !others && err == nil {
		return false, nil
	}
	return true, w.charge(ctx) // if parts of the store do not answer, too: the others are to be charged
}

// deny denies a request that cannot wait any longer, by what the store has said last. It takes no
// place, because others wait for one.
func (w *waiter) deny(ctx context.Context, at *Result) error {
	if w.v.counts {
		return w.charge(ctx)
	}
	if place, _ := w.denials(); place == nil { // there is one, which the first of the line is about to take
		at.Allowed, at.Remaining, at.RetryAfter = false, 0, time.Second
	}
	return w.engine.concludeCharge(ctx, w.engine.deadline(), w.in, w.v)
}

// denials returns a place that denies the request, that of its line if it does, and whether
// anything else denies it, too.
func (w *waiter) denials() (place *Result, others bool) {
	for i := range w.v.inGroup(enforced) {
		switch r := &w.v.Results[i]; {
		case r.Allowed:
		case !r.waits() || r.RetryAfter == weir.Never:
			others = true
		case place == nil || w.turn != nil && w.engine.waitingLine(r) == w.turn.Key():
			place = r
		}
	}
	return place, others
}

// earlier returns a place for which others wait who came before.
func (w *waiter) earlier() *Result {
	for i := range w.v.inGroup(enforced) {
		r := &w.v.Results[i]
		switch {
		case !r.waits():
		case w.turn == nil && w.engine.lines.Taken(w.engine.waitingLine(r)):
			return r
		case w.turn != nil && w.engine.waitingLine(r) != w.turn.Key() && w.turn.IsAhead(w.engine.waitingLine(r)):
			return r
		}
	}
	return nil
}
