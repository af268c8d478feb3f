package engine

import (
	"context"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Observer is called with every verdict, except those of Peek. It must be fast, and
// must keep neither the request nor the verdict.
type Observer interface {
	Observe(req *rule.Request, v *Verdict, took time.Duration)
}

// RuleObserver is an Observer that counts by rule. The engine calls it with new rules
// before their first verdict.
type RuleObserver interface {
	Observer

	// Install is called with the rules that come into force.
	Install(table *rule.Table, version int64)

	// InstallDemands is called with all rules that come with a [Demand].
	InstallDemands(rules []*rule.Entry)
}

// HoldObserver is an [Observer] that is also called with what becomes of holds, and with
// every [Engine.Charge]. These are no requests, so Observe is not called with them. A
// reservation is a request: Observe is called with its verdict, which has a Hold.
type HoldObserver interface {
	Observer

	// ObserveHold must be fast, and must not keep the parts.
	ObserveHold(HoldEvent)
}

// HoldEvent is something that happened to a hold.
type HoldEvent struct {
	Kind  HoldKind
	Parts []SettledPart // if they are known
}

// HoldKind is the kind of a HoldEvent.
type HoldKind uint8

const (
	SettledHold   HoldKind = iota
	CancelledHold          // settled with nothing used
	ExtendedHold
	RepeatedHold // it was settled before, so nothing happened
	ExpiredHold  // the call came too late
	UnknownHold  // there is no such hold
	PendingHold  // the store is unavailable, and the call is repeated later
	LostHold     // the units that were used could not be charged
	ChargedUnits // by Charge, without a hold
	UnheldHold   // reserved without a hold, because the store had no place for one
	CrowdedHold  // denied, because a key has as many open holds as it may have; its parts are the rules
	SteppedHold  // a further hold for an answer that is longer than was expected; its parts are what is reserved
	CappedHold   // a language model is said to have used more than is plausible, so less is counted; its parts are the rules
	HoldKinds    // number of kinds
)

var holdKindNames = [HoldKinds]string{
	SettledHold: "settled", CancelledHold: "cancelled", ExtendedHold: "extended", RepeatedHold: "repeated", ExpiredHold: "expired",
	UnknownHold: "unknown", PendingHold: "pending", LostHold: "lost", ChargedUnits: "charged", UnheldHold: "unheld",
	CrowdedHold: "crowded", SteppedHold: "stepped", CappedHold: "capped",
}

// String returns the name that metrics use.
func (k HoldKind) String() string { return holdKindNames[k] }

// SpanObserver is an [Observer] that makes spans of a trace.
type SpanObserver interface {
	Observer

	// Begin is called before a request is decided, also by Peek, and returns the context with which
	// the store is asked. What it returns is called with the verdict, and with the error if there is
	// no verdict; it must keep neither.
	Begin(ctx context.Context) (context.Context, func(*Verdict, error))
}

// PlaceObserver is an [Observer] that also counts how many requests are in flight under the
// rules that limit that.
type PlaceObserver interface {
	Observer

	// Places returns what counts the places of a rule. It must be fast.
	Places(rule string) PlaceCounter
}

// PlaceCounter counts the places of one rule. Its methods must be fast. It is used until all
// places are given back for which Take was called, even if the rule is removed meanwhile.
type PlaceCounter interface {
	// Reach is called for each place that a client takes, with how many it has then.
	Reach(places int64)

	// Take is called when a request begins of whose end this process will know, and Leave
	// when it has ended.
	Take()
	Leave(held time.Duration)

	// Hold is called when n more places belong to holds, until a time at the latest: 1 when a
	// hold is reserved, and -1 when it has ended, both with the time at which it would have
	// expired. One process may have reserved a hold that another ends, so only the sum of all
	// processes is the number of places; it may be below 0 in one of them.
	Hold(n int64, until weir.Micros)

	// End is called when a hold has ended, too, for each place that it had.
	End(held time.Duration)
}

// AdaptiveLimit is the state of an adaptive limit of requests in flight.
type AdaptiveLimit struct {
	Limit    int    `json:"limit"`
	InFlight int    `json:"in_flight"`
	Denied   uint64 `json:"denied"` // since the start
}

// UpstreamLimit is the state of the adaptive limit of an upstream.
type UpstreamLimit struct {
	Upstream string `json:"upstream"`
	AdaptiveLimit
}

// AdaptiveObserver is an [Observer] that also shows adaptive limits.
type AdaptiveObserver interface {
	Observer

	// ObserveAdaptive is called once for each adaptive limit. State returns its state at any
	// time. Several limits can have one name.
	ObserveAdaptive(name string, state func() AdaptiveLimit)
}

// ObserveAdaptive tells the observers of an adaptive limit, for middleware.
func (e *Engine) ObserveAdaptive(name string, state func() AdaptiveLimit) {
	for _, o := range only[AdaptiveObserver](e.observers) {
		o.ObserveAdaptive(name, state)
	}
}

// ReservedObserver is an [Observer] that also shows what is reserved for requests that are being served.
type ReservedObserver interface {
	Observer

	// ObserveReserved is called once. State returns what [Engine.Reserved] does, at any time.
	ObserveReserved(state func() []Reserved)
}

// ProtectionObserver is an [Observer] that also shows what a process sheds.
type ProtectionObserver interface {
	Observer

	// ObserveProtection is called once for each gate that sheds. State returns its state at
	// any time.
	ObserveProtection(state func() Protection)
}

// only are the observers that also have the methods of T.
func only[T Observer](all []Observer) (some []T) {
	for _, o := range all {
		if o, ok := o.(T); ok {
			some = append(some, o)
		}
	}
	return some
}

func (e *Engine) observeHold(kind HoldKind, parts []SettledPart) {
	for _, o := range e.holdObservers {
		o.ObserveHold(HoldEvent{kind, parts})
	}
}

// observeNoHold tells the observers why a request got no hold, if the store had no place for it, or its key has too many.
func (e *Engine) observeNoHold(v *Verdict) {
	switch {
	case v.Unheld:
		e.observeHold(UnheldHold, nil)
	case v.Crowded():
		var parts []SettledPart
		for i := range v.Results {
			r := &v.Results[i]
			if r.full && !r.Shadow && (len(parts) == 0 || parts[len(parts)-1].Rule != r.Rule.ID) {
				parts = append(parts, SettledPart{Rule: r.Rule.ID})
			}
		}
		e.observeHold(CrowdedHold, parts)
	}
}
