package rule

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/match"
)

var matchFields = newTable(
	field[Match]{"method", func(p *parser, e *document.Element, path string, m *Match) {
		m.Methods = p.values(e, path, p.checkMethod)
	}, func(m *Match) *document.Element { return oneOrList(m.Methods) }},
	field[Match]{"host", func(p *parser, e *document.Element, path string, m *Match) {
		for _, host := range p.values(e, path, p.checkHost) {
			m.Hosts = append(m.Hosts, strings.ToLower(host))
		}
	}, func(m *Match) *document.Element { return oneOrList(m.Hosts) }},
	field[Match]{"path", func(p *parser, e *document.Element, path string, m *Match) {
		m.Paths = p.values(e, path, p.checkPath)
	}, func(m *Match) *document.Element { return oneOrList(m.Paths) }},
	field[Match]{"attributes", (*parser).attributes, attributesElement},
	field[Match]{"when", func(p *parser, e *document.Element, _ string, m *Match) {
		m.When = p.expression(e, ForMatch)
	}, func(m *Match) *document.Element { return unless("", m.When, document.NewText) }},
)

// values reads one or several texts and checks each.
func (p *parser) values(e *document.Element, field string, check func(*document.Element)) []string {
	var values []string
	first := map[string]document.Position{}
	for _, v := range p.texts(e, field, maxText) {
		check(v)
		if at, twice := first[v.Text]; twice {
			p.errorf("E004", v.Position, field, "%s is in the list twice, first in line %d; remove one", document.Quote(v.Text), at.Line)
			continue
		}
		first[v.Text] = v.Position
		values = append(values, v.Text)
	}
	return values
}

func (p *parser) attributes(e *document.Element, _ string, to *Match) {
	if e.Kind != document.Mapping {
		p.errorf("E006", e.Position, "match: attributes", "this is %s; write names and values, as in {action: login}", e.Describe())
	}
	if len(e.Members) > 0 {
		to.Attributes = make(map[string][]string, len(e.Members))
	}
	for _, m := range e.Members {
		name, ok := p.text(m.Name, "match: attributes: the name", maxName)
		if !ok {
			continue
		}
		field := "match: attributes: " + name
		values := p.values(m.Value, field, func(*document.Element) {})
		if len(values) == 1 && values[0] == match.Any {
			values = nil
		}
		to.Attributes[name] = values
	}
}

func attributesElement(m *Match) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		if values := m.Attributes[name]; len(values) > 0 {
			e.Add(name, oneOrList(values))
		} else {
			e.Add(name, document.NewText(match.Any))
		}
	}
	return e.OrNil()
}

// checkAny checks the stars among methods, hosts and attributes, which match everything. They stand for
// what a rule does not name, and so make sense only if the rule counts that apart.
func (p *parser) checkAny(r *pending) {
	for _, list := range []struct {
		code, what string
		kind       SourceKind
		values     []string
	}{{"E020", "host", Host, r.Match.Hosts}, {"E021", "method", Method, r.Match.Methods}} {
		if !slices.Contains(list.values, match.Any) {
			continue
		}
		at, field := r.fields["match"].Get(list.what).Position, "match: "+list.what
		if len(list.values) == 1 {
			p.errorf(list.code, at, field, "%s is empty; remove it to match every %s", list.what, list.what)
		} else if !slices.ContainsFunc(r.Key, func(s Source) bool { return s.Kind == list.kind }) {
			p.errorf(list.code, at, field, `"*" matches every %[1]s, so the other values have no effect; remove them, or write %[1]s in key, too, so that each counts separately`, list.what)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Match.Attributes)) {
		if match.NamesAny(r.Match.Attributes[name]) && !slices.Contains(r.Key, Source{Kind: Attribute, Name: name}) {
			at := r.fields["match"].Get("attributes").Get(name).Position
			p.errorf("E022", at, "match: attributes: "+name, `"*" matches any value, so the other values have no effect; remove them, or write attr:%s in key, too, so that each counts separately`, name)
		}
	}
}

func (p *parser) checkMethod(e *document.Element) {
	switch method := e.Text; {
	case method == match.Any: // see checkAny
	case !isToken(method):
		p.errorf("E021", e.Position, "match: method", "%s is not a method; write for example GET, or a list", document.Quote(method))
	case method != strings.ToUpper(method):
		p.errorf("E021", e.Position, "match: method", "%s has lower-case letters; write %s", document.Quote(method), strings.ToUpper(method))
	}
}

func (p *parser) checkHost(e *document.Element) {
	if wrong := foreignHost(strings.ToLower(e.Text)); wrong != "" {
		p.errorf("E020", e.Position, "match: host", "%s%s", document.Quote(e.Text), wrong)
	}
}

