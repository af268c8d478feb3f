package match

import (
	"math/bits"
	"slices"
)

const (
	// few rules are tried one by one; to look them up would take as long.
	few = 4

	// maxEntries is how often a rule may be entered because its conditions have
	// several values each. Beyond, it is entered by fewer conditions, and the others
	// are verified. A single long list is always entered in full: that is no more
	// than what was written.
	maxEntries = 64
)

// candidate is a rule on its way into a group, and what is known to be met there.
type candidate struct {
	rule    *Rule
	number  int32
	route   Route    // by which it is entered; 0 for none
	met     needs    // host and method
	named   []string // attributes
	entries int      // how often it was entered so far
	most    int      // how often it may be
}

func newCandidate(c *Rule, number int32) candidate {
	most := max(maxEntries, len(c.paths), c.hosts.count(), bits.OnesCount64(c.methods))
	for _, a := range c.attributes {
		most = max(most, len(a.values))
	}
	return candidate{rule: c, number: number, entries: max(1, len(c.paths)), most: most}
}

// open is what remains to be verified.
func (c candidate) open() needs {
	left := c.rule.needs &^ c.met
	if len(c.named) == len(c.rule.attributes) {
		left &^= needAttributes
	}
	return left
}

// times is the candidate entered so often once more, if that is not too often.
func (c candidate) times(n int) (candidate, bool) {
	c.entries *= n
	return c, n > 0 && c.entries <= c.most
}

// group makes a group of candidates, which are in the order of the document.
func (b *builder) group(list []candidate) group {
	if len(list) > few {
		for _, by := range []func([]candidate) *split{b.byHost, b.byMethod, b.byAttribute} {
			if s := by(list); s != nil {
				return group{split: s}
			}
		}
	}
	return b.leaf(list)
}

// leaf is a group that is tried rule by rule.
func (b *builder) leaf(list []candidate) group {
	if len(list) == 0 {
		return group{}
	}
	g := group{at: uint32(len(b.members))}
	for _, c := range list {
		b.members = append(b.members, newMember(c.number, c.route))
		g.verify |= c.open()
	}
	b.members = append(b.members, 0)
	return g
}

// groupEdges makes a group of each list and a way to it from the owner.
func (b *builder) groupEdges(owner uint32, lists map[string][]candidate) {
	for name, list := range lists {
		b.groups = append(b.groups, owned[group]{owner, edge[group]{b.intern(name), b.group(list)}})
	}
}

func (b *builder) byHost(list []candidate) *split {
	s := &split{by: needHost}
	exact, below, other := map[string][]candidate{}, map[string][]candidate{}, []candidate(nil)
	for _, c := range list {
		entered, ok := c.times(c.rule.hosts.count())
		if !ok || c.met&needHost != 0 {
			other = append(other, c)
			continue
		}
		entered.met |= needHost
		for _, host := range c.rule.hosts.exact {
			exact[host] = append(exact[host], entered)
		}
		for _, parent := range c.rule.hosts.below {
			below[parent] = append(below[parent], entered)
			s.depth = max(s.depth, c.rule.hosts.labels)
		}
	}
	if len(other) == len(list) {
		return nil
	}
	s.exact = b.owner()
	b.groupEdges(s.exact, exact)
	if len(below) > 0 {
		s.below = b.owner()
		b.groupEdges(s.below, below)
	}
	s.other = b.group(other)
	return s
}

func (b *builder) byMethod(list []candidate) *split {
	lists, used, other := [MaxMethods][]candidate{}, uint64(0), []candidate(nil)
	for _, c := range list {
		entered, ok := c.times(bits.OnesCount64(c.rule.methods))
		if !ok || c.met&needMethod != 0 {
			other = append(other, c)
			continue
		}
		entered.met |= needMethod
		used |= c.rule.methods
		for left := c.rule.methods; left != 0; left &= left - 1 {
			bit := bits.TrailingZeros64(left)
			lists[bit] = append(lists[bit], entered)
		}
	}
	if len(other) == len(list) {
		return nil
	}
	s := &split{by: needMethod}
	for _, l := range lists[:bits.Len64(used)] {
		s.methods = append(s.methods, b.group(l))
	}
	s.other = b.group(other)
	return s
}

func (b *builder) byAttribute(list []candidate) *split {
	type byValue struct {
		values map[string][]candidate
		any    []candidate
	}
	byName, other := map[string]*byValue{}, []candidate(nil)
	for _, c := range list {
		a, entered, ok := b.rarest(c)
		if !ok {
			other = append(other, c)
			continue
		}
		if byName[a.name] == nil {
			byName[a.name] = &byValue{values: map[string][]candidate{}}
		}
		to := byName[a.name]
		if len(a.values) == 0 {
			to.any = append(to.any, entered)
		}
		for _, v := range a.values {
			to.values[v] = append(to.values[v], entered)
		}
	}
	if len(byName) == 0 {
		return nil
	}
	s := &split{by: needAttributes, byName: map[string]int{}}
	for name, lists := range byName {
		a := attribute{name: name, values: b.owner(), any: b.group(lists.any)}
		b.groupEdges(a.values, lists.values)
		s.byName[name] = len(s.names)
		s.names = append(s.names, a)
	}
	s.other = b.group(other)
	return s
}

// pair is a value of an attribute, or any of its values.
type pair struct {
	name, value string
	any         bool
}

func (c *condition) pairs() []pair {
	if len(c.values) == 0 {
		return []pair{{name: c.name, any: true}}
	}
	list := make([]pair, len(c.values))
	for i, v := range c.values {
		list[i] = pair{name: c.name, value: v}
	}
	return list
}

// commonness counts the rules that ask for each value of an attribute.
func commonness(rules []*Rule) map[pair]int {
	count := map[pair]int{}
	for _, c := range rules {
		if c == nil {
			continue
		}
		for i := range c.attributes {
			for _, p := range c.attributes[i].pairs() {
				count[p]++
			}
		}
	}
	return count
}

// rarest is the condition of the candidate by which the fewest others are found,
// of those by which it was not entered yet.
func (b *builder) rarest(c candidate) (best *condition, entered candidate, ok bool) {
	least := 0
	for i := range c.rule.attributes {
		a := &c.rule.attributes[i]
		once, allowed := c.times(max(1, len(a.values)))
		if !allowed || slices.Contains(c.named, a.name) {
			continue
		}
		others := 0
		for _, p := range a.pairs() {
			others += b.common[p]
		}
		if !ok || others < least {
			best, entered, least, ok = a, once, others, true
		}
	}
	if ok {
		entered.named = append(slices.Clip(c.named), best.name)
	}
	return best, entered, ok
}
