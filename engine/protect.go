package engine

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/weirhq/weir/internal/priority"
	"github.com/weirhq/weir/internal/protect"
	"github.com/weirhq/weir/rule"
)

// Protect is how much of its CPU time and memory a process may use, as shares from 0 to 1, before
// requests are shed: first those of low priority, never critical ones. 0 is no limit. What a
// process has is limited by its cgroup, by those above, and by the machine; the limit of which the
// largest share is used counts. It needs Linux.
type Protect struct{ CPU, Memory float64 }

// Protection is the state of a process that sheds requests.
type Protection struct {
	CPU, Memory float64                  // what is used, as a share of what there is, smoothed
	Limits      Protect                  // above which requests are shed
	Shed        map[rule.Priority]uint64 // requests since the start
}

// ProtectionObserver is an [Observer] that also shows what a process sheds.
type ProtectionObserver interface {
	Observer

	// ObserveProtection is called once for each gate that sheds. State returns its state at
	// any time.
	ObserveProtection(state func() Protection)
}

// Protect lets the gate shed requests, before anything is charged. Clients that are exempt are
// not shed, nor is a further part of a request. Call it before the first request. The logger gets
// a record of what limits were found, and when requests are shed; nil is slog.Default().
func (g *Gate) Protect(p Protect, logger *slog.Logger) error {
	s, err := protect.New(protect.Limits(p), cmp.Or(logger, slog.Default()))
	if s == nil || err != nil {
		return err
	}
	g.shedder, g.protect = s, p
	for _, o := range g.engine.observers {
		if o, ok := o.(ProtectionObserver); ok {
			o.ObserveProtection(g.Protection)
		}
	}
	return nil
}

// Protection returns the state after [Gate.Protect].
func (g *Gate) Protection() Protection {
	s := g.shedder.Stats()
	p := Protection{CPU: s.CPU, Memory: s.Memory, Limits: g.protect, Shed: map[rule.Priority]uint64{}}
	for c, n := range s.Shed {
		p.Shed[rule.Low+rule.Priority(c)] = n
	}
	return p
}

// sheds reports whether a request is shed, and then says so in its verdict.
func (g *Gate) sheds(v *Verdict) bool {
	if g.shedder.Allow(priority.Class(v.Priority - rule.Low)) {
		return false
	}
	v.clearResults()
	v.Reason = Overloaded
	return true
}

// clearResults forgets the limits that apply.
func (v *Verdict) clearResults() {
	clear(v.Results)
	v.Results, v.upTo = v.Results[:0], [places]int{}
	v.penalties, v.places, v.warns, v.waitUpTo = 0, 0, false, 0
}

// DescribeOverload returns the Denial for a request that cannot be served because the process or
// what it protects is overloaded.
func DescribeOverload(v *Verdict) Denial {
	return Denial{
		Verdict: v, Cause: ReducedCapacity, RetryAfter: time.Second,
		Detail: "The server is overloaded; try again soon.",
	}
}
