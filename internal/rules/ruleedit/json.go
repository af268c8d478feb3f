package ruleedit

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// jsonForm is a document in JSON. It has no comments to lose.
type jsonForm struct {
	text   []byte
	eol    string // a line break, or nothing in a document of one line that has something in it
	fields []span
	rules  span   // the value of the field; to is 0 if there is none
	items  []span // its rules
}

// span is where a value stands in a text, with its name if it is in an object.
type span struct {
	name     string
	from, to int
}

func newJSONForm(text []byte) *jsonForm {
	f := &jsonForm{text: text, fields: spans(text, 0), eol: "\n"}
	switch {
	case len(f.fields) > 0 && !bytes.ContainsRune(bytes.TrimSpace(text), '\n'):
		f.eol = ""
	case bytes.Contains(text, []byte("\r\n")):
		f.eol = "\r\n"
	}
	if i := f.find("rules"); i >= 0 {
		f.rules = f.fields[i]
		f.items = spans(text[f.rules.from:f.rules.to], f.rules.from)
	}
	return f
}

func (f *jsonForm) find(name string) int {
	return slices.IndexFunc(f.fields, func(s span) bool { return s.name == name })
}

// spans returns where the values of an object or a list stand. The text is valid.
func spans(text []byte, offset int) (all []span) {
	d := json.NewDecoder(bytes.NewReader(text))
	open, err := d.Token()
	for err == nil && d.More() {
		var s span
		var raw json.RawMessage
		if open == json.Delim('{') {
			name, _ := d.Token()
			s.name, _ = name.(string)
		}
		err = d.Decode(&raw)
		s.to = offset + int(d.InputOffset())
		s.from = s.to - len(raw)
		all = append(all, s)
	}
	return all
}

func (f *jsonForm) spliced(from, to int, text string) (change, bool) {
	return change{slices.Concat(f.text[:from], []byte(text), f.text[to:]), true}, true
}

// render writes a rule, and below it with an indentation.
func (f *jsonForm) render(r *rule.Rule, indent string) string {
	text := rule.RuleToJSON(r)
	var b bytes.Buffer
	if f.eol == "" || json.Indent(&b, text, indent, "  ") != nil {
		return string(text)
	}
	return strings.ReplaceAll(b.String(), "\n", f.eol)
}

// indentAt is how far the line of an offset is indented.
func (f *jsonForm) indentAt(offset int) string {
	line := f.text[bytes.LastIndexByte(f.text[:offset], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

func (f *jsonForm) add(r *rule.Rule) (change, bool) {
	if n := len(f.items); n > 0 {
		last := f.items[n-1]
		indent := f.indentAt(last.from)
		between := f.eol + indent
		if f.eol == "" {
			between = " "
		}
		return f.spliced(last.to, last.to, ","+between+f.render(r, indent))
	}
	outer, inner := "", ""
	if f.eol != "" {
		outer, inner = "  ", "    "
	}
	list := "[" + f.eol + inner + f.render(r, inner) + f.eol + outer + "]"
	field := f.eol + outer + `"rules": ` + list
	switch open := bytes.IndexByte(f.text, '{') + 1; {
	case f.rules.to > 0:
		return f.spliced(f.rules.from, f.rules.to, list)
	case len(f.fields) == 0:
		return f.spliced(open, bytes.LastIndexByte(f.text, '}'), field+f.eol)
	default:
		return f.spliced(open, open, field+",")
	}
}

// amend and list leave it to replace and field: there is nothing inside that would have to be kept.
func (f *jsonForm) amend(int, *rule.Rule, *rule.Rule) (change, bool) { return change{}, false }
func (f *jsonForm) list(*Listing) (change, bool)                     { return change{}, false }

func (f *jsonForm) replace(i int, r *rule.Rule) (change, bool) {
	if i >= len(f.items) {
		return change{}, false
	}
	return f.spliced(f.items[i].from, f.items[i].to, f.render(r, f.indentAt(f.items[i].from)))
}

// remove takes a comma with the rule.
func (f *jsonForm) remove(i int) (change, bool) {
	switch {
	case i >= len(f.items):
		return change{}, false
	case len(f.items) == 1:
		return f.spliced(f.rules.from, f.rules.to, "[]")
	case i == 0:
		return f.spliced(f.items[0].from, f.items[1].from, "")
	}
	return f.spliced(f.items[i-1].to, f.items[i].to, "")
}

// field writes a field of the document again, adds it, or removes it if it has no value.
func (f *jsonForm) field(name string, value *document.Element) (change, bool) {
	if value == nil || len(f.fields) == 0 {
		return change{}, false // then all of it is written again
	}
	text := string(value.JSON())
	if i := f.find(name); i >= 0 {
		return f.spliced(f.fields[i].from, f.fields[i].to, text)
	}
	end := len(bytes.TrimRight(f.text[:bytes.LastIndexByte(f.text, '}')], " \t\r\n"))
	indent := ""
	if f.eol != "" {
		indent = "  "
	}
	return f.spliced(end, end, ","+f.eol+indent+`"`+name+`": `+text)
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
