package metrics

import (
	"cmp"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/tally"
)

var (
	_ engine.HoldObserver     = (*Metrics)(nil)
	_ engine.ReservedObserver = (*Metrics)(nil)
	_ engine.PlaceObserver    = (*Metrics)(nil)
	_ engine.SpendObserver    = (*Metrics)(nil)
)

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

func (c *ruleCounters) held() *holdCounters {
	return tally.Made(&c.holds, func() *holdCounters { return new(holdCounters) })
}

// ObserveHold implements [engine.HoldObserver].
func (m *Metrics) ObserveHold(e engine.HoldEvent) {
	m.holds[e.Kind].Add(1)
	if e.Kind != engine.SteppedHold && e.Kind != engine.SettledHold && e.Kind != engine.CancelledHold && e.Kind != engine.ChargedUnits {
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
	case engine.SteppedHold:
		h.rule[reservedEvent].Add(1)
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

// ObserveReserved implements [engine.ReservedObserver].
func (m *Metrics) ObserveReserved(state func() []engine.Reserved) { m.reserves.add(state) }

func (c *collector) collectReserved(ch chan<- prometheus.Metric) {
	sums := map[engine.Reserved]engine.Reserved{} // by its names alone
	for _, state := range c.reserves.list() {
		for _, r := range state() {
			of := engine.Reserved{Rule: r.Rule, Model: cmp.Or(r.Model, "(none)"), Currency: r.Currency}
			s := sums[of]
			sums[of] = engine.Reserved{Units: s.Units + r.Units, Excess: s.Excess + r.Excess, Used: s.Used + r.Used, Refunded: s.Refunded + r.Refunded}
		}
	}
	for of, s := range sums {
		descs, unit, values := unitDescs, 1.0, []string{of.Rule, of.Model}
		if of.Currency != "" {
			descs, unit, values = moneyDescs, 1e6, append(values, of.Currency)
		}
		if _, own := c.rules.Load().ByID(of.Rule); own {
			gauge(ch, descs[0], float64(s.Units)/unit, values...)
			gauge(ch, descs[1], float64(s.Excess)/unit, values...)
			counterOf(ch, descs[2], float64(s.Used)/unit, append(values, "used")...)
			counterOf(ch, descs[2], float64(s.Refunded)/unit, append(values, "refunded")...)
		}
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

// heldBounds are those of the histogram of how long places are held: from the answer of a
// cache to a connection that lives for hours.
var heldBounds = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute,
	5 * time.Minute, 30 * time.Minute, 3 * time.Hour,
}

// placeCounters are those of one rule that limits how many requests are in flight.
type placeCounters struct {
	stripes [ruleStripes]placeStripe
	held    tally.Expiring // of holds
}

type placeStripe struct {
	all   *placeCounters
	clock func() time.Time

	inFlight atomic.Int64 // of the requests that began here
	held     timings
	_        [64]byte
}

func (c *ruleCounters) flying(clock func() time.Time) *placeCounters {
	return tally.Made(&c.places, func() *placeCounters {
		p := new(placeCounters)
		for i := range p.stripes {
			p.stripes[i].all, p.stripes[i].clock = p, clock
		}
		return p
	})
}

// Places implements [engine.PlaceObserver].
func (m *Metrics) Places(rule string) engine.PlaceCounter {
	c, _ := m.rules.Load().ByID(rule)
	return &c.flying(m.options.Clock).stripes[rand.Uint32()%ruleStripes]
}

// Reach implements [engine.PlaceCounter]. Prometheus cannot have a series for each client.
func (s *placeStripe) Reach(int64) {}

// Take implements [engine.PlaceCounter].
func (s *placeStripe) Take() { s.inFlight.Add(1) }

// Leave implements [engine.PlaceCounter].
func (s *placeStripe) Leave(held time.Duration) {
	s.inFlight.Add(-1)
	s.End(held)
}

// Hold implements [engine.PlaceCounter].
func (s *placeStripe) Hold(n int64, until weir.Micros) { s.all.held.Add(n, s.clock(), until.Time()) }

// End implements [engine.PlaceCounter].
func (s *placeStripe) End(held time.Duration) { s.held.observe(heldBounds[:], held) }

// collect shows the places of a rule, if it limits them.
func (p *placeCounters) collect(ch chan<- prometheus.Metric, label string) {
	if p == nil {
		return
	}
	inFlight, _ := p.held.Take(p.stripes[0].clock())
	all := histogram{bounds: heldBounds[:]}
	for i := range p.stripes {
		inFlight += p.stripes[i].inFlight.Load()
		all.add(&p.stripes[i].held)
	}
	gauge(ch, inFlightDesc, float64(inFlight), label)
	ch <- all.metric(inFlightSecondsDesc, label)
}
