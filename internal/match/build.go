package match

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
)

// builder makes an index.
type builder struct {
	members   []member
	junctions []owned[junction]
	groups    []owned[group]
	owners    uint32
	names     map[string]string // one copy of each
	tails     []pattern
	tailOf    map[string]uint32 // by their text
	common    map[pair]int      // how many rules ask for each value of an attribute
}

// draft is a junction whose children are still to come.
type draft struct {
	children map[string]*draft
	param    *draft
	here     []candidate
	rest     []candidate
}

// NewIndex makes the index of rules, whose conditions the compiler has made ready, each
// in the place of its rule; one whose conditions are nil is left out. The order is where
// among them a rule is, and the route at which Find has put it.
func NewIndex[T any](c *Compiler, rules []T, ready []*Rule, order func(T) (int, Route), at func(T, Route) T) *Index[T] {
	return &Index[T]{c.places(ready), rules, order, at}
}

func (c *Compiler) places(ready []*Rule) places {
	b := &builder{members: []member{0}, names: map[string]string{}, tailOf: map[string]uint32{}, common: commonness(ready)}
	x := places{ready: ready, wants: make([]uint64, len(ready)), seed: maphash.MakeSeed(), methods: c.methods, ignoreCase: c.IgnoreCase, exact: b.owner()}
	top, exact, anywhere := new(draft), map[string][]candidate{}, []candidate(nil)
	for i, c := range ready {
		if c == nil {
			continue
		}
		x.wants[i] = c.methods
		entered := newCandidate(c, int32(i+1))
		if len(c.paths) == 0 {
			anywhere = append(anywhere, entered)
		}
		for _, p := range c.paths {
			entered.route = Route(p.place) + 1
			if path, literal := p.literal(); literal {
				exact[path] = append(exact[path], entered)
			} else {
				top.add(p, entered)
			}
		}
		x.hosts = x.hosts || c.hosts != nil
	}
	x.anywhere = b.group(anywhere)
	for path, list := range exact {
		b.groups = append(b.groups, owned[group]{x.exact, edge[group]{b.intern(path), b.exactly(path, list, top, x.ignoreCase)}})
	}
	x.root = b.junction(top)
	x.tails, x.members = b.tails, slices.Clip(b.members)
	x.junctions = newEdges(x.seed, b.junctions)
	x.groups = newEdges(x.seed, b.groups)
	return x
}

func (d *draft) add(p pattern, c candidate) {
	for _, segment := range p.segments {
		d = d.child(segment)
	}
	if p.rest {
		d.rest = append(d.rest, c)
	} else {
		d.here = append(d.here, c)
	}
}

// exactly makes the group of a path that rules spell out. If few rules can match the path, by
// whatever pattern, the group has them all, so that the trie need not be followed.
func (b *builder) exactly(path string, list []candidate, top *draft, ignoreCase bool) group {
	if scanPath(path, ignoreCase) != 0 {
		return b.group(list) // it has several readings
	}
	all := top.collect(slices.Clone(list), path)
	if len(all) > few {
		return b.group(list)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.route, b.route))
	})
	all = slices.CompactFunc(all, func(a, b candidate) bool { return a.number == b.number }) // the most specific is the first
	g := b.leaf(all)
	g.whole = true
	return g
}

// collect appends what a path meets from here on, but no more than to see that it is not few.
func (d *draft) collect(all []candidate, path string) []candidate {
	all = append(all, d.rest...)
	segment, rest := cutSegment(path)
	switch {
	case len(all) > few:
		return all
	case segment == "":
		return append(all, d.here...)
	}
	for _, next := range []*draft{d.children[segment], d.param} {
		if next != nil && len(all) <= few {
			all = next.collect(all, rest)
		}
	}
	return all
}

func (d *draft) child(segment string) *draft {
	if segment == "" {
		if d.param == nil {
			d.param = new(draft)
		}
		return d.param
	}
	if d.children == nil {
		d.children = map[string]*draft{}
	}
	if d.children[segment] == nil {
		d.children[segment] = new(draft)
	}
	return d.children[segment]
}

func (b *builder) junction(d *draft) *junction {
	j := new(junction)
	if len(d.children) > 0 {
		j.id = b.owner()
	}
	j.here, j.rest = b.group(d.here), b.group(d.rest)
	if d.param != nil {
		j.param = b.next(d.param)
	}
	for name, child := range d.children {
		b.junctions = append(b.junctions, owned[junction]{j.id, edge[junction]{b.intern(name), *b.next(child)}})
	}
	return j
}

// owner numbers what has edges.
func (b *builder) owner() uint32 {
	b.owners++
	return b.owners
}

// intern returns one copy of each name, so that those that are everywhere, as v1,
// stay in the cache.
func (b *builder) intern(name string) string {
	if known, found := b.names[name]; found {
		return known
	}
	name = strings.Clone(name) // not a part of something longer
	b.names[name] = name
	return name
}

// next makes the junction that a segment leads to. If there is only one way on from
// it, as from /shops/7 to /shops/7/orders/{id}, it is where that way ends or forks,
// with what is between as its tail. Tails are shared, and so in the cache, where a
// junction for each step of each rule would not be.
func (b *builder) next(d *draft) *junction {
	last, tail := d, []string(nil)
	for {
		segment, child := last.onlyWay()
		if child == nil {
			break
		}
		tail, last = append(tail, b.intern(segment)), child
	}
	j := b.junction(last)
	if len(tail) > 0 {
		j.tail = b.tail(tail)
	}
	return j
}

// onlyWay is the only child of a draft at which no path ends, or nil.
func (d *draft) onlyWay() (segment string, child *draft) {
	switch {
	case len(d.here) > 0 || len(d.rest) > 0:
		return "", nil
	case len(d.children) == 0:
		return "", d.param
	case len(d.children) > 1 || d.param != nil:
		return "", nil
	}
	for segment, child = range d.children {
	}
	return segment, child
}

// tail numbers a tail, from 1; equal ones are one.
func (b *builder) tail(segments []string) uint32 {
	text := strings.Join(segments, "/")
	if b.tailOf[text] == 0 {
		b.tails = append(b.tails, pattern{segments: segments})
		b.tailOf[text] = uint32(len(b.tails))
	}
	return b.tailOf[text]
}
