package stats

import (
	"maps"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/tally"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// index finds the counters of a rule. It never changes.
type index struct {
	*tally.Index[ruleIndex]
	lists *rule.Table
}

// ruleIndex is where the counters of a rule are.
type ruleIndex struct {
	id     string
	number int       // of the rule, in the index
	lines  []*line   // of its tiers: that of "" is the first, of archive.Other the last if there are any
	limits [][]limit // of its tiers
	keyed  bool      // its keys tell clients apart
	shadow bool      // it denies nothing
	levels *tally.Levels
	money  string // the currency whose millionths its units are, or ""
}

// limit is a limit of a tier.
type limit struct {
	*weir.Compiled
	period int64 // microseconds
}

// maxTiers bounds the tiers of a rule that are counted apart.
const maxTiers = 16

// newIndex indexes the first rules of a table and the first that come with
// demands, with lines from a function.
func newIndex(table *rule.Table, demanded []*rule.Entry, before *index, most int, lineOf func(archive.Line) *line) *index {
	var rules tally.Rules[ruleIndex]
	inTable := map[*rule.Entry]bool{}
	if table != nil {
		for _, e := range table.Rules() {
			if e.Mode != rule.Off {
				inTable[e] = true
				rules.Entries = append(rules.Entries, e)
			}
		}
	}
	rules.Entries = append(rules.Entries, demanded...)
	// What comes with demands has no tiers, and its limits are not known.
	plain := func(id string) *ruleIndex {
		return &ruleIndex{id: id, keyed: true, lines: []*line{lineOf(archive.Line{Rule: id})}, limits: make([][]limit, 1)}
	}
	rules.Most, rules.Other = most, plain(archive.Other)
	rules.Make = func(e *rule.Entry, number int) *ruleIndex {
		p := plain(e.ID)
		if inTable[e] {
			p = indexRule(e, lineOf)
		}
		p.number, p.shadow = number, !e.Mode.Denies()
		if before != nil {
			if had, own := before.ByID(e.ID); own {
				p.levels = had.levels
			}
		}
		p.levels = p.levels.For(e)
		return p
	}
	if before != nil {
		rules.Before = before.Index
	}
	x := &index{rules.Index(), table}
	rules.Other.number = len(x.All) - 1
	return x
}

// indexRule makes the index of a rule with its tiers.
func indexRule(e *rule.Entry, lineOf func(archive.Line) *line) *ruleIndex {
	p := &ruleIndex{id: e.ID, money: e.Money()}
	for _, source := range e.Key {
		p.keyed = p.keyed || source.Kind != rule.Global
	}
	tiers := slices.Sorted(maps.Keys(e.Tiers))
	for _, tier := range append([]string{""}, tiers[:min(len(tiers), maxTiers)]...) {
		p.lines = append(p.lines, lineOf(archive.Line{Rule: p.id, Tier: tier}))
		var limits []limit
		for _, l := range e.Limits("", tier) {
			limits = append(limits, limit{l, int64(l.Limit().Period / time.Microsecond)})
		}
		p.limits = append(p.limits, limits)
	}
	// The limits of any other tier are those of "".
	p.lines = append(p.lines, lineOf(archive.Line{Rule: p.id, Tier: archive.Other}))
	p.limits = append(p.limits, p.limits[0])
	return p
}

// nameOf is the name under which a rule is counted.
func (x *index) nameOf(id string) string {
	p, _ := x.ByID(id)
	return p.id
}

// tier returns which of the rule's a request is counted as.
func (p *ruleIndex) tier(name string) int {
	if name == "" || len(p.lines) == 1 {
		return 0
	}
	for i := 1; i < len(p.lines)-1; i++ {
		if p.lines[i].Tier == name {
			return i
		}
	}
	return len(p.lines) - 1
}

// limit is a limit that is in force, and its currency if it is one of money; nil if there is no such limit.
func (x *index) limit(id string, q archive.Quota) (l *weir.Compiled, money string) {
	if p, own := x.ByID(id); own {
		for tier, line := range p.lines {
			for _, l := range p.limits[tier] {
				if line.Tier == q.Tier && l.period == q.Period && l.Algorithm() != weir.InFlight {
					return l.Compiled, p.money
				}
			}
		}
	}
	return nil, ""
}
