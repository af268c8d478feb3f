package stats

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/tally"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

var (
	_ engine.RuleObserver    = (*Recorder)(nil)
	_ engine.HoldObserver    = (*Recorder)(nil)
	_ engine.WarningObserver = (*Recorder)(nil)
	_ engine.SpendObserver   = (*Recorder)(nil)
)

// outcomes are those that are counted apart: the first ones, and that a client is unknown.
const (
	unknownClient = engine.OutcomeBlocked + 1
	outcomes      = unknownClient + 1
)

// outcomeCounts returns the counts of n requests with the outcome.
func outcomeCounts(o engine.Outcome, n int64) archive.Counts {
	var c [outcomes]int64
	c[o] = n
	return archive.Counts{
		Allowed: c[engine.OutcomeAllowed], Denied: c[engine.OutcomeDenied], ShadowDenied: c[engine.OutcomeShadowDenied], SoftDenied: c[engine.OutcomeSoftDenied],
		DegradedAllowed: c[engine.OutcomeDegradedAllowed], DegradedDenied: c[engine.OutcomeDegradedDenied], Blocked: c[engine.OutcomeBlocked],
		UnknownClient: c[unknownClient],
	}
}

// Observe implements [engine.Observer].
func (r *Recorder) Observe(req *rule.Request, v *engine.Verdict, took time.Duration) {
	took = max(took, 0)
	slot := archive.DurationSlot(took)
	stripe := int(tally.Stripe(v, r.stripeMask))
	power, chance := r.stripes[stripe].power.Load(), r.stripes[stripe].chance.Load()
	x := r.index.Load()
	outcome := v.Outcome()
	switch {
	case outcome == engine.OutcomeUnknownClient:
		outcome = unknownClient
	case outcome > engine.OutcomeBlocked:
		outcome = engine.OutcomeAllowed // exempt, or no rule applies
	}
	if p := v.Priority; p == rule.Low || p > rule.Normal && p <= rule.Critical {
		r.stripes[stripe].priorities[p][outcome].Add(1)
	}
	_, tier := req.Client()
	for from, to := 0, 0; from < len(v.Results); from = to {
		var said engine.Outcome
		said, to = v.Said(from)
		with := along
		if to-from == len(v.Results) && outcome == said {
			with = alone
		}
		p := x.Find(v.Results[from].Rule)
		number := p.lines[p.tier(tier)].sheet(stripe, with, said).add(slot, took)
		if said != engine.OutcomeAllowed {
			p.levels.Deny(v.Results[from:to])
		}
		if v.Held(from, said) {
			r.events.count(func(f *archive.Frame) { f.Hold(p.id).Opened++ })
		}
		// Golden brings the count in a slot of a sheet to the top.
		if number*tally.Golden+chance <= math.MaxUint64>>(power&63) {
			pass := said == engine.OutcomeAllowed || said == engine.OutcomeDegradedAllowed
			if v.Reason != engine.Unavailable { // which no client has caused, so it is in no ranking
				r.stripes[stripe].sample(req, v, from, to, pass, power)
			}
			if !pass {
				r.stripes[stripe].sampleDenial(req, v, from, to, said, r.options.Clock)
			}
		}
		if with == alone {
			return
		}
	}
	number := r.requests.sheet(stripe, along, outcome).add(slot, took)
	if outcome >= engine.OutcomeBlocked && number*tally.Golden+chance <= math.MaxUint64>>(power&63) {
		r.stripes[stripe].sampleBlocked(req, outcome, r.options.Clock)
	}
}

// events are counted in a frame: what becomes of holds and of requests that were passed on,
// which takes much longer than a lock, and warnings, which are rare.
type events struct {
	mu    sync.Mutex
	frame archive.Frame
}

func (e *events) count(do func(*archive.Frame)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do(&e.frame)
}

// take returns what was counted since the last call.
func (e *events) take() (f archive.Frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, e.frame = e.frame, archive.Frame{}
	return f
}

// ObserveUpstream counts a request that was forwarded, and either answered with a
// status or ended by an error. A request that its client canceled counts as answered.
// The route is a name from the configuration, not a path; a route without a name is
// "(none)".
func (r *Recorder) ObserveUpstream(route string, status int, took time.Duration, err error) {
	route = r.routes.Of(route)
	r.events.count(func(f *archive.Frame) {
		to := f.Route(route)
		to.Requests++
		to.Latency.Record(took)
		if status >= 500 || err != nil && !errors.Is(err, context.Canceled) {
			to.Errors++
		}
	})
}

// ObserveHold implements [engine.HoldObserver].
func (r *Recorder) ObserveHold(e engine.HoldEvent) {
	x := r.index.Load()
	r.events.count(func(f *archive.Frame) {
		for _, p := range e.Parts {
			switch id := x.nameOf(p.Rule); e.Kind {
			case engine.SettledHold:
				f.Hold(id).Settle(p.Reserved, p.Used, p.Excess)
			case engine.SteppedHold:
				f.Hold(id).Opened++
			case engine.CancelledHold:
				f.Hold(id).Cancelled++
			case engine.CrowdedHold:
				f.Hold(id).Crowded++
			case engine.ChargedUnits:
				f.Hold(id).Add(archive.HoldCounts{Charges: 1, Charged: p.Used, Excess: p.Excess})
			}
		}
	})
}

// ObserveWarning implements [engine.WarningObserver]. All warnings of a second are counted, and
// the first ones kept.
func (r *Recorder) ObserveWarning(w engine.Warning) {
	policy, _ := w.Rule.DisplayLimit(w.Compiled)
	r.events.count(func(f *archive.Frame) {
		if f.Warned.N++; len(f.Warned.List) == archive.MaxWarnings {
			return
		}
		f.Warned.List = append(f.Warned.List, archive.Warning{
			At: archive.Instant(r.options.Clock().UnixMicro()), Rule: w.Rule.ID, Key: strings.Clone(w.Key),
			Policy: cmp.Or(policy, w.Compiled.Policy()), Threshold: int64(w.Threshold), Used: w.Used, Limit: w.Limit,
			ResetAt: archive.Instant(w.ResetAt), Instance: r.options.Instance[:min(len(r.options.Instance), maxInstance)],
		})
	})
}
