package match

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
)

// Find appends every rule whose conditions the request meets, in their order, each once.
//
// It allocates nothing but room in hits, unless the client writes its method, host
// or path in an unusual way.
func (x *Index[T]) Find(hits []T, req Request) []T {
	m := search[T]{Index: x, attributes: req.Attributes, method: x.method(req.Method), hits: hits, before: len(hits)}
	if x.hosts && req.Host != "" {
		m.host = CanonicalHost(req.Host)
		m.hash = maphash.String(x.seed, m.host)
	}
	m.collect(&x.anywhere)
	if req.Path != "" {
		m.paths(req.Path)
	}
	return m.result()
}

// paths finds the rules for a path as a client writes it. One that is written as in a rule need
// not be read, if the rules for it are known to be all.
func (m *search[T]) paths(path string) {
	g := m.spelt(path)
	if g != nil && g.whole {
		m.collect(g)
		return
	}
	w := readPath(path, m.ignoreCase)
	if w.odd != 0 {
		m.odd = true
		for _, path := range w.readings() {
			m.path(path, m.spelt(path))
		}
		return
	}
	if w.path != path {
		g = m.spelt(w.path)
	}
	m.path(w.path, g)
}

// spelt returns the rules that spell a path out, or nil.
func (m *search[T]) spelt(path string) *group {
	return m.groups.findEdge(m.exact, path, maphash.String(m.seed, path))
}

// method returns the bit of a method, 0 for one that no rule asks for.
func (x *places) method(name string) uint64 {
	for i := range x.methods { // there are few, and nearly all are written as they should be
		if x.methods[i] == name {
			return 1 << i
		}
	}
	if upper := strings.ToUpper(name); upper != name {
		return x.method(upper)
	}
	return 0
}

// search is one request on its way through the index.
type search[T any] struct {
	*Index[T]
	attributes map[string]string
	method     uint64 // one bit, or none
	host       string // canonical
	hash       uint64 // of the host
	odd        bool   // the path has several readings

	found  [16]member // in order, each rule once
	n      int        // how many there are
	hits   []T
	before int // how many hits there were
}

// path finds the rules for one reading of the path, of which some may spell it out.
func (m *search[T]) path(path string, g *group) {
	if g != nil {
		if m.collect(g); g.whole {
			return
		}
	}
	m.walk(m.root, path)
}

// walk follows a path from a junction on.
func (m *search[T]) walk(j *junction, path string) {
	for {
		if j.tail != 0 {
			var ok bool
			if path, ok = follow(m.tails[j.tail-1].segments, path); !ok {
				return
			}
		}
		m.collect(&j.rest)
		segment, rest := cutSegment(path)
		if segment == "" {
			m.collect(&j.here)
			return
		}
		var named *junction
		if j.id != 0 {
			named = m.junctions.findEdge(j.id, segment, maphash.String(m.seed, segment))
		}
		switch {
		case named == nil && j.param == nil:
			return
		case named == nil:
			j = j.param
		case j.param == nil:
			j = named
		default:
			m.walk(j.param, rest)
			j = named
		}
		path = rest
	}
}

// collect adds those of a group whose conditions are met.
func (m *search[T]) collect(g *group) {
	for {
		for i := g.at; m.members[i] != 0; i++ {
			m.try(m.members[i], g.verify)
		}
		s := g.split
		if s == nil {
			return
		}
		switch s.by {
		case needHost:
			m.byHost(s)
		case needMethod:
			if bit := bits.TrailingZeros64(m.method); bit < len(s.methods) {
				m.collect(&s.methods[bit])
			}
		case needAttributes:
			m.byAttribute(s)
		}
		g = &s.other
	}
}

// try adds a rule if it meets the conditions that the index did not answer.
func (m *search[T]) try(one member, verify needs) {
	if verify != 0 && !m.meets(one.number(), verify) {
		return
	}
	if m.odd {
		one = one.unrouted() // readings may have different routes
	}
	at := m.n
	for at > 0 && m.found[at-1] > one {
		at--
	}
	switch { // a rule with several values, or of a path with several readings, is found twice
	case at > 0 && m.found[at-1].number() == one.number():
		return
	case at < m.n && m.found[at].number() == one.number():
		m.found[at] = one // by a pattern that is more specific
		return
	case m.n == len(m.found):
		m.flush()
		at = 0
	}
	for i := m.n; i > at; i-- {
		m.found[i] = m.found[i-1]
	}
	m.found[at] = one
	m.n++
}

// flush makes room for more.
func (m *search[T]) flush() {
	for _, one := range m.found[:m.n] {
		m.hits = append(m.hits, m.at(m.rules[one.number()-1], one.route()))
	}
	m.n = 0
}

// result is the hits, in order and each once, with its most specific route. Those that were
// found after others had to make room may be out of order, or there twice.
func (m *search[T]) result() []T {
	small := len(m.hits) == m.before
	m.flush()
	if small {
		return m.hits
	}
	added := m.hits[m.before:]
	slices.SortFunc(added, func(a, b T) int {
		placeA, routeA := m.order(a)
		placeB, routeB := m.order(b)
		return cmp.Or(cmp.Compare(placeA, placeB), cmp.Compare(routeA, routeB))
	})
	return m.hits[:m.before+len(slices.CompactFunc(added, func(a, b T) bool {
		placeA, _ := m.order(a)
		placeB, _ := m.order(b)
		return placeA == placeB
	}))]
}

// byHost goes on by the whole name, and by each that it is below of.
func (m *search[T]) byHost(s *split) {
	if m.host == "" {
		return
	}
	if g := m.groups.findEdge(s.exact, m.host, m.hash); g != nil {
		m.collect(g)
	}
	if s.below == 0 {
		return
	}
	parent := parentOf(m.host, len(m.host))
	for range s.depth {
		if parent == "" {
			return
		}
		if g := m.groups.findEdge(s.below, parent, maphash.String(m.seed, parent)); g != nil {
			m.collect(g)
		}
		parent = parentOf(m.host, len(m.host)-len(parent)-1)
	}
}

// byAttribute asks for each name that the split has, or that the request has,
// whichever are fewer.
func (m *search[T]) byAttribute(s *split) {
	if len(s.names) <= len(m.attributes) {
		for i := range s.names {
			m.byValue(&s.names[i], m.attributes[s.names[i].name])
		}
		return
	}
	for name, value := range m.attributes {
		if i, found := s.byName[name]; found {
			m.byValue(&s.names[i], value)
		}
	}
}

func (m *search[T]) byValue(a *attribute, value string) {
	if value == "" {
		return
	}
	m.collect(&a.any)
	if g := m.groups.findEdge(a.values, value, maphash.String(m.seed, value)); g != nil {
		m.collect(g)
	}
}

// meets verifies conditions that the index did not answer.
func (m *search[T]) meets(number int32, verify needs) bool {
	if want := m.wants[number-1]; want != 0 && want&m.method == 0 {
		return false
	}
	if verify == needMethod {
		return true // without a look at the rule, which may be out of the cache
	}
	c := m.ready[number-1]
	return (c.hosts == nil || c.hosts.contain(m.host)) && c.MeetsAttributes(m.attributes)
}

// MeetsAttributes reports whether attributes meet the conditions on them.
func (c *Rule) MeetsAttributes(attributes map[string]string) bool {
	for i := range c.attributes {
		if !c.attributes[i].met(attributes) {
			return false
		}
	}
	return true
}
