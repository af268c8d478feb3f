package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Check decides a request, charges it, and puts the answer into v. The error is a
// [rule.ValuesError] if the request counts for too many clients, a [rule.RequestError] if a
// rule cannot read it, a [PermitError] if it may not be charged, a [weir.InvalidError] if it is
// invalid for another reason, or the context's error.
//
// A place that it takes of a rule that limits how many requests are in flight is free after
// the rule's HoldTTL, or when [Engine.Refund] gives back what the request was charged.
func (e *Engine) Check(ctx context.Context, req *rule.Request, v *Verdict) error {
	return e.check(ctx, req, v, plain, e.chargeNow)
}

// Continue does what Check does, but takes no place: it is for a further part of a request
// that was allowed, and for requests that are over.
func (e *Engine) Continue(ctx context.Context, req *rule.Request, v *Verdict) error {
	return e.check(ctx, req, v, placed, e.chargeNow)
}

// CheckNew decides a request as Check does and returns a new verdict. It costs one
// allocation if no more than four limits apply.
func (e *Engine) CheckNew(ctx context.Context, req rule.Request) (*Verdict, error) {
	a := &answer{request: req}
	v := &a.verdict
	v.Results, v.hits, v.ends, v.keys = a.results[:0], a.hits[:0], a.ends[:0], a.keys[:0]
	v.ops, v.decisions = a.ops[:0], a.decisions[:0]
	return v, e.Check(ctx, &a.request, v)
}

// answer is a verdict with memory for what the usual request needs.
type answer struct {
	verdict   Verdict
	request   rule.Request
	results   [4]Result
	hits      [4]rule.Hit
	ends      [4]int
	ops       [4]weir.Op
	decisions [4]weir.Decision
	keys      [128]byte
}

// Peek returns the answer that Check would return, and charges nothing. Observers are
// not called.
func (e *Engine) Peek(ctx context.Context, req *rule.Request, v *Verdict) error {
	return e.evaluate(ctx, e.installed.Load(), req, v, peeked, e.peek)
}

// PeekWith does what Peek does, but with the rules of table instead of the rules in force.
// It uses the real usage and the overrides of clients. The version in the verdict is that
// of the rules in force.
func (e *Engine) PeekWith(ctx context.Context, table *rule.Table, req *rule.Request, v *Verdict) error {
	in := e.installed.Load()
	return e.evaluate(ctx, in.under(table, in.version, in.overrides), req, v, peeked, e.peek)
}

// Validate returns the error that Check would return for a request by the rules that apply to
// it, without asking the store. The verdict is not decided.
func (e *Engine) Validate(ctx context.Context, req *rule.Request, v *Verdict) error {
	return e.evaluate(ctx, e.installed.Load(), req, v, peeked, func(context.Context, *installed, *Verdict) error { return nil })
}

// decider decides a verdict whose results are listed.
type decider func(context.Context, *installed, *Verdict) error

// check evaluates a request and tells the observers.
func (e *Engine) check(ctx context.Context, req *rule.Request, v *Verdict, way way, decide decider) error {
	e.begin(v)
	if err := e.evaluate(ctx, e.installed.Load(), req, v, way, decide); err != nil {
		return err
	}
	v.Unheld = v.Unheld && v.Allowed
	e.observeNoHold(v)
	e.observe(req, v)
	e.observeCharged(v, 1)
	return nil
}

