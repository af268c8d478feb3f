// Package engine decides requests with the rules of package rule and a store.
//
//	e, err := engine.New(engine.Options{Store: store})
//	e.Install(table, 1)
//	var v engine.Verdict
//	err = e.Check(ctx, &request, &v)
//
// Every rule that matches applies. One call of the store charges all of their limits,
// or none: a request that one rule denies costs nothing. Shadow and soft rules are charged and
// reported after the others, and never deny.
//
// If the cost is known only afterwards, Reserve charges an estimate, and Settle ends the
// hold with the real cost. Charge is for work that was not reserved.
//
// # When the store is unavailable
//
// Each rule defines what happens then. open allows its requests, and closed denies
// them. local keeps limiting in this process, with its share of the limit, starting
// from the last known usage of the busiest clients. One closed rule denies, whatever
// the others say. The verdict is marked as degraded. This is not an error: Check fails
// only if its context ends or the request is invalid.
//
// If the store is a [weir.PartialStore], rules on servers that answer are decided exactly, and
// only the others as above. If this process was too busy to ask the store in time
// ([weir.ErrBusy]), rules with open are treated as with local.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/turns"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// Options configures an engine.
type Options struct {
	// Store keeps the usage. Default a store in memory. If it has a method Timeout() time.Duration,
	// a request that needs several of its calls takes no longer than that.
	Store weir.Store

	// Local keeps the usage of rules with on_failure: local while Store is unavailable.
	// Default a store in memory.
	Local weir.Store

	// Instances returns the number of instances by which a limit is divided in local
	// fallback. Default 1.
	Instances func() int

	// Observers are called with every verdict, a [RuleObserver] with the rules, too, a
	// [HoldObserver] with what becomes of holds, a [WarningObserver] with clients that reach a
	// threshold of a rule, and a [PlaceObserver] with requests in flight. Default none.
	Observers []Observer

	// Clock returns the time, to remember when a client was last seen, and to end an
	// [Override]. Default the system clock.
	Clock func() weir.Micros

	// Logger receives a record when Open loads rules, or cannot use them. Default
	// slog.Default().
	Logger *slog.Logger
}

// Engine decides requests. It is safe for concurrent use.
type Engine struct {
	store     weir.Store
	timeout   time.Duration // of the store; 0 if it has none
	local     weir.Store
	instances func() int
	observers []Observer
	observer  Observer // all of them; nil if there are none
	clock     func() weir.Micros

	memory *memory.Store // the store, if it is one
	born   time.Time     // from which times are measured otherwise

	installing sync.Mutex // so that observers know of the same rules as the engine
	installed  atomic.Pointer[installed]
	seen       *seen
	tiers      *tiers
	told       told

	partial        weir.PartialStore // the store; nil if it is not on several servers
	holds          weir.HoldStore    // store and local; nil if one of them has no holds
	localHolds     weir.HoldStore
	holdObservers  []HoldObserver
	warnObservers  []WarningObserver
	placeObservers []PlaceObserver
	extensions     *extensions
	kept           kept
	pending        pending
	issued         issued

	lines    turns.Turns[line] // of requests that wait for a place
	lineSeed maphash.Seed      // of the clients there
}

// installed are the rules in force, with what was made of them.
type installed struct {
	table     *rule.Table
	version   int64
	loaded    bool                        // by Install
	overrides []Override                  // all, whether or not they have an effect
	replaced  map[overridden]*replacement // by those that have; nil if there are none
	clock     func() weir.Micros
	shares    shares
}

// ErrNoRules is Verdict.Degraded of what was allowed only because no rules were installed yet.
var ErrNoRules = errors.New("engine: no rules are loaded yet, so every request is allowed")

// New returns an engine without rules. Until Install is called, it allows everything, and marks
// that as degraded.
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
	e := &Engine{store: o.Store, timeout: timeoutOf(o.Store), local: o.Local, instances: o.Instances, observers: o.Observers, observer: tellAll(o.Observers), clock: o.Clock, born: time.Now(), seen: newSeen(), tiers: newTiers(), extensions: new(extensions)}
	e.memory, _ = o.Store.(*memory.Store)
	e.partial, _ = o.Store.(weir.PartialStore)
	e.prepareHolds()
	e.told.seed, e.lineSeed = maphash.MakeSeed(), maphash.MakeSeed()
	for _, o := range e.observers {
		if o, ok := o.(WarningObserver); ok {
			e.warnObservers = append(e.warnObservers, o)
		}
		if o, ok := o.(PlaceObserver); ok {
			e.placeObservers = append(e.placeObservers, o)
		}
	}
	table, err := rule.Compile(&rule.Set{}, rule.Options{})
	if err != nil {
		return nil, err
	}
	e.installed.Store(&installed{table: table, clock: e.clock})
	return e, nil
}

// Install puts rules into force for all later requests. Clients keep their usage under
// a rule as long as the rule keeps its id, algorithm and period.
func (e *Engine) Install(table *rule.Table, version int64) {
	e.installing.Lock()
	defer e.installing.Unlock()
	for _, o := range e.observers { // first, so that they know the rules of every verdict
		if o, ok := o.(RuleObserver); ok {
			o.Install(table, version)
		}
	}
	e.installed.Store(e.installed.Load().with(table, version))
}

