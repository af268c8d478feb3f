package rule

import (
	"fmt"
	"slices"
	"strings"
)

// Each of these says why a condition is not met, or "".

func (c *Entry) whyMethod(req *Request) string {
	method := strings.ToUpper(req.Method)
	wanted := c.Match.Methods
	if len(wanted) == 0 || slices.ContainsFunc(wanted, func(w string) bool { return strings.ToUpper(w) == method }) {
		return ""
	}
	return unmet("method", method, wanted)
}

func (c *Entry) whyHost(req *Request) string {
	host := CanonicalHost(req.Host)
	if c.hosts == nil || c.hosts.contain(host) {
		return ""
	}
	return unmet("host", host, c.Match.Hosts)
}

func (c *Entry) whyPath(req *Request, ignoreCase bool) string {
	if len(c.paths) == 0 {
		return ""
	}
	w := readPath(req.Path, ignoreCase)
	if w.path == "" {
		return unmet("path", "", c.Match.Paths)
	}
	for _, reading := range w.readings() {
		for _, p := range c.paths {
			if p.matches(reading) {
				return ""
			}
		}
	}
	return unmet("path", w.canonical(), c.Match.Paths)
}

func (c *Entry) whyAttributes(req *Request) (why []string) {
	for i := range c.attributes {
		if a := &c.attributes[i]; !a.met(req) {
			why = append(why, unmet("attribute "+a.name, req.Attributes[a.name], a.values))
		}
	}
	return why
}

// whyIdentity names the parts of the key that the request lacks.
func (c *Entry) whyIdentity(req *Request) (why []string) {
	for i := range c.key {
		if _, found := c.key[i].append(nil, req, 0); found == 0 {
			why = append(why, "the request has no "+c.key[i].describe()+", by which the rule counts")
		}
	}
	return why
}

func (p *part) describe() string {
	switch p.source.Kind {
	case IP:
		return "IP address"
	case User:
		return "user"
	case APIKey:
		return "API key"
	case Header:
		return "header " + p.source.Name
	case Cookie:
		return "cookie " + p.source.Name
	case Query:
		return "query parameter " + p.source.Name
	case Attribute:
		return "attribute " + p.source.Name
	}
	return "identity"
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
