package rule

import (
	"slices"

	"github.com/weirhq/weir"
)

// Every returns one limit of each kind that the rule may apply to anybody. Whoever
// forgives a client has to forgive it all of them: it may have changed its tier.
func (c *Entry) Every() []*weir.Compiled {
	var all []*weir.Compiled
	add := func(q quota) {
		for _, limit := range q {
			if !slices.ContainsFunc(all, func(l *weir.Compiled) bool { return l.Kind() == limit.Kind() }) {
				all = append(all, limit)
			}
		}
	}
	add(c.quota)
	for _, q := range c.tiers {
		add(q)
	}
	for _, q := range c.overrides {
		add(q)
	}
	slices.SortFunc(all, func(a, b *weir.Compiled) int { return int(a.Limit().Period - b.Limit().Period) })
	return all
}
