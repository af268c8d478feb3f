// Package document reads and writes JSON and YAML.
//
// What people write becomes a tree with the line and column of every value, so that its users can
// report all mistakes at once, each with its place. Only programs that import package rule/rulefile
// contain the YAML library. The others read JSON alone, and say so of a document that is
// something else.
//
// Where a tree, or encoding/json, would take too much time or memory, a [Scanner] goes through JSON: the
// body of a check, a body of which an expression reads a part, the lines of an access log.
package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Position is where something stands: line and column from 1, in characters. The zero
// Position is the document as a whole.
type Position struct{ Line, Column int }

// Element is a value of a document.
type Element struct {
	Position
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
	return Clip(e.Text, MaxQuoted)
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

// MaxQuoted is how many bytes of a value a message repeats.
const MaxQuoted = 60

// Quote repeats a value in a message: short, and without control characters.
func Quote(value string) string { return fmt.Sprintf("%q", Clip(value, MaxQuoted)) }

// IsInteger is whether a scalar is a whole number as everybody reads it. 010 is
// eight to some, so it is none.
func IsInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == "" && (len(digits) == 1 || digits[0] != '0')
}

// YAML writes the tree as people would, indented by two. It fails in a program without package
// rule/rulefile.
func (e *Element) YAML() ([]byte, error) {
	if writeYAML == nil {
		return nil, errNoYAML
	}
	return writeYAML(e)
}

// JSON writes the tree in as few bytes as possible, in its order.
func (e *Element) JSON() []byte {
	var b bytes.Buffer
	e.writeJSON(&b)
	return b.Bytes()
}

// Brief writes the tree in one line for people, as in "{after: 3, for: 15m}". A list is "a + b". It is not read back.
func (e *Element) Brief() string {
	var parts []string
	for _, item := range e.Items {
		parts = append(parts, item.Brief())
	}
	for _, m := range e.Members {
		value := m.Value.Brief()
		if m.Value.IsScalar() && strings.ContainsAny(value, ",:{}\"") {
			value = strconv.Quote(value)
		}
		parts = append(parts, m.Name.Text+": "+value)
	}
	switch e.Kind {
	case Mapping:
		return "{" + strings.Join(parts, ", ") + "}"
	case List:
		return strings.Join(parts, " + ")
	}
	return e.Text
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
