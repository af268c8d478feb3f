package metrics

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/tally"
)

var _ engine.PlaceObserver = (*Metrics)(nil)

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

	inFlight atomic.Int64                       // of the requests that began here
	buckets  [len(heldBounds) + 1]atomic.Uint64 // as in timings
	sum      atomic.Int64
	_        [64]byte
}

// flying returns the counters of places, which most rules never need.
func (c *ruleCounters) flying(clock func() time.Time) *placeCounters {
	if p := c.places.Load(); p != nil {
		return p
	}
	p := new(placeCounters)
	for i := range p.stripes {
		p.stripes[i].all, p.stripes[i].clock = p, clock
	}
	c.places.CompareAndSwap(nil, p)
	return c.places.Load()
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
func (s *placeStripe) End(held time.Duration) {
	s.buckets[bucketOf(heldBounds[:], held)].Add(1)
	s.sum.Add(int64(max(held, 0)))
}

// collect shows the places of a rule, if it limits them.
func (p *placeCounters) collect(ch chan<- prometheus.Metric, label string) {
	if p == nil {
		return
	}
	inFlight, _ := p.held.Take(p.stripes[0].clock())
	all := histogram{bounds: heldBounds[:]}
	for i := range p.stripes {
		inFlight += p.stripes[i].inFlight.Load()
		all.add(p.stripes[i].buckets[:], &p.stripes[i].sum)
	}
	gauge(ch, inFlightDesc, float64(inFlight), label)
	ch <- all.metric(inFlightSecondsDesc, label)
}