// foreignHost is what is wrong with a host, as the rest of a sentence.
func foreignHost(host string) string {
	name := strings.TrimPrefix(host, "*.")
	switch before, _, port := strings.Cut(host, ":"); {
	case strings.Contains(host, "/"):
		return " is a URL or has a path; write the name alone, as in api.example.com"
	case strings.Count(host, ":") > 1 || strings.HasPrefix(host, "["):
		if _, err := netip.ParseAddr(host); err != nil {
			return " is not a host; write an IPv6 address without brackets and port"
		}
	case port && before != match.Any && len(before) <= document.MaxQuoted && foreignHost(before) == "":
		return " has a port; write " + document.Quote(before)
	case port:
		return " has a port; write the name alone, as in api.example.com"
	case host == match.Any: // see checkAny
	case strings.Contains(name, "*"):
		return " has a star that is not at the start, before a dot; write *.example.com for every subdomain of example.com"
	case strings.HasSuffix(name, "."):
		return " ends in a dot; remove it"
	case len(name) > match.MaxHost:
		return fmt.Sprintf(" has %d bytes, which exceed the maximum of %d; shorten it", len(name), match.MaxHost)
	case strings.IndexFunc(name, func(c rune) bool { return c > '~' }) >= 0:
		return " has letters that a request cannot contain; write its Punycode form, which begins with xn--"
	case !match.IsHostName(name):
		return " is not a host name; write letters, digits and dashes, separated by dots"
	}
	return ""
}

func (p *parser) checkPath(e *document.Element) {
	if wrong := foreignPath(e.Text); wrong != "" {
		p.errorf("E019", e.Position, "match: path", "%s%s", document.Quote(e.Text), wrong)
	} else if err := match.CheckPath(e.Text); err != nil {
		p.problem(Error, "E019", e.Position, "match.path", "match: "+err.Error())
	}
}

// foreignPath is what is wrong with a path that is written as elsewhere, as the rest of a
// sentence.
func foreignPath(path string) string {
	const general = "write {id} for one whole segment, and /** at the end for everything below"
	above, star := strings.CutSuffix(path, "/*")
	switch segments := strings.Count(path, "/"); {
	case strings.Contains(path, "://"):
		return " is a URL; write only the path here, and the host in host"
	case path == "*" || path == "**":
		return ` does not begin with a slash; write "/**" for every path, or remove it`
	case path[0] != '/':
		return " does not begin with a slash; " + suggest("write %s", "add one, and "+general, path)
	case strings.Contains(path, "//"):
		return " has an empty segment; write one slash"
	case path != "/" && strings.HasSuffix(path, "/"):
		return " ends in a slash, which changes nothing; " + suggest("remove it, or write %s for everything below", "remove it, and "+general, path+"**")
	case strings.ContainsAny(path, "?#"):
		return " has a query or a fragment; remove it"
	case segments > match.MaxSegments:
		return fmt.Sprintf(" has %d segments, and at most %d are compared; end it with ** before that", segments, match.MaxSegments)
	case star:
		return ": a single star is not supported here; " + suggest("write %s for everything below, or %s for one segment", general, above+"/**", above+"/{id}")
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "*" || strings.HasPrefix(segment, ":") {
			return ": " + document.Quote(segment) + " does not match one segment; " + suggest("write %s", general, path)
		}
	}
	return ""
}

// suggest says what to write instead of paths that are written as elsewhere, or something general if that would be invalid,
// too, or too long for a message.
func suggest(format, general string, paths ...string) string {
	quoted := make([]any, len(paths))
	for i, path := range paths {
		path = asPattern(path)
		if len(path) > document.MaxQuoted || foreignPath(path) != "" || match.CheckPath(path) != nil {
			return general
		}
		quoted[i] = document.Quote(path)
	}
	return fmt.Sprintf(format, quoted...)
}

// asPattern writes a path as patterns are written here, if it is written as elsewhere.
func asPattern(path string) string {
	segments := strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
	for i, s := range segments {
		switch {
		case s == "*" && i == len(segments)-1:
			segments[i] = "**"
		case s == "*" || strings.HasPrefix(s, ":"):
			segments[i] = "{" + parameterName(s) + "}"
		}
	}
	return "/" + strings.Join(segments, "/")
}

// parameterName is a name for what people write as * or :id elsewhere.
func parameterName(segment string) string {
	if name := strings.Trim(segment, ":*"); isToken(name) {
		return document.Clip(name, 40)
	}
	return "id"
}
