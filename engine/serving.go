package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/order"
	"github.com/weirhq/weir/rule"
)

// maxSettle is how long to try to settle, or to give back what was charged. A store has a timeout of its own, which is
// shorter, and after it the engine goes on by itself.
const maxSettle = time.Second

// Hold is what the rules have reserved for a request that is being served, and the places that
// it has of rules that limit how many requests are in flight. It does not expire before it
// ends.
type Hold struct {
	Parts []HoldPart
	few   [fewParts]HoldPart // memory for them

	engine  *Engine
	id      weir.HoldID
	ttl     time.Duration
	request *rule.Request
	begin   time.Time

	steps      []step                // further holds; guarded by mu until the hold has ended
	ending     settlement            // that of End
	others     Used                  // or nil, for rules that settle by nothing else
	upload     *upload               // or nil
	fewSettled [fewParts]SettledPart // memory for what has become of it

	places      inFlight
	counters    []PlaceCounter         // of the places
	fewCounters [fewParts]PlaceCounter // memory for them

	mu      sync.Mutex
	ended   bool // it is settled, or nothing was reserved
	left    bool // the places are free, or there are none
	kept    bool // they outlast the handler
	pending bool // it is settled when the store is available

	extension extension // of the hold, and renewal of the places; guarded by those of the engine
}

// fewParts is how many parts of a hold need no memory of their own.
const fewParts = 2

// HoldPart is what was reserved under one rule.
type HoldPart struct {
	Rule     *rule.Entry
	Reserved int64

	most    int64 // that the request may cost
	growth  growth
	used    int64         // under a rule that settles by the response; what End finds
	counted *reservations // where it is shown, if the rule counts tokens
}

// Serve returns the hold of a request that [Gate.Reserve] or [Gate.Allow] allowed, or nil if it
// has none and has taken no place. Call End when it is served; the request must not change
// until then.
func (g *Gate) Serve(req *rule.Request, ttl time.Duration, v *Verdict) *Hold {
	reserved := v.Hold != (weir.HoldID{})
	if !reserved && !v.Places() {
		return nil
	}
	h := holds.Get().(*Hold)
	h.engine, h.id, h.ttl, h.request, h.begin, h.ended = g.engine, v.Hold, v.lasts(ttl), req, time.Now(), !reserved
	if h.left = h.places.adopt(v) == 0; !h.left {
		h.observeTaken(v)
	}
	h.Parts = h.few[:0]
	for i := range v.Results {
		r := &v.Results[i]
		switch n := len(h.Parts); {
		case !r.held:
		case n == 0 || h.Parts[n-1].Rule != r.Rule:
			h.Parts = append(h.Parts, HoldPart{Rule: r.Rule, Reserved: r.Cost, most: r.most})
		default: // of another key or limit
			h.Parts[n-1].Reserved = min(h.Parts[n-1].Reserved, r.Cost)
		}
		if r.held && r.Rule.Tokens != nil {
			h.follow(&h.Parts[len(h.Parts)-1], v, r)
		}
	}
	if reserved {
		h.engine.answers.reserve(h.Parts, modelOf(req))
	}
	h.engine.extensions.schedule(h, h.begin)
	return h
}

var holds = sync.Pool{New: func() any {
	h := new(Hold)
	h.ending.used = (*served)(h)
	h.ending.byTag = h.ending.usedByTag
	return h
}}

// Free lets another request have the memory of a hold after End. The hold must not be used then, so call
// it only if no handler had its Context. A hold that the engine still needs is not freed.
func (h *Hold) Free() {
	if h.forget() {
		holds.Put(h)
	}
}

// forget forgets the request, and reports whether nobody needs the hold.
func (h *Hold) forget() bool {
	h.mu.Lock()
	needed := !h.ended || !h.left || h.places.count() > 0 || h.pending || h.extension.began
	h.mu.Unlock()
	if needed {
		return false
	}
	clear(h.Parts)
	h.Parts, h.steps, h.others, h.upload, h.request, h.engine = nil, nil, nil, nil, nil, nil
	h.fewSettled = [fewParts]SettledPart{}
	return true
}

