package metrics

import (
	"math"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

var _ engine.ProtectionObserver = (*Metrics)(nil)

var (
	protectDesc     = desc("protect_usage", "Share of the CPU and of the memory that is used, smoothed.", "resource")
	protectShedDesc = desc("protect_shed_total", "Requests that were shed because the process used too much CPU or memory.", "priority")
)

// protections are those of middleware, usually one.
type protections struct {
	mu  sync.Mutex
	all []func() engine.Protection
}

// ObserveProtection implements [engine.ProtectionObserver].
func (m *Metrics) ObserveProtection(state func() engine.Protection) {
	m.protections.mu.Lock()
	defer m.protections.mu.Unlock()
	m.protections.all = append(m.protections.all, state)
}

// collectProtection shows nothing in a process that is not protected.
func (c *collector) collectProtection(ch chan<- prometheus.Metric) {
	c.protections.mu.Lock()
	all := slices.Clone(c.protections.all)
	c.protections.mu.Unlock()
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
