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
// from the last known usage of the busiest clients; a [rule.Fallback] says for how
// long, and can have a limit of its own. One closed rule denies, whatever the others
// say. The verdict is marked as degraded. This is not an error: Check fails
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
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/order"
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
	// threshold of a rule, a [PlaceObserver] with requests in flight, and the first [SpanObserver]
	// before and after each decision. Default none.
	Observers []Observer

	// Clock returns the time, to remember when a client was last seen, and to end an
	// [Override]. Default the system clock.
	Clock func() weir.Micros

	// Logger receives a record when rulefile.Open loads rules, or cannot use them, and when the usage of a
	// language model is more than is plausible. Default
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
	clock     func() weir.Micros
	logger    *slog.Logger

	// What the store can do better than any; see quickStore and timedStore.
	isQuick       bool
	elapsed       func() time.Duration
	takeAt        func(ctx context.Context, elapsed time.Duration, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error)
	takePartialAt func(ctx context.Context, elapsed time.Duration, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) // of partial

	installing sync.Mutex // so that observers know of the same rules as the engine
	installed  atomic.Pointer[installed]

	hashSeed maphash.Seed
	seen     lossy[usage]    // by usageKey
	told     lossy[told]     // by usageKey
	tiers    lossy[uint64]   // hashes of tiers, by that of a client
	issued   lossy[struct{}] // by issuedKey
	names    lossy[numbers]  // likewise
	seeding  [256]sync.Mutex // of clients in local, by usageKey
	outages  outages

	partial        weir.PartialStore // the store; nil if it is not on several servers
	holds          weir.HoldStore    // store and local; nil if one of them has no holds
	localHolds     weir.HoldStore
	ruleObservers  []RuleObserver
	holdObservers  []HoldObserver
	spendObservers []SpendObserver
	warnObservers  []WarningObserver
	placeObservers []PlaceObserver
	spanObserver   SpanObserver // nil if there is none
	extensions     *extensions
	kept           kept
	pending        pending
	answers        answers

	lines order.Turns[waitingLine] // of requests that wait for a place
}

// quickStore is a store in this process: it never waits, is never unavailable, and lets the engine
// read its clock, so that one reading tells both when a check began and by which time to decide it.
type quickStore interface {
	Elapsed() time.Duration
	TakeAt(ctx context.Context, read time.Duration, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error)
}

// timedStore is a store that decides many requests in this process, and lets the engine read its clock likewise. Others of
// its requests wait.
type timedStore interface {
	Elapsed() time.Duration
	TakePartialAt(ctx context.Context, read time.Duration, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error)
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
	e := &Engine{store: o.Store, local: o.Local, instances: o.Instances, clock: o.Clock, logger: cmp.Or(o.Logger, slog.Default()), extensions: new(extensions), hashSeed: maphash.MakeSeed()}
	e.prepareStore()
	e.observers, e.ruleObservers, e.holdObservers = o.Observers, only[RuleObserver](o.Observers), only[HoldObserver](o.Observers)
	e.spendObservers = only[SpendObserver](o.Observers)
	e.warnObservers, e.placeObservers = only[WarningObserver](o.Observers), only[PlaceObserver](o.Observers)
	if spans := only[SpanObserver](o.Observers); len(spans) > 0 {
		e.spanObserver = spans[0]
	}
	for _, o := range only[ReservedObserver](o.Observers) {
		o.ObserveReserved(e.Reserved)
	}
	e.seen.bits, e.told.bits, e.tiers.bits, e.issued.bits, e.names.bits = 12, 12, 14, 16, 12
	table, err := rule.Compile(&rule.Set{}, rule.Options{})
	if err != nil {
		return nil, err
	}
	e.installed.Store(&installed{table: table, clock: e.clock})
	return e, nil
}

// prepareStore finds out what the stores can do.
func (e *Engine) prepareStore() {
	if s, ok := e.store.(interface{ Timeout() time.Duration }); ok {
		e.timeout = s.Timeout()
	}
	e.partial, _ = e.store.(weir.PartialStore)
	holds, can := e.store.(weir.HoldStore)
	if local, both := e.local.(weir.HoldStore); can && both {
		e.holds, e.localHolds = holds, local
	}
	born := time.Now()
	e.elapsed = func() time.Duration { return time.Since(born) } // which takes half as long as to ask what time it is
	e.takeAt = func(ctx context.Context, _ time.Duration, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
		return e.store.Take(ctx, dst, ops...)
	}
	e.takePartialAt = func(ctx context.Context, _ time.Duration, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
		return e.partial.TakePartial(ctx, dst, ops...)
	}
	own, ok := e.store.(interface{ Quick(weir.Store) any })
	if !ok {
		return
	}
	switch own := own.Quick(e.store).(type) { // nil if the store is only embedded in this one
	case quickStore:
		e.isQuick, e.elapsed, e.takeAt = true, own.Elapsed, own.TakeAt
	case timedStore:
		e.elapsed, e.takePartialAt = own.Elapsed, own.TakePartialAt
	}
}

// Load puts the rules of a document into force: JSON, or YAML in a program that imports package
// rule/rulefile. Messages contain the name; if it ends in .json, the document is JSON.
func (e *Engine) Load(name string, document []byte) error {
	_, version := e.Rules()
	set, err := rule.Usable(name, document)
	if err != nil {
		return err
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		return err
	}
	e.Install(table, version+1)
	return nil
}

// Install puts rules into force for all later requests. Clients keep their usage under
// a rule as long as the rule keeps its id, algorithm and period.
func (e *Engine) Install(table *rule.Table, version int64) {
	e.installing.Lock()
	defer e.installing.Unlock()
	for _, o := range e.ruleObservers { // first, so that they know the rules of every verdict
		o.Install(table, version)
	}
	in := e.installed.Load()
	e.installed.Store(in.under(table, version, in.overrides))
}

// InstallDemands tells the observers all rules that come with a [Demand] from now on.
// The engine itself does not need it.
func (e *Engine) InstallDemands(rules []*rule.Entry) {
	e.installing.Lock()
	defer e.installing.Unlock()
	for _, o := range e.ruleObservers {
		o.InstallDemands(rules)
	}
}

// Rules returns the rules in force and their version.
func (e *Engine) Rules() (*rule.Table, int64) {
	in := e.installed.Load()
	return in.table, in.version
}
