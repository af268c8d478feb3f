// Package match finds the rules whose conditions a request meets: by method, host,
// path and attributes, in a time that does not depend on how many other rules there
// are. It knows how hosts and paths are read, and nothing of what a rule is for.
package match

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxMethods is how many different ones the rules of an index may ask for: a bit each.
const MaxMethods = 64

// Conditions say which requests are meant: those that meet every condition that is
// there. A condition with several values is met by any of them.
type Conditions struct {
	Methods    []string            // beside others, [Any] is every method
	Hosts      []string            // "*.example.com" is every name below; beside others, [Any] is every host
	Paths      []string            // "/users/{id}", "/api/**"
	Attributes map[string][]string // an attribute without values is met by any value, and so is one with [Any] beside others
}

// Request is what conditions are held against. What is not known is "".
type Request struct {
	Method, Host, Path string
	Attributes         map[string]string
}

// Rule is conditions made ready.
type Rule struct {
	needs      needs  // which of the following there are
	methods    uint64 // a bit each
	hosts      *hosts
	attributes []condition
	paths      []pattern // the most specific first

	names names

	conditions Conditions
	ignoreCase bool
}

// Compiler makes the conditions of rules ready that are looked up together.
type Compiler struct {
	IgnoreCase bool // of paths, in ASCII

	methods []string // in capitals; the bit of each is its place
}

// Compile makes conditions ready, which must not change afterwards.
func (c *Compiler) Compile(m Conditions) (*Rule, error) {
	out := &Rule{conditions: m, ignoreCase: c.IgnoreCase, names: newNames(m)}
	for _, name := range out.names.methods {
		bit, err := c.method(name)
		if err != nil {
			return nil, err
		}
		out.methods |= bit
	}
	for _, name := range m.Hosts {
		if err := checkHost(name); err != nil && (name != Any || len(m.Hosts) == 1) {
			return nil, err
		}
	}
	if out.names.anyMethod {
		out.methods = 0
	} else if out.methods != 0 {
		out.needs |= needMethod
	}
	if !out.names.anyHost && out.names.hosts != nil {
		out.hosts = out.names.hosts
		out.needs |= needHost
	}
	for _, text := range m.Paths {
		p, err := newPattern(text, c.IgnoreCase)
		if err != nil {
			return nil, err
		}
		out.paths = append(out.paths, p)
	}
	slices.SortStableFunc(out.paths, func(a, b pattern) int { return a.compare(&b) })
	for i := range out.paths {
		out.paths[i].place = int32(i)
	}
	var err error
	if out.attributes, err = newConditions(m.Attributes); len(out.attributes) > 0 {
		out.needs |= needAttributes
	}
	return out, err
}

// method returns the bit of a method that a rule asks for.
func (c *Compiler) method(name string) (uint64, error) {
	if name == "" {
		return 0, errors.New("method: the value is empty; write a method, or leave method out to match all methods")
	}
	at := slices.Index(c.methods, name)
	if at < 0 {
		if len(c.methods) == MaxMethods {
			return 0, fmt.Errorf("method: %s exceeds the maximum of %d different methods; remove some", name, MaxMethods)
		}
		at = len(c.methods)
		c.methods = append(c.methods, name)
	}
	return 1 << at, nil
}

// newConditions makes attributes ready, in the order of their names.
func newConditions(attributes map[string][]string) ([]condition, error) {
	var list []condition
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		values := sortedSet(slices.Clone(attributes[name]))
		if name == "" {
			return nil, errors.New("attributes: an attribute has no name; write one, or remove it")
		}
		if len(values) > 0 && values[0] == "" {
			return nil, fmt.Errorf("attributes: %s: an empty value never matches; remove it, or write no value to match any", name)
		}
		if NamesAny(values) {
			values = nil
		}
		list = append(list, condition{name, values})
	}
	return list, nil
}

// NamesAny reports whether [Any] is beside other values: it stands for those that are not named.
func NamesAny(values []string) bool { return len(values) > 1 && slices.Contains(values, Any) }

// condition is what a rule wants of an attribute.
type condition struct {
	name   string
	values []string // sorted; any will do if there are none
}

func (c *condition) met(attributes map[string]string) bool {
	value := attributes[c.name]
	if value == "" || len(c.values) == 0 {
		return value != ""
	}
	_, found := slices.BinarySearch(c.values, value)
	return found
}

// Unmet says of each condition that a request does not meet why, as in "method is GET,
// the rule wants POST".
func (r *Rule) Unmet(req Request) (why []string) {
	if method := strings.ToUpper(req.Method); r.needs&needMethod != 0 && !slices.Contains(r.names.methods, method) {
		why = append(why, unmet("method", method, r.conditions.Methods))
	}
	if host := CanonicalHost(req.Host); r.hosts != nil && !r.hosts.contain(host) {
		why = append(why, unmet("host", host, r.conditions.Hosts))
	}
	if len(r.paths) > 0 {
		path := readPath(req.Path, r.ignoreCase)
		matches := func(reading string) bool { return r.specific(reading) >= 0 }
		if path.path == "" || !slices.ContainsFunc(path.readings(), matches) {
			why = append(why, unmet("path", path.canonical(), r.conditions.Paths))
		}
	}
	for i := range r.attributes {
		if a := &r.attributes[i]; !a.met(req.Attributes) {
			why = append(why, unmet("attribute "+a.name, req.Attributes[a.name], a.values))
		}
	}
	return why
}

func unmet(what, is string, wanted []string) string {
	if is == "" {
		return fmt.Sprintf("%s is not known, the rule wants %s", what, oneOf(wanted))
	}
	return fmt.Sprintf("%s is %s, the rule wants %s", what, is, oneOf(wanted))
}

// oneOf lists the first of some alternatives.
func oneOf(values []string) string {
	const most = 5
	switch n := len(values); {
	case n == 0:
		return "any value"
	case n == 1:
		return values[0]
	case n > most:
		return fmt.Sprintf("%s or one of %d others", strings.Join(values[:most], ", "), n-most)
	default:
		return strings.Join(values[:n-1], ", ") + " or " + values[n-1]
	}
}
