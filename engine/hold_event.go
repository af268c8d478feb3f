package engine

import (
	"strconv"
	"strings"

	"github.com/weirhq/weir"
)

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
	HoldKinds    // number of kinds
)

var holdKindNames = [HoldKinds]string{
	SettledHold: "settled", CancelledHold: "cancelled", ExtendedHold: "extended", RepeatedHold: "repeated", ExpiredHold: "expired",
	UnknownHold: "unknown", PendingHold: "pending", LostHold: "lost", ChargedUnits: "charged", UnheldHold: "unheld",
}

// String returns the name that metrics use.
func (k HoldKind) String() string { return holdKindNames[k] }

func (e *Engine) observeHold(kind HoldKind, parts []SettledPart) {
	for _, o := range e.holdObservers {
		o.ObserveHold(HoldEvent{kind, parts})
	}
}

// observe tells what has become of a hold that was to be settled or extended.
func (s *Settled) observe(e *Engine, meant HoldKind) {
	switch {
	case s.Repeated:
		meant = RepeatedHold
	case s.State == weir.HoldExpired:
		meant = ExpiredHold
	case s.State == weir.HoldUnknown:
		meant = UnknownHold
	case s.State == weir.HoldPending:
		meant = PendingHold
	default:
		e.observePlaces(s.places)
	}
	e.observeHold(meant, s.Parts)
}

// tag is what a store keeps for each part of a hold.
type tag struct {
	rule, unit string
	shadow     bool
	place      bool        // of a limit on requests in flight
	began      weir.Micros // when the place was taken; 0 if that is unknown
	client     uint64      // whose requests may wait for the place; 0 if none do
	more       int         // further holds of the same request that may exist
}

func (t tag) String() string { return string(t.append(nil)) }

func (t tag) append(dst []byte) []byte {
	mode := byte('e')
	switch {
	case t.shadow && t.place:
		mode = 'q'
	case t.shadow:
		mode = 's'
	case t.place:
		mode = 'p'
	}
	dst = append(dst, byte('0'+t.more), mode)
	if t.place && t.began > 0 {
		dst = strconv.AppendInt(dst, int64(t.began), 36)
		if t.client != 0 {
			dst = strconv.AppendUint(append(dst, '.'), t.client, 36)
		}
	}
	dst = append(append(dst, ':'), t.unit...)
	return append(append(dst, ':'), t.rule...)
}

// parseTag parses the result of String. What is not one is a part of an unknown rule.
func parseTag(text string) (t tag) {
	if len(text) < 3 || text[0] < '0' || text[0] > '9' {
		return t
	}
	began, rest, found := strings.Cut(text[2:], ":")
	if !found {
		return t
	}
	t.more, t.shadow, t.place = int(text[0]-'0'), text[1] == 's' || text[1] == 'q', text[1] == 'p' || text[1] == 'q'
	t.unit, t.rule, _ = strings.Cut(rest, ":")
	if began != "" {
		began, client, _ := strings.Cut(began, ".")
		n, _ := strconv.ParseInt(began, 36, 64) // 0 is that it is unknown
		t.began = weir.Micros(n)
		t.client, _ = strconv.ParseUint(client, 36, 64)
	}
	return t
}