// extend keeps the hold and the places alive, as long as the handler runs. The hold of a body that does not come
// expires, unless enough of it comes in time.
func (h *Hold) extend() {
	ctx, cancel := context.WithTimeout(context.Background(), maxSettle)
	defer cancel()
	h.places.renew(ctx, h.engine)
	h.mu.Lock()
	extends, steps := !h.ended && !h.isStalledLocked(), slices.Clone(h.steps)
	h.mu.Unlock()
	if extends {
		_, _ = h.engine.Extend(ctx, h.id, h.ttl) // if it fails, the next time may do
		for _, s := range steps {
			_, _ = h.engine.Extend(ctx, s.id, h.ttl)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.endExtensionsLocked() {
		h.engine.extensions.schedule(h, time.Now())
	}
}

// Keep lets the places stay taken after End, until leave is called, for a connection that
// outlives its handler. It returns nil if there are no places.
func (h *Hold) Keep() (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left {
		return nil
	}
	h.kept = true
	return h.leave
}

// leave gives the places back.
func (h *Hold) leave() {
	h.mu.Lock()
	first := !h.left
	if h.left = true; first {
		h.endExtensionsLocked()
	}
	h.mu.Unlock()
	if !first {
		return
	}
	ctx, cancel := h.briefly()
	defer cancel()
	h.places.leave(ctx, h.engine)
	h.observeLeft()
}

// endExtensionsLocked reports whether nothing is to be extended or renewed any more, and then sees to it.
func (h *Hold) endExtensionsLocked() bool {
	over := h.ended && h.left
	if over {
		h.engine.extensions.unschedule(h)
	}
	return over
}

// briefly returns a context for what is done at the end.
func (h *Hold) briefly() (context.Context, context.CancelFunc) {
	if h.engine.isQuick { // which never waits
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), maxSettle)
}

// End settles with what the response shows, unless the handler has settled. It sets the
// duration of the response. Rules that settle by the response do so; for others actual
// returns what was used. If actual or its result is nil, what was reserved stays charged. So it
// does with an error, which tells why the result cannot be used; see [Engine.Settle].
//
// It gives the places back, unless Keep was called.
func (h *Hold) End(resp *rule.Response, actual func(*rule.Response) Used) (err error) {
	if h.finish() {
		err = h.settle(resp, actual)
	}
	if h.places.count() == 0 {
		return err
	}
	h.mu.Lock()
	kept := h.kept
	h.mu.Unlock()
	if !kept {
		h.leave()
	}
	return err
}

func (h *Hold) settle(resp *rule.Response, actual func(*rule.Response) Used) (err error) {
	resp.Duration = time.Since(h.begin)
	if actual != nil {
		h.others = actual(resp)
		if err = h.engine.validateUsed(h.others, h.unsettled()); err != nil {
			h.others = nil
		}
	}
	h.capUsage(resp)
	// Now, because it may be settled only when the request is gone.
	for i := range h.Parts {
		if p := &h.Parts[i]; p.Rule.Settles() {
			p.used, _ = p.Rule.Actual(h.request, resp, p.Reserved) // on an error, what was reserved
			h.learn(p, resp)
			h.divide(i)
		}
	}
	ctx, cancel := h.briefly()
	defer cancel()
	s := &h.ending
	s.id, s.kind, s.until, s.foreign, s.tokens, s.answers = h.id, SettledHold, 0, false, rule.Usage{}, nil
	if resp.Tokens != nil {
		s.tokens = *resp.Tokens
	}
	// If it fails, the hold expires.
	done, _ := h.engine.settle(ctx, s, h.fewSettled[:0])
	h.settleSteps(ctx)
	h.count(&done, s.used)
	h.mu.Lock()
	h.pending = done.State == weir.HoldPending
	h.mu.Unlock()
	return err
}

// unsettled are the parts that do not settle by the response.
func (h *Hold) unsettled() (parts []SettledPart) {
	for _, p := range h.Parts {
		if !p.Rule.Settles() {
			parts = append(parts, SettledPart{Rule: p.Rule.ID, Unit: p.Rule.CostUnit()})
		}
	}
	return parts
}

// served is what was used of a hold, by what End has found.
type served Hold

// Of implements Used.
func (h *served) Of(rule, unit string, reserved int64) int64 {
	for _, p := range h.Parts {
		if p.Rule.ID == rule && p.Rule.Settles() {
			return p.used
		}
	}
	if h.others != nil {
		return h.others.Of(rule, unit, reserved)
	}
	return reserved
}

// finish ends the extensions of the hold. It reports whether it is still to be settled.
func (h *Hold) finish() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := !h.ended
	h.ended = true
	h.endExtensionsLocked()
	return first
}

