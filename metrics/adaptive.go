package metrics

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/engine"
)

var _ engine.AdaptiveObserver = (*Metrics)(nil)

// adaptiveLimits are those of middleware.
type adaptiveLimits struct {
	mu  sync.Mutex
	all []adaptiveLimit
}

type adaptiveLimit struct {
	name  string
	state func() engine.AdaptiveLimit
}

// ObserveAdaptive implements [engine.AdaptiveObserver]. Limits with the same name are added up.
func (m *Metrics) ObserveAdaptive(name string, state func() engine.AdaptiveLimit) {
	m.adaptive.mu.Lock()
	defer m.adaptive.mu.Unlock()
	m.adaptive.all = append(m.adaptive.all, adaptiveLimit{name, state})
}

func (c *collector) collectAdaptive(ch chan<- prometheus.Metric) {
	sums := map[string]engine.AdaptiveLimit{}
	add := func(name string, l engine.AdaptiveLimit) {
		s := sums[name]
		sums[name] = engine.AdaptiveLimit{Limit: s.Limit + l.Limit, InFlight: s.InFlight + l.InFlight, Denied: s.Denied + l.Denied}
	}
	if c.options.Adaptive != nil {
		for _, l := range c.options.Adaptive() {
			add(l.Upstream, l.AdaptiveLimit)
		}
	}
	c.adaptive.mu.Lock()
	all := slices.Clone(c.adaptive.all)
	c.adaptive.mu.Unlock()
	for _, l := range all {
		add(l.name, l.state())
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		gauge(ch, adaptiveDesc, float64(sums[name].Limit), name)
		gauge(ch, adaptiveInFlightDesc, float64(sums[name].InFlight), name)
		counter(ch, adaptiveDeniedDesc, sums[name].Denied, name)
	}
}