// evaluate finds the limits that apply to a request, and lets them be decided.
func (e *Engine) evaluate(ctx context.Context, in *installed, req *rule.Request, v *Verdict, way way, decide decider) (err error) {
	if e.spanObserver != nil {
		var end func(*Verdict, error)
		ctx, end = e.spanObserver.Begin(ctx)
		defer func() { end(v, err) }()
	}
	v.clear()
	v.Version, v.charging.way, v.Priority = in.version, way, cmp.Or(req.Priority, rule.Normal)
	if req.Priority > rule.Critical {
		return &weir.InvalidError{Field: "priority", Reason: fmt.Sprintf("%d is unknown; choose one of Low, Normal, High and Critical", req.Priority)}
	}
	if !in.loaded {
		v.Allowed, v.Degraded = true, ErrNoRules
		return nil
	}
	if len(req.Costs) > 0 {
		if err := in.table.ValidateUnits("cost", req.Costs); err != nil {
			return err
		}
	}
	blocked, unknown := in.resolve(req)
	switch {
	case in.table.Exempt(req):
		v.Allowed, v.Reason = true, Exempt
	case blocked, in.table.Blocked(req):
		v.Reason = Blocked
	case unknown && in.clients.Unread:
		v.Reason, v.Degraded = Unavailable, ErrNoClients
	case unknown:
		v.Reason = UnknownClient
	default:
		if err := e.gather(in, req, v); err != nil {
			return err
		}
		v.prioritize(req)
		if way == placed || way == reserved && v.charging.settling && !v.Settles() {
			v.charging.way = plain
		}
		err := decide(ctx, in, v)
		if in.clients != nil && in.clients.Unread {
			v.Degraded = cmp.Or(v.Degraded, ErrNoClients)
		}
		return err
	}
	return nil
}

// gather lists the limits that apply. A request that is too many clients at once, that a rule cannot read, or that has a client that it may
// not charge, is an error, but never by a shadow rule, which then does not apply. One that was denied before
// is always an error.
func (e *Engine) gather(in *installed, req *rule.Request, v *Verdict) error {
	if v.Priority = 0; len(e.spendObservers) > 0 {
		v.model = modelOf(req)
	}
	v.hits = in.table.Match(v.hits, req)
	left := len(v.hits)
	for g := enforced; g == enforced || left > 0; g++ {
		for _, hit := range v.hits {
			if groupOf(hit.Entry) != g {
				continue
			}
			left--
			if err := e.addHit(in, hit, req, v); err != nil {
				if wrong, ok := errors.AsType[*rule.RequestError](err); g == enforced || ok && wrong.Denied {
					return err
				}
			}
		}
		v.endGroup(g)
	}
	return nil
}

// addHit adds the limits of a rule for every identity that the request has under the rule:
// none if the rule does not apply.
func (e *Engine) addHit(in *installed, c rule.Hit, req *rule.Request, v *Verdict) error {
	start, first := len(v.keys), len(v.Results)
	var err error
	if v.keys, v.ends, err = c.Identities(v.keys, v.ends[:0], req); err != nil || len(v.ends) == 0 {
		return err
	}
	ask, err := e.ask(c.Entry, req)
	if err != nil {
		return err
	}
	if err := c.ValidateCost(req); err != nil {
		return err
	}
	if req.Permit != nil {
		if err := v.permit(c.ID, req, start); err != nil {
			return err
		}
	}
	_, tier := req.Client()
	for _, end := range v.ends {
		identity := v.key(start, end)
		if v.charging.way != peeked && len(c.Tiers) > 0 {
			e.rememberTier(identity, tier)
		}
		if len(req.Batch) == 0 || !v.addCost(first, identity, ask.Most) {
			v.addIdentity(in, c.Entry, req, identity, tier, &ask)
		}
		start = end
	}
	return nil
}

// ask is what a request asks for under a rule. Only what language models use can be more than is reserved.
func (e *Engine) ask(c *rule.Entry, req *rule.Request) (rule.Ask, error) {
	if c.Tokens != nil && req.Prompt != nil {
		return c.Ask(req.Prompt, e.answers.expected(c, req.Prompt.Model))
	}
	cost, err := c.Estimate(req)
	return rule.Ask{Prompt: cost, Reserved: cost, Most: cost}, err
}

// addCost adds the cost of another message of a request to the limits that a rule has for the same identity, from one
// result on. It reports whether there are any. The request still takes one place.
func (v *Verdict) addCost(from int, identity string, cost int64) (found bool) {
	for i := from; i < len(v.Results); i++ {
		r := &v.Results[i]
		if found = found || r.Key == identity; r.Key == identity && !r.isPlace() && !r.isPenalty {
			r.Cost = min(r.Cost+cost, weir.MaxUnits)
		}
	}
	return found
}

// key is a key that the rules have found. Its bytes never change: when the buffer grows, the old one
// stays for who still points to it.
func (v *Verdict) key(start, end int) string {
	return unsafe.String(unsafe.SliceData(v.keys[start:end]), end-start)
}