// Settle ends the hold with what the handler knows better than the response shows, such as
// Units(7). It is not for rules under which nothing was reserved; see [Gate.Reserve]. A handler
// that does not call it need not do anything.
func (h *Hold) Settle(ctx context.Context, used Used) (Settled, error) {
	if err := h.engine.validateSettlement(ctx, h.id, used); err != nil {
		return Settled{}, err // End may do better
	}
	first := h.finish()
	h.settleSteps(ctx) // with nothing, because all is charged once
	done, err := h.engine.settle(ctx, &settlement{id: h.id, used: used, kind: SettledHold}, nil)
	if first {
		h.count(&done, used)
	}
	return done, err
}

type holdKey struct{}

// Context returns a context from which the handler gets its hold, if something was reserved.
func (h *Hold) Context(ctx context.Context) context.Context {
	if h.id == (weir.HoldID{}) {
		return ctx
	}
	return context.WithValue(ctx, holdKey{}, h)
}

// HoldOf returns the hold of the request that is served with this context, or nil: a request
// has one only if middleware that sees the response has reserved what it costs.
func HoldOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}

// extensions are the holds that are being served, in the order in which they have to be extended.
// They share a timer, because nearly all of them end long before their time, and a timer for each
// costs more than the hold. The timer does not keep the engine in memory.
type extensions struct {
	mu    sync.Mutex
	due   order.Heap[*extension]
	timer *time.Timer
	next  time.Time // when the timer ends; zero if it does not run
}

// extension is when a hold is extended next.
type extension struct {
	hold  *Hold
	at    time.Time
	index int32
	began bool // it was extended, or is being
}

func (e *extension) Before(other *extension) bool { return e.at.Before(other.at) }

func (e *extension) Index() *int32 { return &e.index }

// schedule extends a hold when half of its time has passed from now on.
func (x *extensions) schedule(h *Hold, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := &h.extension
	e.hold, e.at = h, now.Add(h.ttl/2)
	x.due.Push(e)
	x.wakeLocked(now)
}

// unschedule leaves a hold alone. If it is being extended, it is not there.
func (x *extensions) unschedule(h *Hold) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := &h.extension
	if int(e.index) < len(x.due) && x.due[e.index] == e {
		x.due.Remove(e)
	}
}

// wakeLocked sees to it that the timer ends no later than the first hold is due. It is not stopped
// when there is none, so that it need not be started for each.
func (x *extensions) wakeLocked(now time.Time) {
	if len(x.due) == 0 || !x.next.IsZero() && !x.due[0].at.Before(x.next) {
		return
	}
	x.next = x.due[0].at
	if after := x.next.Sub(now); x.timer == nil {
		x.timer = time.AfterFunc(after, x.extend)
	} else {
		x.timer.Reset(after)
	}
}

// extend extends the holds that are due, each by itself, because a store may take its time.
func (x *extensions) extend() {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	for len(x.due) > 0 && !x.due[0].at.After(now) {
		e := x.due[0]
		x.due.Remove(e)
		e.began = true
		go e.hold.extend()
	}
	x.next = time.Time{}
	x.wakeLocked(now)
}
