package envoyconfig

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/spelling"
)

// fields are the values of a mapping by name. What is empty is not there.
type fields map[string]*document.Element

// place is where a field stands, or where the mapping does that lacks it.
func (f fields) place(name string, mapping *document.Element) document.Place {
	if e := f[name]; e != nil {
		return e.Place
	}
	return mapping.Place
}

// fields checks the names in a mapping.
func (p *parser) fields(e *document.Element, what string, known []string) fields {
	if e.Kind != document.Mapping {
		p.errorf(e.Place, "%s: this is %s; write fields here, such as %s", what, e.Describe(), strings.Join(known[:min(2, len(known))], ", "))
		return nil
	}
	f := make(fields, len(e.Members))
	for _, m := range e.Members {
		name := m.Name.Text
		switch {
		case slices.Contains(known, name):
			if m.Value.Kind != document.Nothing {
				f[name] = m.Value
			}
		case isElsewhere(name):
			// A file that was good enough until now must not keep weir from starting.
			p.warnf(m.Name.Place, "%s has no field %s, so it has no effect here; move it to where it belongs", what, name)
		default:
			p.errorf(m.Name.Place, "%s has no field %s; %s", what, document.Quote(name),
				spelling.Hint(name, known, "remove it, or use one of "+strings.Join(known, ", ")))
		}
	}
	return f
}

// isElsewhere is whether a field is known in some other place, where envoyproxy/ratelimit
// would have it.
func isElsewhere(name string) bool {
	return slices.Contains(domainFields, name) || slices.Contains(descriptorFields, name) || slices.Contains(limitFields, name)
}

// text reads a scalar, also one that looks like a number. It is "" if there is none.
func (p *parser) text(e *document.Element, field string) (string, bool) {
	switch {
	case e == nil:
		return "", true
	case !e.IsScalar():
		p.errorf(e.Place, "%s: this is %s; write one value", field, e.Describe())
		return "", false
	}
	return e.Text, true
}

// truths are the words for true and false of the YAML that envoyproxy/ratelimit reads.
var truths = map[string]bool{"true": true, "yes": true, "on": true, "y": true, "false": false, "no": false, "off": false, "n": false}

func (p *parser) truth(e *document.Element, field string) bool {
	if e == nil {
		return false
	}
	if e.Kind == document.Truth || e.Kind == document.Text {
		if b, known := truths[strings.ToLower(e.Text)]; known {
			return b
		}
	}
	p.errorf(e.Place, "%s: this is %s; write true or false", field, e.Describe())
	return false
}

// number reads a whole number. It is 0 if there is none.
func (p *parser) number(e *document.Element, field string, least, most int64) (int64, bool) {
	if e == nil {
		return 0, true
	}
	text := e.Text
	if e.Kind == document.Other && text[0] >= '1' && text[0] <= '9' && strings.Trim(text, "0123456789_") == "" {
		text = strings.ReplaceAll(text, "_", "") // 1_000 is a number in the YAML of some
	} else if e.Kind != document.Integer {
		text = ""
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == "":
		p.errorf(e.Place, "%s: this is %s; write a whole number in plain digits", field, e.Describe())
	case err != nil || n < least || n > most:
		p.errorf(e.Place, "%s: %s is out of range; write %d to %d", field, document.Clip(e.Text, 40), least, most)
	default:
		return n, true
	}
	return 0, false
}

func (p *parser) failure(e *document.Element, otherwise Failure) Failure {
	text, ok := p.text(e, "on_failure")
	if !ok || text == "" {
		return otherwise
	}
	i := slices.Index(failureNames, text)
	if i < 0 {
		p.errorf(e.Place, "on_failure: %q is unknown; %s", text, spelling.Hint(text, failureNames, "choose one of "+strings.Join(failureNames, ", ")))
		return otherwise
	}
	return Failure(i)
}

// plain is a value as others read it: for metadata, which is theirs.
func plain(e *document.Element) any {
	switch e.Kind {
	case document.Mapping:
		m := make(map[string]any, len(e.Members))
		for _, member := range e.Members {
			m[member.Name.Text] = plain(member.Value)
		}
		return m
	case document.List:
		list := make([]any, len(e.Items))
		for i, item := range e.Items {
			list[i] = plain(item)
		}
		return list
	case document.Nothing:
		return nil
	case document.Truth:
		return strings.EqualFold(e.Text, "true")
	case document.Integer, document.Other:
		if x, err := strconv.ParseFloat(e.Text, 64); err == nil && !math.IsInf(x, 0) && !math.IsNaN(x) {
			return x
		}
	}
	return e.Text
}
