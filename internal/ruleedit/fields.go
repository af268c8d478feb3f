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
	a := &amendment{form: f, indent: f.rules.Items[i].Column - 1, kept: true}
	if !a.find(f.rules.Items[i], from, to) {
		return change{}, false
	}
	a.compare(element(old), element(now))
	lines, ok := a.lines(from, to)
	if !ok {
		return change{}, false
	}
	return f.spliced(from, to, lines, a.kept)
}

// amendment is a rule on its way to another.
type amendment struct {
	form   *yamlForm
	indent int // of its fields
	fields []amendedField
	kept   bool
}

// amendedField is a field where it stands.
type amendedField struct {
	name     string
	from, to int
	changed  bool
	value    *document.Element   // nil if it goes
	after    []*document.Element // fields that are new, each a mapping of one
}

// find finds the lines of each field, if each has its own.
func (a *amendment) find(item *document.Element, from, to int) bool {
	if item.Kind != document.Mapping || len(item.Members) == 0 {
		return false
	}
	for i, m := range item.Members {
		begin, end := m.Name.Line-1, to
		if i+1 < len(item.Members) {
			end = item.Members[i+1].Name.Line - 1
		}
		if m.Name.Column-1 != a.indent || begin < from || end <= begin || !strings.HasPrefix(a.form.lines[begin][min(a.indent, len(a.form.lines[begin])):], m.Name.Text) {
			return false
		}
		a.fields = append(a.fields, amendedField{name: m.Name.Text, from: begin, to: a.form.page.end(begin, end, a.indent)})
	}
	return true
}

// compare finds out what is to be done.
func (a *amendment) compare(old, now *document.Element) {
	order := rule.Fields("rule")
	for rank, name := range order {
		was, is := old.Get(name), now.Get(name)
		if sameElement(was, is) {
			continue
		}
		i := slices.IndexFunc(a.fields, func(f amendedField) bool { return f.name == name })
		if i >= 0 {
			a.fields[i].changed, a.fields[i].value = true, is
			continue
		}
		// After the last of those that come before it in the reference.
		place := 0
		for i, f := range a.fields {
			if slices.Index(order, f.name) < rank {
				place = i
			}
		}
		field := &document.Element{Kind: document.Mapping}
		field.Add(name, is)
		a.fields[place].after = append(a.fields[place].after, field)
	}
}

func sameElement(a, b *document.Element) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.JSON(), b.JSON())
}

// lines returns the lines of the rule as it is now.
func (a *amendment) lines(from, to int) ([]string, bool) {
	var out []string
	at := from
	for _, f := range a.fields {
		out = append(out, a.form.lines[at:f.from]...)
		at = f.to
		lines := slices.Clone(a.form.lines[f.from:f.to])
		if f.changed {
			var ok bool
			if lines, ok = a.change(f); !ok {
				return nil, false
			}
		}
		for _, field := range f.after {
			added, ok := a.form.render(field, a.indent)
			if !ok {
				return nil, false
			}
			if n := len(lines); n > 0 && lineEnd(lines[n-1]) == "" {
				lines[n-1] += a.form.eol
			}
			lines = append(lines, added...)
		}
		out = append(out, lines...)
	}
	return append(out, a.form.lines[at:to]...), true
}

// change writes a field again.
func (a *amendment) change(f amendedField) ([]string, bool) {
	first := a.form.lines[f.from]
	if f.value == nil {
		a.kept = a.kept && !hasRemark(a.form.lines[f.from:f.to])
		return nil, isBlank(first[:a.indent]) // or the dash would go, too
	}
	field := &document.Element{Kind: document.Mapping}
	field.Add(f.name, f.value)
	lines, ok := a.form.render(field, a.indent)
	if !ok {
		return nil, false
	}
	a.kept = a.kept && !hasRemark(a.form.lines[f.from+1:f.to])
	lines[0] = a.form.withRemark(first[:a.indent]+lines[0][a.indent:], first)
	return lines, true
}
