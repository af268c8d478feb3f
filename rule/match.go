package rule

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
)

// Match appends every rule whose conditions the request meets, in the order of the
// document, each once; rules that are off are not among them. Whether a rule
// applies is then for [Entry.Identity] to say.
//
// It allocates nothing but room in hits, unless the client writes its method, host
// or path in an unusual way.
func (t *Table) Match(hits []*Entry, req *Request) []*Entry {
	x := t.index
	m := matching{index: x, req: req, method: x.method(req.Method), hits: hits, before: len(hits)}
	if x.hosts && req.Host != "" {
		m.host = CanonicalHost(req.Host)
		m.hash = maphash.String(x.seed, m.host)
	}
	m.collect(&x.anywhere)
	if req.Path != "" {
		w := readPath(req.Path, t.ignoreCase)
		if w.odd == 0 {
			m.path(w.path)
		} else {
			for _, path := range w.readings() {
				m.path(path)
			}
		}
	}
	return m.result()
}

// method returns the bit of a method, 0 for one that no rule asks for.
func (x *index) method(name string) uint64 {
	if len(x.methods) == 0 {
		return 0
	}
	return x.methods[strings.ToUpper(name)]
}

// matching is one request on its way through the index.
type matching struct {
	*index
	req    *Request
	method uint64 // one bit, or none
	host   string // canonical
	hash   uint64 // of the host

	found  [16]int32 // numbers of rules, not in order
	n      int       // how many there are
	hits   []*Entry
	before int // how many hits there were
}

// path finds the rules for one reading of the path.
func (m *matching) path(path string) {
	if g := m.groups.find(m.exact, path, maphash.String(m.seed, path)); g != nil {
		m.collect(g)
	}
	m.walk(m.root, path)
}

// walk follows a path from a junction on.
func (m *matching) walk(j *junction, path string) {
	for {
		if j.tail != 0 {
			var ok bool
			if path, ok = m.tails[j.tail-1].follow(path); !ok {
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
			named = m.junctions.find(j.id, segment, maphash.String(m.seed, segment))
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
func (m *matching) collect(g *group) {
	for {
		for i := g.at; m.numbers[i] != 0; i++ {
			m.try(m.numbers[i], g.verify)
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
func (m *matching) try(number int32, verify needs) {
	if verify != 0 && !m.meets(number, verify) {
		return
	}
	if m.n == len(m.found) {
		m.flush()
	}
	m.found[m.n] = number
	m.n++
}

// flush makes room for more.
func (m *matching) flush() {
	for _, number := range m.found[:m.n] {
		m.hits = append(m.hits, m.rules[number-1])
	}
	m.n = 0
}

// result is the hits, in order and each once: a rule with several values, or of a
// path with several readings, may have been found twice.
func (m *matching) result() []*Entry {
	small := len(m.hits) == m.before
	if small {
		found := m.found[:m.n]
		slices.Sort(found)
		m.n = len(slices.Compact(found))
	}
	m.flush()
	if small {
		return m.hits
	}
	added := m.hits[m.before:]
	slices.SortFunc(added, func(a, b *Entry) int { return cmp.Compare(a.order, b.order) })
	return m.hits[:m.before+len(slices.Compact(added))]
}
