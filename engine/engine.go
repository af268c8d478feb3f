package engine

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// Options of an engine.
type Options struct {
	// Store is where the limits are kept. Default a store in memory.
	Store weir.Store

	// Local is where rules go on that say on_failure: local. Default a store in
	// memory.
	Local weir.Store

	// Instances is by how many a limit is divided when each instance goes on by
	// itself. Default 1.
	Instances func() int

	// Observer is told of every verdict. Default nobody.
	Observer Observer

	// Clock tells the time, for what was last seen of a client. Default the
	// system's.
	Clock func() weir.Micros

	// Logger is told of rules that Open puts into force, or cannot use. Default
	// slog.Default().
	Logger *slog.Logger
}

// Observer is told of every verdict on a request, as soon as it is known; peeks are
// none. It must be quick, and keeps neither the request nor the verdict.
type Observer interface {
	Observe(req *rule.Request, v *Verdict, took time.Duration)
}

// Engine judges requests. It is safe for concurrent use.
type Engine struct {
	store     weir.Store
	local     weir.Store
	instances func() int
	observer  Observer
	clock     func() weir.Micros
	born      time.Time // from which times are measured: that takes half as long as to ask what time it is

	installed atomic.Pointer[installed]
	seen      *seen
	tiers     *tiers
}

// installed are the rules in force, with what was made of them.
type installed struct {
	table   *rule.Table
	version int64
	shares  shares
}

// New returns an engine without rules, which admits everything.
func New(o Options) (*Engine, error) {
	if o.Store == nil {
		o.Store = memory.New(memory.Options{Clock: o.Clock})
	}
	if o.Local == nil {
		o.Local = memory.New(memory.Options{Clock: o.Clock})
	}
	if o.Instances == nil {
		o.Instances = func() int { return 1 }
	}
	if o.Clock == nil {
		o.Clock = func() weir.Micros { return weir.MicrosOf(time.Now()) }
	}
	e := &Engine{store: o.Store, local: o.Local, instances: o.Instances, observer: o.Observer, clock: o.Clock, born: time.Now(), seen: newSeen(), tiers: newTiers()}
	table, err := rule.Compile(&rule.Set{}, rule.Options{})
	if err != nil {
		return nil, err
	}
	e.Install(table, 0)
	return e, nil
}

// Install puts rules into force: requests that come from now on are judged by them.
// What clients have used under a rule stays used as long as the rule keeps its id,
// algorithm and period.
func (e *Engine) Install(table *rule.Table, version int64) {
	e.installed.Store(&installed{table: table, version: version})
}

// Rules returns the rules in force, and their version.
func (e *Engine) Rules() (*rule.Table, int64) {
	in := e.installed.Load()
	return in.table, in.version
}

// Check judges a request and charges it, and puts the answer into v. The error is a
// [rule.ValuesError] if the request is too many clients at once, a [weir.InvalidError] if
// it cannot be judged for another reason, or that of the context.
func (e *Engine) Check(ctx context.Context, req *rule.Request, v *Verdict) error {
	if e.observer == nil {
		return e.judge(ctx, req, v, e.tiers, e.charge)
	}
	start := time.Since(e.born)
	if err := e.judge(ctx, req, v, e.tiers, e.charge); err != nil {
		return err
	}
	e.observer.Observe(req, v, time.Since(e.born)-start)
	return nil
}

// Peek answers what Check would, and charges nothing. Nobody is told of it.
func (e *Engine) Peek(ctx context.Context, req *rule.Request, v *Verdict) error {
	return e.judge(ctx, req, v, nil, e.look)
}

func (e *Engine) judge(ctx context.Context, req *rule.Request, v *Verdict, visits *tiers, decide func(context.Context, *installed, *Verdict) error) error {
	v.clear()
	in := e.installed.Load()
	v.Version = in.version
	switch {
	case in.table.Exempt(req):
		v.Allowed, v.Reason = true, Exempt
	case in.table.Blocked(req):
		v.Reason = Blocked
	default:
		if err := in.gather(req, v, visits); err != nil {
			return err
		}
		return decide(ctx, in, v)
	}
	return nil
}

// gather lists the limits that apply, those of shadow rules last. Visits, if there are
// any, take note of the client. A request that is too many clients at once is an error,
// but never by a shadow rule, which then does not apply.
func (in *installed) gather(req *rule.Request, v *Verdict, visits *tiers) error {
	v.hits = in.table.Match(v.hits, req)
	shadows := false
	for _, c := range v.hits {
		if c.Mode == rule.Shadow {
			shadows = true
			continue
		}
		if err := v.add(c, req, visits); err != nil {
			return err
		}
	}
	v.enforced, v.quiet = len(v.Results), len(v.Results)
	if !shadows {
		return nil
	}
	for _, counting := range []bool{false, true} {
		for _, c := range v.hits {
			if c.Mode == rule.Shadow && c.CountDenied == counting {
				_ = v.add(c, req, visits)
			}
		}
		if !counting {
			v.quiet = len(v.Results)
		}
	}
	return nil
}

// charge takes everything that the enforced rules want, or nothing, and then, if the
// request passes, what the shadow rules want.
func (e *Engine) charge(ctx context.Context, in *installed, v *Verdict) error {
	if err := e.enforce(ctx, in, v); err != nil {
		return err
	}
	return e.cast(ctx, v)
}

func (e *Engine) enforce(ctx context.Context, in *installed, v *Verdict) error {
	results := v.Results[:v.enforced]
	if len(results) > 0 {
		var err error
		v.decisions, err = e.store.Take(ctx, v.decisions[:0], v.opsOf(results)...)
		if err != nil {
			return e.degrade(ctx, in, v, err, e.takeLocal)
		}
		record(results, v.decisions)
		e.seen.healthy()
		e.remember(results)
	}
	v.conclude()
	return nil
}

// look is charge for a peek.
func (e *Engine) look(ctx context.Context, in *installed, v *Verdict) error {
	if len(v.Results) > 0 {
		var err error
		v.decisions, err = e.store.Peek(ctx, v.decisions[:0], v.opsOf(v.Results)...)
		if err != nil {
			return e.degrade(ctx, in, v, err, e.local.Peek)
		}
		record(v.Results, v.decisions)
	}
	v.conclude()
	return nil
}
