package rule

import "slices"

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
func commonness(rules []*Entry) map[pair]int {
	count := map[pair]int{}
	for _, c := range rules {
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
