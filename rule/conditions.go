package rule

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/match"
)

// anyValue is how a rule asks for an attribute, whatever its value.
const anyValue = "*"

func (p *parser) match(e *document.Element) (m Match) {
	f := p.fields(e, "match", matchFields)
	if v := f["method"]; v != nil {
		m.Methods = p.values(v, "match: method", p.checkMethod)
	}
	if v := f["host"]; v != nil {
		m.Hosts = p.values(v, "match: host", p.checkHost)
		for i, host := range m.Hosts {
			m.Hosts[i] = strings.ToLower(host)
		}
	}
	if v := f["path"]; v != nil {
		m.Paths = p.values(v, "match: path", p.checkPath)
	}
	if v := f["attributes"]; v != nil {
		m.Attributes = p.attributes(v)
	}
	return m
}

// values reads one or several texts and checks each.
func (p *parser) values(e *document.Element, field string, check func(*document.Element)) []string {
	var values []string
	first := map[string]document.Place{}
	for _, v := range p.texts(e, field, maxText) {
		check(v)
		if at, twice := first[v.Text]; twice {
			p.errorf("E004", v.Place, field, "%s is in the list twice, first in line %d; remove one of them", document.Quote(v.Text), at.Line)
			continue
		}
		first[v.Text] = v.Place
		values = append(values, v.Text)
	}
	return values
}

func (p *parser) attributes(e *document.Element) map[string][]string {
	if e.Kind != document.Mapping {
		p.errorf("E006", e.Place, "match: attributes", "this is %s; write names and values, as in {action: login}", e.Describe())
		return nil
	}
	if len(e.Members) == 0 {
		return nil
	}
	attributes := make(map[string][]string, len(e.Members))
	for _, m := range e.Members {
		name, ok := p.text(m.Name, "match: attributes: the name", maxName)
		if !ok {
			continue
		}
		field := "match: attributes: " + name
		values := p.values(m.Value, field, func(*document.Element) {})
		if slices.Contains(values, anyValue) {
			if len(values) > 1 {
				p.errorf("E022", m.Value.Place, field, `"*" is any value, so the others say nothing; remove it, or them`)
			}
			values = nil
		}
		attributes[name] = values
	}
	return attributes
}

func (p *parser) checkMethod(e *document.Element) {
	switch method := e.Text; {
	case method == "*":
		p.errorf("E021", e.Place, "match: method", "every method matches if there is none here; remove it")
	case !isToken(method):
		p.errorf("E021", e.Place, "match: method", "%s is no method; write for example GET, or a list of several", document.Quote(method))
	case method != strings.ToUpper(method):
		p.errorf("E021", e.Place, "match: method", "%s has small letters, and methods have none; write %s", document.Quote(method), strings.ToUpper(method))
	}
}

func (p *parser) checkHost(e *document.Element) {
	host := strings.ToLower(e.Text)
	wrong := func(format string, args ...any) {
		p.errorf("E020", e.Place, "match: host", format, args...)
	}
	name := strings.TrimPrefix(host, "*.")
	switch before, _, port := strings.Cut(host, ":"); {
	case strings.Contains(host, "/"):
		wrong("%s is a URL or has a path; write the name alone, as in api.example.com", document.Quote(e.Text))
	case strings.Count(host, ":") > 1 || strings.HasPrefix(host, "["):
		if _, err := netip.ParseAddr(host); err != nil {
			wrong("%s is no name; write an IPv6 address without brackets and port", document.Quote(e.Text))
		}
	case port:
		wrong("%s has a port, which is no part of a name; write %s", document.Quote(e.Text), document.Quote(before))
	case host == "*":
		wrong("every host matches if there is none here; remove it")
	case strings.Contains(name, "*"):
		wrong("in %s a star is not at the beginning, before a dot; write *.example.com for every name below example.com", document.Quote(e.Text))
	case strings.HasSuffix(name, "."):
		wrong("%s ends in a dot; remove it", document.Quote(e.Text))
	case len(name) > match.MaxHost:
		wrong("it has %d bytes, and no name has more than %d; shorten it", len(name), match.MaxHost)
	case strings.IndexFunc(name, func(c rune) bool { return c > '~' }) >= 0:
		wrong("%s has letters that a request cannot have; write it as browsers send it, beginning with xn--", document.Quote(e.Text))
	case !isHostName(name):
		wrong("%s is no name of a host; write letters, digits and dashes between dots", document.Quote(e.Text))
	}
}

// isHostName is lenient with underscores, which some names have.
func isHostName(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

func (p *parser) checkPath(e *document.Element) {
	path := e.Text
	wrong := func(format string, args ...any) {
		p.errorf("E019", e.Place, "match: path", format, args...)
	}
	switch {
	case strings.Contains(path, "://"):
		wrong("%s is a URL; write the path alone, and the host as host", document.Quote(path))
		return
	case path == "*" || path == "**":
		wrong(`%s does not begin with a slash; write "/**" for every path, or remove it`, document.Quote(path))
		return
	case path[0] != '/':
		wrong("%s does not begin with a slash; write %s", document.Quote(path), document.Quote(asPattern(path)))
		return
	case strings.Contains(path, "//"):
		wrong("%s has an empty segment; write one slash", document.Quote(path))
		return
	case path != "/" && strings.HasSuffix(path, "/"):
		wrong("%s ends in a slash, which makes no difference to what matches; remove it, or write %s for all that is below", document.Quote(path), document.Quote(asPattern(path+"**")))
		return
	case strings.ContainsAny(path, "?#"):
		wrong("%s has a query or a fragment, which are no part of a path; remove it", document.Quote(path))
		return
	}
	if n := strings.Count(path, "/"); n > match.MaxSegments {
		wrong("%s has %d segments; at most %d are looked at, so end it with ** before that", document.Quote(path), n, match.MaxSegments)
		return
	}
	if above, ok := strings.CutSuffix(path, "/*"); ok {
		wrong("%s: a star alone says nothing here; write %s for all that is below, or %s for one segment", document.Quote(path),
			document.Quote(asPattern(above+"/**")), document.Quote(asPattern(above+"/{id}")))
		return
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "*" || strings.HasPrefix(segment, ":") {
			wrong("%s: %s is not how one segment of any name is written; write {%s}", document.Quote(path), document.Quote(segment), parameterName(segment))
			return
		}
	}
	if err := match.CheckPath(path); err != nil {
		p.problem(Error, "E019", e.Place, "match.path", "match: "+err.Error())
	}
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
