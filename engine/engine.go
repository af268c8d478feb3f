// Package engine judges requests: rules and a store in, a verdict out.
//
//	e, err := engine.New(engine.Options{Store: store})
//	e.Install(table)
//	var v engine.Verdict
//	err = e.Check(ctx, &request, &v)
//
// Every rule that matches applies. All of their limits are charged in one call of
// the store, or none: a request that one rule denies costs nothing anywhere. Shadow
// rules are charged and reported like the others, after them, and never deny.
//
// # When the store is unavailable
//
// Each rule says what happens then: open lets its requests pass, closed denies
// them, local goes on in this process with its share of the limit, from what was
// last seen of the busiest clients. One closed rule denies, whatever the others
// say. The verdict tells that it is degraded. That is no error: Check fails only when
// its context ends or the request makes no sense.
package engine

import (
	"context"
	"log/slog"
	"sync"
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

	// Observers are told of every verdict, and a [RuleObserver] of the rules, too.
	// Default nobody.
	Observers []Observer

	// Clock tells the time, for what was last seen of a client. Default the
	// system's.
	Clock func() weir.Micros

	// Logger is told of rules that Open puts into force, or cannot use. Default
	// slog.Default().
	Logger *slog.Logger
}

// Engine judges requests. It is safe for concurrent use.
type Engine struct {
	store     weir.Store
	local     weir.Store
	instances func() int
	observers []Observer
	observer  Observer // all of them; nil if there are none
	clock     func() weir.Micros
	born      time.Time // from which times are measured: that takes half as long as to ask what time it is

	installing sync.Mutex // so that observers know of the same rules as the engine
	installed  atomic.Pointer[installed]
	seen       *seen
	tiers      *tiers
}

// installed are the rules in force, with what was made of them.
type installed struct {
	table   *rule.Table
	version int64
	shares  shares
}

// New returns an engine without rules, which allows everything.
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
	e := &Engine{store: o.Store, local: o.Local, instances: o.Instances, observers: o.Observers, observer: tellAll(o.Observers), clock: o.Clock, born: time.Now(), seen: newSeen(), tiers: newTiers()}
	table, err := rule.Compile(&rule.Set{}, rule.Options{})
	if err != nil {
		return nil, err
	}
	e.installed.Store(&installed{table: table})
	return e, nil
}

// Install puts rules into force: requests that come from now on are judged by them.
// What clients have used under a rule stays used as long as the rule keeps its id,
// algorithm and period.
func (e *Engine) Install(table *rule.Table, version int64) {
	e.installing.Lock()
	defer e.installing.Unlock()
	for _, o := range e.observers { // first, so that they know the rules of every verdict
		if o, ok := o.(RuleObserver); ok {
			o.Install(table, version)
		}
	}
	e.installed.Store(&installed{table: table, version: version})
}

// InstallDemands tells the observers which rules come with a [Demand] from now on, all of
// them. To the engine itself they need not be known.
func (e *Engine) InstallDemands(rules []*rule.Entry) {
	e.installing.Lock()
	defer e.installing.Unlock()
	for _, o := range e.observers {
		if o, ok := o.(RuleObserver); ok {
			o.InstallDemands(rules)
		}
	}
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
	if e.observer == nil { // nobody wants to know how long it takes
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

// gather lists the limits that apply. Visits, if there are any, take note of the client.
// A request that is too many clients at once is an error, but never by a shadow rule,
// which then does not apply.
func (in *installed) gather(req *rule.Request, v *Verdict, visits *tiers) error {
	v.hits = in.table.Match(v.hits, req)
	left := len(v.hits)
	for p := enforced; p == enforced || left > 0; p++ {
		for _, c := range v.hits {
			if placeOf(c) != p {
				continue
			}
			left--
			if err := v.add(c, req, visits); err != nil && p == enforced {
				return err
			}
		}
		v.end(p)
	}
	return nil
}

// charge takes everything that the enforced rules want, or nothing, and then, if the
// request passes, what the shadow rules want.
func (e *Engine) charge(ctx context.Context, in *installed, v *Verdict) error {
	if results := v.at(enforced); len(results) > 0 {
		var err error
		if v.decisions, err = e.store.Take(ctx, v.decisions[:0], v.opsOf(results)...); err != nil {
			return e.degrade(ctx, in, v, err, e.takeLocal)
		}
		v.record(results)
		e.seen.healthy()
		e.remember(results)
	}
	v.conclude()
	return e.chargeShadows(ctx, v)
}

// look is charge for a peek.
func (e *Engine) look(ctx context.Context, in *installed, v *Verdict) error {
	if results := v.charged(); len(results) > 0 {
		if err := e.ask(ctx, e.store.Peek, v, results, v.opsOf(results)); err != nil {
			return e.degrade(ctx, in, v, err, e.local.Peek)
		}
	}
	v.conclude()
	return nil
}

// askStore is Take or Peek of a store.
type askStore func(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error)

// ask puts what a store says of some ops into their results.
func (e *Engine) ask(ctx context.Context, store askStore, v *Verdict, results []Result, ops []weir.Op) error {
	var err error
	if v.decisions, err = store(ctx, v.decisions[:0], ops...); err != nil {
		return err
	}
	v.record(results)
	return nil
}
