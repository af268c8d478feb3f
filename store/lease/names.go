package lease

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir"
)

// counts are of the limits with one name. What each check counts is in the entries, as long as these are there.
type counts struct{ local, denied, asked, returned, lost atomic.Int64 }

// names has the counts of limits by their names.
type names struct {
	mu  sync.Mutex
	all map[string]*counts
}

func (n *names) of(limit *weir.Compiled) *counts {
	name := limit.Limit().Name
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all[name] == nil && len(n.all) >= MaxNames {
		name = ""
	}
	c := n.all[name]
	if c == nil {
		if n.all == nil {
			n.all = make(map[string]*counts)
		}
		c = new(counts)
		n.all[name] = c
	}
	return c
}

// stats returns the numbers by name, with those of entries.
func (n *names) stats(entries map[*counts]*NameStats) (all []NameStats) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, c := range n.all {
		var s NameStats
		if of := entries[c]; of != nil {
			s = *of
		}
		s.Name = name
		s.Local += c.local.Load()
		s.Denied += c.denied.Load()
		s.Asked, s.Returned, s.Lost = c.asked.Load(), c.returned.Load(), c.lost.Load()
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b NameStats) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
