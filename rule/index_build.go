package rule

import (
	"hash/maphash"
	"slices"
	"strings"
)

// builder makes an index.
type builder struct {
	numbers   []int32
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

func newIndex(rules []*Entry, methods map[string]uint64) *index {
	b := &builder{numbers: []int32{0}, names: map[string]string{}, tailOf: map[string]uint32{}, common: commonness(rules)}
	x := &index{rules: rules, wants: make([]uint64, len(rules)), seed: maphash.MakeSeed(), methods: methods, exact: b.owner()}
	top, exact, anywhere := new(draft), map[string][]candidate{}, []candidate(nil)
	for i, c := range rules {
		if c.Mode == Off {
			continue
		}
		x.wants[i] = c.methods
		entered := newCandidate(c, int32(i+1))
		if len(c.paths) == 0 {
			anywhere = append(anywhere, entered)
		}
		for _, p := range c.paths {
			if path, literal := p.literal(); literal {
				exact[path] = append(exact[path], entered)
			} else {
				top.add(p, entered)
			}
		}
		x.hosts = x.hosts || c.hosts != nil
	}
	x.anywhere = b.group(anywhere)
	b.groupEdges(x.exact, exact)
	x.root = b.junction(top)
	x.tails, x.numbers = b.tails, slices.Clip(b.numbers)
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
