package document

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

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
