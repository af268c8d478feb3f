// Package document reads YAML and JSON into a tree with the line and column of every
// value, so that its users can report all mistakes at once, each with its place. It
// also writes such a tree.
//
// It takes the part of YAML that people write by hand: no anchors, aliases, tags or
// directives, and one document a file. Reading takes a time in proportion to the
// source, whatever is in it.
package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// Place is where something stands: line and column from 1, in characters. The zero
// Place is the document as a whole.
type Place struct{ Line, Column int }

// Element is a value of a document.
type Element struct {
	Place
	Kind    Kind
	Flow    bool       // of YAML: it is in brackets
	Text    string     // of a scalar, without quotes and escapes
	Items   []*Element // of a List
	Members []Member   // of a Mapping, in the order of the document
}

// Member is a name in a mapping and what belongs to it.
type Member struct{ Name, Value *Element }

// Kind is what an element is.
type Kind uint8

const (
	Nothing Kind = iota // null, or no value at all
	Text
	Integer // digits, perhaps with a minus sign
	Truth   // true or false
	Other   // another scalar: a fraction, a date, a hexadecimal number
	List
	Mapping
)

// IsScalar is whether the element has a Text.
func (e *Element) IsScalar() bool { return e.Kind >= Text && e.Kind <= Other }

// Describe says what the element is, to be put after "this is".
func (e *Element) Describe() string {
	switch e.Kind {
	case Nothing:
		return "empty"
	case List:
		return "a list"
	case Mapping:
		return "a mapping"
	case Text:
		return "the text " + Quote(e.Text)
	}
	return Clip(e.Text, maxQuoted)
}

// Get returns the value of a name, or nil.
func (e *Element) Get(name string) *Element {
	for _, m := range e.Members {
		if m.Name.Text == name {
			return m.Value
		}
	}
	return nil
}

// NewText returns a text to be written.
func NewText(text string) *Element { return &Element{Kind: Text, Text: text} }

// NewInteger returns a number to be written.
func NewInteger(n int64) *Element {
	return &Element{Kind: Integer, Text: strconv.FormatInt(n, 10)}
}

// NewNumber returns a number with a fraction to be written.
func NewNumber(text string) *Element { return &Element{Kind: Other, Text: text} }

// NewTruth returns true or false to be written.
func NewTruth(b bool) *Element { return &Element{Kind: Truth, Text: strconv.FormatBool(b)} }

// NewList returns a list of texts to be written.
func NewList(texts []string) *Element {
	e := &Element{Kind: List}
	for _, t := range texts {
		e.Items = append(e.Items, NewText(t))
	}
	return e
}

// Add adds a member to a mapping, unless the value is nil.
func (e *Element) Add(name string, value *Element) {
	if value != nil {
		e.Members = append(e.Members, Member{NewText(name), value})
	}
}

// OrNil is nil for a mapping without members, which is then left out by Add.
func (e *Element) OrNil() *Element {
	if len(e.Members) == 0 {
		return nil
	}
	return e
}

const maxQuoted = 60

// Quote repeats a value in a message: short, and without control characters.
func Quote(value string) string { return fmt.Sprintf("%q", Clip(value, maxQuoted)) }

// isInteger is whether a scalar is a whole number as everybody reads it. 010 is
// eight to some, so it is none.
func isInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == "" && (len(digits) == 1 || digits[0] != '0')
}

// maxFlow is the length up to which a list of scalars is written in brackets.
const maxFlow = 60

// YAML writes the tree as people would, indented by two.
func (e *Element) YAML() ([]byte, error) {
	if e.Kind == Mapping && len(e.Members) == 0 {
		return []byte("{}\n"), nil
	}
	return yaml.Dump(e.toYAML(), yaml.WithIndent(2), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1), yaml.WithQuotePreference(yaml.QuoteDouble))
}

func (e *Element) toYAML() *yaml.Node {
	switch e.Kind {
	case Mapping:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, m := range e.Members {
			n.Content = append(n.Content, m.Name.toYAML(), m.Value.toYAML())
		}
		return n
	case List:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if e.isShort() {
			n.Style = yaml.FlowStyle
		}
		for _, item := range e.Items {
			n.Content = append(n.Content, item.toYAML())
		}
		return n
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: yamlTags[e.Kind], Value: e.Text}
	if e.Kind == Text && strings.ContainsFunc(e.Text, func(c rune) bool { return c != ' ' && !unicode.IsPrint(c) }) {
		n.Style = yaml.DoubleQuotedStyle
		if isParagraph(e.Text) {
			n.Style = yaml.LiteralStyle
		}
	}
	return n
}

// isParagraph is whether a text of several lines can do without quotes and escapes.
func isParagraph(text string) bool {
	if text[0] == ' ' || text[0] == '\n' || text[len(text)-1] != '\n' || strings.HasSuffix(text, "\n\n") {
		return false
	}
	return !strings.ContainsFunc(text, func(c rune) bool { return c != '\n' && !unicode.IsPrint(c) })
}

var yamlTags = map[Kind]string{Nothing: "!!null", Text: "!!str", Integer: "!!int", Truth: "!!bool"}

// isShort is whether a list reads well in one line.
func (e *Element) isShort() bool {
	length := 0
	for _, item := range e.Items {
		if !item.IsScalar() {
			return false
		}
		length += len(item.Text) + 2
	}
	return length <= maxFlow
}

// JSON writes the tree in as few bytes as possible, in its order.
func (e *Element) JSON() []byte {
	var b bytes.Buffer
	e.writeJSON(&b)
	return b.Bytes()
}

func (e *Element) writeJSON(b *bytes.Buffer) {
	switch e.Kind {
	case Nothing:
		b.WriteString("null")
	case Integer, Truth:
		b.WriteString(e.Text)
	case List:
		b.WriteByte('[')
		for i, item := range e.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.writeJSON(b)
		}
		b.WriteByte(']')
	case Mapping:
		b.WriteByte('{')
		for i, m := range e.Members {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, m.Name.Text)
			b.WriteByte(':')
			m.Value.writeJSON(b)
		}
		b.WriteByte('}')
	default:
		if e.Kind == Other && json.Valid([]byte(e.Text)) {
			b.WriteString(e.Text) // a fraction; dates are texts
			return
		}
		writeString(b, e.Text)
	}
}

// writeString leaves <, > and & as they are; this is not for HTML.
func writeString(b *bytes.Buffer, s string) {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil { // a string can always be encoded
		return
	}
	b.Truncate(b.Len() - 1) // the line break
}
