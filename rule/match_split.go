package rule

import (
	"hash/maphash"
	"slices"
)

// byHost goes on by the whole name, and by each that it is below of.
func (m *matching) byHost(s *split) {
	if m.host == "" {
		return
	}
	if g := m.groups.find(s.exact, m.host, m.hash); g != nil {
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
		if g := m.groups.find(s.below, parent, maphash.String(m.seed, parent)); g != nil {
			m.collect(g)
		}
		parent = parentOf(m.host, len(m.host)-len(parent)-1)
	}
}

// byAttribute asks for each name that the split has, or that the request has,
// whichever are fewer.
func (m *matching) byAttribute(s *split) {
	if len(s.names) <= len(m.req.Attributes) {
		for i := range s.names {
			m.byValue(&s.names[i], m.req.Attributes[s.names[i].name])
		}
		return
	}
	for name, value := range m.req.Attributes {
		if i, found := s.byName[name]; found {
			m.byValue(&s.names[i], value)
		}
	}
}

func (m *matching) byValue(a *attribute, value string) {
	if value == "" {
		return
	}
	m.collect(&a.any)
	if g := m.groups.find(a.values, value, maphash.String(m.seed, value)); g != nil {
		m.collect(g)
	}
}

// meets verifies conditions that the index did not answer.
func (m *matching) meets(number int32, verify needs) bool {
	if want := m.wants[number-1]; want != 0 && want&m.method == 0 {
		return false
	}
	if verify == needMethod {
		return true // without a look at the rule, which may be out of the cache
	}
	c := m.rules[number-1]
	return (c.hosts == nil || c.hosts.contain(m.host)) && c.meetsAttributes(m.req)
}

func (c *Entry) meetsAttributes(req *Request) bool {
	for i := range c.attributes {
		if !c.attributes[i].met(req) {
			return false
		}
	}
	return true
}

// condition is what a rule wants of an attribute.
type condition struct {
	name   string
	values []string // sorted; any will do if there are none
}

func (c *condition) met(req *Request) bool {
	value := req.Attributes[c.name]
	if value == "" || len(c.values) == 0 {
		return value != ""
	}
	_, found := slices.BinarySearch(c.values, value)
	return found
}