// permit is an error if the request may not be charged under a rule, for one of the
// identities from start on.
func (v *Verdict) permit(id string, req *rule.Request, start int) error {
	for _, end := range v.ends {
		if key := v.key(start, end); !req.Permit(id, key) {
			return &PermitError{Rule: id, Key: strings.Clone(key)}
		}
		start = end
	}
	return nil
}

// PermitError reports that a request may not be charged under a rule and a key; see
// [rule.Request.Permit].
type PermitError struct{ Rule, Key string }

func (e *PermitError) Error() string {
	return fmt.Sprintf("engine: the request may not be charged under the rule %s and the key %.200q", e.Rule, e.Key)
}

// addIdentity adds the limits of a rule for one of the request's identities.
func (v *Verdict) addIdentity(in *installed, c *rule.Entry, req *rule.Request, identity, tier string, ask *rule.Ask) {
	limits, override := in.limits(c, identity, tier, req)
	cost, ceiling := ask.Most, ask.Most
	if ask.Prompt < ask.Most {
		cost, ceiling = c.Reserve(*ask, limits)
	}
	if c.Mode.Denies() {
		v.Priority = max(v.Priority, c.PriorityOf(identity, tier))
	}
	for _, limit := range limits {
		if limit.Algorithm() == weir.InFlight && (v.charging.way == placed || v.isAlways()) {
			continue
		}
		if c.UnlessDeniedEarlier && !c.Mode.Denies() {
			limit = in.shares.counting(limit) // such shadows are charged whatever others say
		}
		r := v.nextResult()
		r.Rule, r.Compiled, r.Override, r.Key, r.Cost = c, limit, override, identity, cost
		r.prompt, r.ceiling, r.most = ask.Prompt, ceiling, ask.Most
		r.Shadow, r.Soft = !c.Mode.Denies(), c.Mode == rule.Soft
		r.Allowed = true // until somebody was asked
		if limit.Algorithm() == weir.InFlight {
			r.Cost = 1
			v.places++
			if r.waits() && (v.waitUpTo == 0 || r.Rule.Wait.UpTo < v.waitUpTo) { // the least patient rule counts
				v.waitUpTo = r.Rule.Wait.UpTo
			}
		}
	}
	if len(limits) > 0 {
		v.warns = v.warns || len(c.Warn) > 0
		v.counts = v.counts || c.CountDenied && !c.UnlessDeniedEarlier && c.Mode.Denies()
		v.countsLater = v.countsLater || c.UnlessDeniedEarlier
		v.shares = v.shares || c.Shares != rule.Shares{}
		v.addPenalty(c, identity)
	}
}

// prioritize finds the priority of a request whose limits are all known, and what it has to
// leave of each.
func (v *Verdict) prioritize(req *rule.Request) {
	v.Priority = cmp.Or(req.Priority, v.Priority, rule.Normal)
	if !v.shares || v.Priority == rule.Critical {
		return
	}
	for i := range v.Results {
		if r := &v.Results[i]; !r.isPenalty {
			if r.Leave = r.Rule.Leave(r.Compiled, v.Priority); r.Leave > 0 {
				r.priority = v.Priority
			}
		}
	}
}

// To read the clock takes a tenth of the time of a decision in memory. So the reading with
// which a decision begins is also the time by which such a store decides.

// timing is when a request was decided, by the clock that the engine reads.
type timing struct {
	began   time.Duration
	ended   time.Duration // 0 if nobody wanted to know
	follows bool
}

// Follow tells that the next request to the same engine arrived together with the last one,
// and that nothing was waited for since: it begins when that one was decided.
func (v *Verdict) Follow() { v.follows = true }

// begin notes when a request begins that is going to be charged.
func (e *Engine) begin(v *Verdict) {
	if v.began = v.ended; !v.follows || v.ended == 0 {
		v.began = e.elapsed()
	}
	v.ended, v.follows = 0, false
}

// observe tells the observers of a request that was decided.
func (e *Engine) observe(req *rule.Request, v *Verdict) {
	if len(e.observers) == 0 {
		return
	}
	v.ended = e.elapsed()
	for _, o := range e.observers {
		o.Observe(req, v, v.ended-v.began)
	}
	if v.places > 0 {
		e.observeReached(v)
	}
}
