package ruleedit

import (
	"bytes"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// amend changes the fields of a rule that are not as they were. The others keep their
// lines, and what is written at the end of a line stays there.
func (f *yamlForm) amend(i int, old, now *rule.Rule) (change, bool) {
	if f.dash < 0 {
		return change{}, false
	}
	from, to := f.item(i)
	a := &amendment{page: f.page, order: ruleOrder, indent: f.rules.Items[i].Column - 1, kept: true}
	if !a.findFields(f.rules.Items[i], from, to) {
		return change{}, false
	}
	a.compare(element(old), element(now))
	lines, ok := a.lines(from, to)
	if !ok {
		return change{}, false
	}
	return f.spliced(from, to, lines, a.kept)
}

// amendment is a mapping on its way to another: a rule, or a field of one.
type amendment struct {
	page   *page
	order  *fieldOrder
	indent int // of its fields
	fields []amendedField
	before []*document.Element // fields that are new and come first, each a mapping of one
	kept   bool
}

// amendedField is a field where it stands.
type amendedField struct {
	name     string
	from, to int
	written  *document.Element // its value
	changed  bool
	value    *document.Element   // which it is to have; nil if it goes
	after    []*document.Element // fields that are new, each a mapping of one
}

// findFields finds the lines of each field, if each has its own.
func (a *amendment) findFields(item *document.Element, from, to int) bool {
	if item.Kind != document.Mapping || len(item.Members) == 0 {
		return false
	}
	for i, m := range item.Members {
		begin, end := m.Name.Line-1, to
		if i+1 < len(item.Members) {
			end = item.Members[i+1].Name.Line - 1
		}
		if m.Name.Column-1 != a.indent || begin < from || end <= begin || !a.isNamed(begin, m.Name.Text) {
			return false
		}
		a.fields = append(a.fields, amendedField{
			name: m.Name.Text, from: begin, to: a.page.end(begin, end, a.indent), written: m.Value,
		})
	}
	return true
}

// isNamed is whether a field of this name begins on a line.
func (a *amendment) isNamed(line int, name string) bool {
	text := a.page.lines[line][min(a.indent, len(a.page.lines[line])):]
	return strings.HasPrefix(text, name) || strings.HasPrefix(text, `"`) || strings.HasPrefix(text, "'")
}

// compare finds out what is to be done.
func (a *amendment) compare(old, now *document.Element) {
	was, is := byName(old), byName(now)
	at := make(map[string]int, len(a.fields))
	for i, f := range a.fields {
		at[f.name] = i
	}
	for _, name := range a.order.names(old, now) {
		value := is[name]
		if sameElement(was[name], value) {
			continue
		}
		if value != nil && value.Kind == document.Nothing {
			value = nil
		}
		if i, found := at[name]; found {
			a.fields[i].changed, a.fields[i].value = true, value
		} else if value != nil {
			a.addField(name, value)
		}
	}
}

// addField puts a field that is new behind the last of those that come before it in the
// reference.
func (a *amendment) addField(name string, value *document.Element) {
	field := named(name, value)
	for i := len(a.fields) - 1; i >= 0; i-- {
		if a.order.rank(a.fields[i].name) <= a.order.rank(name) {
			a.fields[i].after = append(a.fields[i].after, field)
			return
		}
	}
	if first := a.page.lines[a.fields[0].from]; isBlank(first[:a.indent]) {
		a.before = append(a.before, field)
	} else { // it stands behind a dash
		a.fields[0].after = append(a.fields[0].after, field)
	}
}

func byName(e *document.Element) map[string]*document.Element {
	all := make(map[string]*document.Element, len(e.Members))
	for _, m := range e.Members {
		all[m.Name.Text] = m.Value
	}
	return all
}

func sameElement(a, b *document.Element) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.JSON(), b.JSON())
}

// lines returns the lines of the mapping as it is now.
func (a *amendment) lines(from, to int) ([]string, bool) {
	var out []string
	at := from
	for i, f := range a.fields {
		out = append(out, a.page.lines[at:f.from]...)
		at = f.to
		lines := slices.Clone(a.page.lines[f.from:f.to])
		if f.changed {
			var ok bool
			if lines, ok = a.change(f); !ok {
				return nil, false
			}
		}
		added, ok := a.rendered(f.after)
		if !ok {
			return nil, false
		}
		if n := len(lines); n > 0 && len(added) > 0 && lineEnd(lines[n-1]) == "" {
			lines[n-1] += a.page.eol
		}
		if i == 0 {
			first, ok := a.rendered(a.before)
			if !ok {
				return nil, false
			}
			out = append(out, first...)
		}
		out = append(append(out, lines...), added...)
	}
	return append(out, a.page.lines[at:to]...), true
}

func (a *amendment) rendered(fields []*document.Element) (lines []string, ok bool) {
	for _, field := range fields {
		more, ok := a.page.render(field, a.indent)
		if !ok {
			return nil, false
		}
		lines = append(lines, more...)
	}
	return lines, true
}

// change writes a field again.
func (a *amendment) change(f amendedField) ([]string, bool) {
	first := a.page.lines[f.from]
	if f.value == nil {
		a.kept = a.kept && !hasRemark(a.page.lines[f.from:f.to])
		return nil, isBlank(first[:a.indent]) // or the dash would go, too
	}
	if lines, ok := a.inside(f); ok {
		return lines, true
	}
	lines, ok := a.page.render(named(f.name, f.value), a.indent)
	if !ok {
		return nil, false
	}
	a.kept = a.kept && !hasRemark(a.page.lines[f.from+1:f.to])
	lines[0] = a.page.withRemark(first[:a.indent]+lines[0][a.indent:], first)
	return lines, true
}

// inside changes a mapping that has lines of its own, such as a match, field by field.
func (a *amendment) inside(f amendedField) ([]string, bool) {
	was := f.written
	if was.Kind != document.Mapping || was.Flow || f.value.Kind != document.Mapping || len(f.value.Members) == 0 {
		return nil, false
	}
	in := &amendment{page: a.page, order: a.order.below(f.name), indent: was.Column - 1, kept: true}
	if !in.findFields(was, f.from+1, f.to) {
		return nil, false
	}
	in.compare(was, f.value)
	lines, ok := in.lines(f.from+1, f.to)
	if !ok {
		return nil, false
	}
	a.kept = a.kept && in.kept
	return slices.Insert(lines, 0, a.page.lines[f.from]), true
}
