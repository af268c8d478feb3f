package rule

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
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
