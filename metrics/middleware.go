package metrics

import (
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

var _ engine.AdaptiveObserver = (*Metrics)(nil)

// registered are what middleware has told of, usually one.
type registered[T any] struct {
	mu  sync.Mutex
	all []T
}

func (r *registered[T]) add(one T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

func (r *registered[T]) list() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

type adaptiveLimit struct {
	name  string
	state func() engine.AdaptiveLimit
}

// ObserveAdaptive implements [engine.AdaptiveObserver]. Limits with the same name are added up.
func (m *Metrics) ObserveAdaptive(name string, state func() engine.AdaptiveLimit) {
	m.adaptive.add(adaptiveLimit{name, state})
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
	for _, l := range c.adaptive.list() {
		add(l.name, l.state())
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		gauge(ch, adaptiveDesc, float64(sums[name].Limit), name)
		gauge(ch, adaptiveInFlightDesc, float64(sums[name].InFlight), name)
		counter(ch, adaptiveDeniedDesc, sums[name].Denied, name)
	}
}

var _ engine.ProtectionObserver = (*Metrics)(nil)

var (
	protectDesc     = desc("protect_usage", "Share of the CPU and of the memory that is used, smoothed.", "resource")
	protectShedDesc = desc("protect_shed_total", "Requests that were shed because the process used too much CPU or memory.", "priority")
)

// ObserveProtection implements [engine.ProtectionObserver].
func (m *Metrics) ObserveProtection(state func() engine.Protection) { m.protections.add(state) }

// collectProtection shows nothing in a process that is not protected.
func (c *collector) collectProtection(ch chan<- prometheus.Metric) {
	all := c.protections.list()
	if len(all) == 0 {
		return
	}
	var cpu, memory float64
	var shed [rule.Critical + 1]uint64
	for _, state := range all {
		p := state()
		cpu, memory = math.Max(cpu, p.CPU), math.Max(memory, p.Memory) // they are of one process
		for priority, n := range p.Shed {
			shed[priority] += n
		}
	}
	gauge(ch, protectDesc, cpu, "cpu")
	gauge(ch, protectDesc, memory, "memory")
	for p := rule.Low; p <= rule.Critical; p++ {
		counter(ch, protectShedDesc, shed[p], p.String())
	}
}
