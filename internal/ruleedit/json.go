package ruleedit

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/weirhq/weir/rule"
)

// jsonForm is a document in JSON. It has no comments to lose.
type jsonForm struct {
	text   []byte
	open   int             // just behind the brace of the document
	empty  bool            // nothing is in it
	fields map[string]span // their values
	value  span            // of the field rules; end is 0 if there is none
	items  []span          // its rules
}

// span is a part of a text.
type span struct{ from, to int }

func newJSONForm(text []byte) *jsonForm {
	f := &jsonForm{text: text, fields: map[string]span{}, open: bytes.IndexByte(text, '{') + 1}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return f
	}
	f.empty = !d.More()
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return f
		}
		value, raw, err := nextValue(d)
		if err != nil {
			return f
		}
		if name, ok := name.(string); ok {
			f.fields[name] = value
		}
		if name == "rules" {
			f.value = value
			f.items = itemsOf(raw, value.from)
		}
	}
	return f
}

// nextValue reads a value and returns where it stands.
func nextValue(d *json.Decoder) (span, json.RawMessage, error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return span{}, nil, err
	}
	end := int(d.InputOffset())
	return span{end - len(raw), end}, raw, nil
}

// itemsOf returns where the items of a list stand.
func itemsOf(list json.RawMessage, offset int) (items []span) {
	d := json.NewDecoder(bytes.NewReader(list))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil
	}
	for d.More() {
		item, _, err := nextValue(d)
		if err != nil {
			return nil
		}
		items = append(items, span{offset + item.from, offset + item.to})
	}
	return items
}

func (f *jsonForm) spliced(at span, text string) (change, bool) {
	return change{slices.Concat(f.text[:at.from], []byte(text), f.text[at.to:]), true}, true
}

// eol is a line break, or nothing in a document of one line that has something in it.
func (f *jsonForm) eol() string {
	switch {
	case !f.empty && !bytes.ContainsRune(bytes.TrimSpace(f.text), '\n'):
		return ""
	case bytes.Contains(f.text, []byte("\r\n")):
		return "\r\n"
	}
	return "\n"
}

// render writes a rule, and below it with an indentation.
func (f *jsonForm) render(r *rule.Rule, indent string) string {
	text := rule.RuleToJSON(r)
	eol := f.eol()
	if eol == "" {
		return string(text)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, indent, "  "); err != nil {
		return string(text)
	}
	return strings.ReplaceAll(b.String(), "\n", eol)
}

// indentAt is how far the line of an offset is indented.
func (f *jsonForm) indentAt(offset int) string {
	line := f.text[bytes.LastIndexByte(f.text[:offset], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

func (f *jsonForm) add(r *rule.Rule) (change, bool) {
	if len(f.items) > 0 {
		last := f.items[len(f.items)-1]
		indent := f.indentAt(last.from)
		between := f.eol() + indent
		if f.eol() == "" {
			between = " "
		}
		return f.spliced(span{last.to, last.to}, ","+between+f.render(r, indent))
	}
	eol, outer, inner := f.eol(), "", ""
	if eol != "" {
		outer, inner = "  ", "    "
	}
	list := "[" + eol + inner + f.render(r, inner) + eol + outer + "]"
	switch {
	case f.value.to > 0:
		return f.spliced(f.value, list)
	case f.empty:
		return f.spliced(span{f.open, bytes.LastIndexByte(f.text, '}')}, eol+outer+`"rules": `+list+eol)
	}
	return f.spliced(span{f.open, f.open}, eol+outer+`"rules": `+list+",")
}

// amend is replace: there is nothing in a rule that would have to be kept.
func (f *jsonForm) amend(i int, _, now *rule.Rule) (change, bool) { return f.replace(i, now) }

func (f *jsonForm) replace(i int, r *rule.Rule) (change, bool) {
	if i >= len(f.items) {
		return change{}, false
	}
	return f.spliced(f.items[i], f.render(r, f.indentAt(f.items[i].from)))
}

// remove takes a comma with the rule.
func (f *jsonForm) remove(i int) (change, bool) {
	switch {
	case i >= len(f.items):
		return change{}, false
	case len(f.items) == 1:
		return f.spliced(f.value, "[]")
	case i == 0:
		return f.spliced(span{f.items[0].from, f.items[1].from}, "")
	}
	return f.spliced(span{f.items[i-1].to, f.items[i].to}, "")
}

// whole is the set and nothing but it.
func (f *jsonForm) whole(set *rule.Set) change {
	return change{indented(rule.ToJSON(set)), true}
}

// indented is JSON in lines; what is none stays as it is.
func indented(text []byte) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return text
	}
	b.WriteByte('\n')
	return b.Bytes()
}
