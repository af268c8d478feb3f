package stats

import (
	"maps"
	"math/bits"
	"slices"
	"time"
	"unsafe"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// index finds the place of a rule's counters by its pointer. It never changes.
type index struct {
	table []placed // open addressing; its length is a power of two
	shift uint
	rules []*place          // the last one is for all that are not known
	byID  map[string]*place // without that one
	lists *rule.Table
}

type placed struct {
	rule  *rule.Entry
	place *place
	aged  bool // the rule is of the index before
}

// place is where the counters of a rule are.
type place struct {
	id     string
	number int       // of the rule
	lines  []*line   // of its tiers: that of "" is the first, of archive.Other the last if there are any
	limits [][]limit // of its tiers
	keyed  bool      // its keys tell clients apart
	shadow bool      // it denies nothing
}

// limit is a limit of a tier.
type limit struct {
	*weir.Compiled
	period int64 // microseconds
}

// maxTiers bounds the tiers of a rule that are counted apart.
const maxTiers = 16

// newIndex makes places for the first rules of a table and the first that come with
// demands, with lines from a function. The rules of the index before are still found, as
// long as the rule has its id: their verdicts may still be coming.
func newIndex(table *rule.Table, demanded []*rule.Entry, before *index, most int, lineOf func(archive.Line) *line) *index {
	byID := map[string]*place{}
	x := &index{lists: table, byID: byID}
	var all []placed
	if table != nil {
		for _, c := range table.Rules() {
			if c.Mode == rule.Off || len(x.rules) == most {
				continue
			}
			p := x.add(c, lineOf)
			byID[p.id] = p
			all = append(all, placed{rule: c, place: p})
		}
	}
	for _, c := range demanded {
		p := byID[c.ID]
		if p == nil && len(x.rules) < most {
			p = x.addPlain(c.ID, lineOf)
			p.shadow = !c.Mode.Denies()
			byID[p.id] = p
		}
		if p != nil {
			all = append(all, placed{rule: c, place: p})
		}
	}
	x.addPlain(archive.Other, lineOf)
	if before != nil {
		known := map[*rule.Entry]bool{}
		for _, p := range all {
			known[p.rule] = true
		}
		for _, old := range before.table {
			if old.rule == nil || old.aged || known[old.rule] {
				continue
			}
			if p := byID[old.place.id]; p != nil {
				all = append(all, placed{old.rule, p, true})
			}
		}
	}
	x.fill(all)
	return x
}

// add makes a place for a rule.
func (x *index) add(c *rule.Entry, lineOf func(archive.Line) *line) *place {
	p := &place{id: c.ID, number: len(x.rules), shadow: !c.Mode.Denies()}
	for _, source := range c.Key {
		p.keyed = p.keyed || source.Kind != rule.Global
	}
	tiers := slices.Sorted(maps.Keys(c.Tiers))
	tiers = append([]string{""}, tiers[:min(len(tiers), maxTiers)]...)
	for _, tier := range tiers {
		p.lines = append(p.lines, lineOf(archive.Line{Rule: p.id, Tier: tier}))
		var limits []limit
		for _, l := range c.Limits("", tier) {
			limits = append(limits, limit{l, int64(l.Limit().Period / time.Microsecond)})
		}
		p.limits = append(p.limits, limits)
	}
	// The limits of any other tier are those of "".
	p.lines = append(p.lines, lineOf(archive.Line{Rule: p.id, Tier: archive.Other}))
	p.limits = append(p.limits, p.limits[0])
	x.rules = append(x.rules, p)
	return p
}

// addPlain makes a place for what has no tiers, and whose limits are not known.
func (x *index) addPlain(id string, lineOf func(archive.Line) *line) *place {
	p := &place{id: id, number: len(x.rules), keyed: true, lines: []*line{lineOf(archive.Line{Rule: id})}, limits: make([][]limit, 1)}
	x.rules = append(x.rules, p)
	return p
}

func (x *index) fill(all []placed) {
	size := 1 << bits.Len(uint(2*len(all)+1))
	x.table, x.shift = make([]placed, size), uint(64-bits.Len(uint(size-1)))
	for _, p := range all {
		i := x.hash(p.rule)
		for x.table[i].rule != nil {
			i = (i + 1) & uint(size-1)
		}
		x.table[i] = p
	}
}

// hash picks a slot by the address, which does not change as long as the index lives.
func (x *index) hash(c *rule.Entry) uint {
	return uint(uint64(uintptr(unsafe.Pointer(c))) * golden >> x.shift)
}

func (x *index) find(c *rule.Entry) *place {
	for i := x.hash(c); ; i = (i + 1) & uint(len(x.table)-1) {
		switch found := &x.table[i]; found.rule {
		case c:
			return found.place
		case nil:
			return x.rules[len(x.rules)-1]
		}
	}
}

// tier returns which of the rule's a request is counted as.
func (p *place) tier(name string) int {
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

// shadows reports whether a rule that is in force denies nothing.
func (x *index) shadows(id string) bool {
	p := x.byID[id]
	return p != nil && p.shadow
}
