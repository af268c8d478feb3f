package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/engine"
)

var _ engine.HoldObserver = (*Metrics)(nil)

// What happens to a rule's part of a hold. Other events do not say which rules they are of.
const (
	reservedEvent = iota
	settledEvent
	cancelledEvent
	ruleEvents
)

var ruleEventNames = [ruleEvents]string{"reserved", "settled", "cancelled"}

// Kinds of units. The first four are those of settled holds:
// used = reserved - refunded + overrun.
const (
	reservedUnits = iota
	usedUnits
	refundedUnits
	overrunUnits
	cancelledUnits
	chargedUnits
	excessUnits
	unitKinds
)

var unitNames = [unitKinds]string{"reserved", "used", "refunded", "overrun", "cancelled", "charged", "excess"}

// holdCounters are those of one rule that had holds or charges.
type holdCounters struct {
	rule     [ruleEvents]atomic.Uint64
	overruns atomic.Uint64
	units    [unitKinds]atomic.Uint64
}

// held returns the counters of holds, which most rules never need.
func (c *ruleCounters) held() *holdCounters {
	if h := c.holds.Load(); h != nil {
		return h
	}
	c.holds.CompareAndSwap(nil, new(holdCounters))
	return c.holds.Load()
}

// ObserveHold implements [engine.HoldObserver].
func (m *Metrics) ObserveHold(e engine.HoldEvent) {
	m.holds[e.Kind].Add(1)
	if e.Kind != engine.SettledHold && e.Kind != engine.CancelledHold && e.Kind != engine.ChargedUnits {
		return
	}
	rules := m.rules.Load()
	for i := range e.Parts {
		c, _ := rules.ByID(e.Parts[i].Rule)
		c.held().add(e.Kind, &e.Parts[i])
	}
}

// add counts a part of what has ended, or was charged.
func (h *holdCounters) add(kind engine.HoldKind, p *engine.SettledPart) {
	units := func(kind int, n int64) { h.units[kind].Add(uint64(max(n, 0))) }
	units(excessUnits, p.Excess)
	switch kind {
	case engine.ChargedUnits:
		units(chargedUnits, p.Used)
	case engine.CancelledHold:
		h.rule[cancelledEvent].Add(1)
		units(cancelledUnits, p.Reserved)
	default:
		h.rule[settledEvent].Add(1)
		units(reservedUnits, p.Reserved)
		units(usedUnits, p.Used)
		units(refundedUnits, p.Reserved-p.Used)
		units(overrunUnits, p.Used-p.Reserved)
		if p.Used > p.Reserved {
			h.overruns.Add(1)
		}
	}
}

func (c *collector) collectHolds(ch chan<- prometheus.Metric) {
	counter(ch, holdEventsDesc, c.reserved.Load(), "reserved")
	for k := range engine.HoldKinds {
		counter(ch, holdEventsDesc, c.holds[k].Load(), k.String())
	}
}

// collect shows the holds of a rule, if it had any.
func (h *holdCounters) collect(ch chan<- prometheus.Metric, label string) {
	if h == nil {
		return
	}
	for e := range ruleEvents {
		counter(ch, holdsDesc, h.rule[e].Load(), label, ruleEventNames[e])
	}
	counter(ch, holdOverrunsDesc, h.overruns.Load(), label)
	for k := range unitKinds {
		counter(ch, holdUnitsDesc, h.units[k].Load(), label, unitNames[k])
	}
}