// InstallDemands tells the observers all rules that come with a [Demand] from now on.
// The engine itself does not need it.
func (e *Engine) InstallDemands(rules []*rule.Entry) {
	e.installing.Lock()
	defer e.installing.Unlock()
	for _, o := range e.observers {
		if o, ok := o.(RuleObserver); ok {
			o.InstallDemands(rules)
		}
	}
}

// Rules returns the rules in force and their version.
func (e *Engine) Rules() (*rule.Table, int64) {
	in := e.installed.Load()
	return in.table, in.version
}

// Check decides a request, charges it, and puts the answer into v. The error is a
// [rule.ValuesError] if the request counts for too many clients, a [rule.RequestError] if a
// rule cannot read it, a [PermitError] if it may not be charged, a [weir.InvalidError] if it is
// invalid for another reason, or the context's error.
//
// A place that it takes of a rule that limits how many requests are in flight is free after
// the rule's HoldTTL, or when [Engine.Refund] gives back what the request was charged.
func (e *Engine) Check(ctx context.Context, req *rule.Request, v *Verdict) error {
	return e.check(ctx, req, v, nil, e.charge)
}

// Continue does what Check does, but takes no place: it is for a further part of a request
// that was allowed, and for requests that are over.
func (e *Engine) Continue(ctx context.Context, req *rule.Request, v *Verdict) error {
	return e.check(ctx, req, v, chargingPlaced, e.charge)
}

// decide decides a verdict whose results are listed.
type decide func(context.Context, *installed, *Verdict) error

func (e *Engine) check(ctx context.Context, req *rule.Request, v *Verdict, how *charging, charge decide) error {
	e.begin(v)
	if err := e.judge(ctx, e.installed.Load(), req, v, how, e.tiers, charge); err != nil {
		return err
	}
	e.observe(req, v)
	return nil
}

// Peek returns the answer that Check would return, and charges nothing. Observers are
// not called.
func (e *Engine) Peek(ctx context.Context, req *rule.Request, v *Verdict) error {
	return e.judge(ctx, e.installed.Load(), req, v, nil, nil, e.look)
}

// PeekWith does what Peek does, but with the rules of table instead of the rules in force.
// It uses the real usage and the overrides of clients. The version in the verdict is that
// of the rules in force.
func (e *Engine) PeekWith(ctx context.Context, table *rule.Table, req *rule.Request, v *Verdict) error {
	in := e.installed.Load()
	return e.judge(ctx, in.with(table, in.version), req, v, nil, nil, e.look)
}

func (e *Engine) judge(ctx context.Context, in *installed, req *rule.Request, v *Verdict, how *charging, visits *tiers, decide decide) error {
	v.clear()
	v.Version, v.how, v.Priority = in.version, how, cmp.Or(req.Priority, rule.Normal)
	if err := in.validate(req); err != nil {
		return err
	}
	if !in.loaded {
		v.Allowed, v.Degraded = true, ErrNoRules
		return nil
	}
	switch {
	case in.table.Exempt(req):
		v.Allowed, v.Reason = true, Exempt
	case in.table.Blocked(req):
		v.Reason = Blocked
	default:
		if err := in.gather(req, v, visits); err != nil {
			return err
		}
		v.prioritize(req)
		if how != nil && (how.settling && !v.Settles() || how.placed) {
			v.how = nil
		}
		return decide(ctx, in, v)
	}
	return nil
}

// Validate returns the error that Check would return for a request by the rules that apply to
// it, without asking the store. The verdict is not decided.
func (e *Engine) Validate(ctx context.Context, req *rule.Request, v *Verdict) error {
	return e.judge(ctx, e.installed.Load(), req, v, nil, nil, func(context.Context, *installed, *Verdict) error { return nil })
}

func (in *installed) validate(req *rule.Request) error {
	if req.Priority > rule.Critical {
		return &weir.InvalidError{Field: "priority", Reason: fmt.Sprintf("%d is unknown; choose one of Low, Normal, High and Critical", req.Priority)}
	}
	if len(req.Costs) == 0 || !in.loaded {
		return nil
	}
	return in.table.ValidateUnits("cost", req.Costs)
}

// gather lists the limits that apply. Visits, if there are any, take note of the client.
// A request that is too many clients at once, that a rule cannot read, or that has a client that it may
// not charge, is an error, but never by a shadow rule, which then does not apply. One that was denied before
// is always an error.
func (in *installed) gather(req *rule.Request, v *Verdict, visits *tiers) error {
	v.Priority = 0
	v.hits = in.table.Match(v.hits, req)
	left := len(v.hits)
	for p := enforced; p == enforced || left > 0; p++ {
		for _, c := range v.hits {
			if placeOf(c.Entry) != p {
				continue
			}
			left--
			if err := v.add(in, c, req, visits); err != nil && (p == enforced || wasDenied(err)) {
				return err
			}
		}
		v.end(p)
	}
	return nil
}

func wasDenied(err error) bool {
	wrong, is := errors.AsType[*rule.RequestError](err)
	return is && wrong.Denied
}
