package tally

import (
	"slices"
	"sync/atomic"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// Levels count how often each level of a rule has denied. Which levels there are does not change, so that it is read without a
// lock. Nil has none.
type Levels struct {
	names  []string
	denied []*atomic.Uint64
}

// For returns the counters of a rule that has become another one: its levels keep their counts, and share them with l.
func (l *Levels) For(e *rule.Entry) *Levels {
	names := e.Levels()
	if len(names) == 0 {
		return nil
	}
	next := &Levels{names: names}
	for _, name := range names {
		n := new(atomic.Uint64)
		if l != nil {
			if i := slices.Index(l.names, name); i >= 0 {
				n = l.denied[i]
			}
		}
		next.denied = append(next.denied, n)
	}
	return next
}

// Deny counts each level once that denies, or would deny, by some of the results of the rule.
func (l *Levels) Deny(results []engine.Result) {
	if l == nil {
		return
	}
	var counted [rule.MaxLine]bool
	for i := range results {
		if r := &results[i]; !r.Allowed && r.Asked {
			if n := slices.Index(l.names, r.Level()); n >= 0 && !counted[n] {
				counted[n] = true
				l.denied[n].Add(1)
			}
		}
	}
}

// All yields each level with its count, from the top down.
func (l *Levels) All(yield func(string, *atomic.Uint64) bool) {
	if l == nil {
		return
	}
	for i, name := range l.names {
		if !yield(name, l.denied[i]) {
			return
		}
	}
}
