package document

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

func (r *reader) yaml() *Element {
	content, ok := r.checkStream()
	if !ok {
		return nil
	}
	if marks(r.source) > r.piece {
		return r.long(content)
	}
	return r.atOnce(part{text: r.source})
}

// loadYAML turns a panic of the parser into an error: an uploaded document must not
// stop the process.
func loadYAML(source string) (document yaml.Node, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("the parser failed: %v", failure)
		}
	}()
	d := yaml.NewDecoder(strings.NewReader(source))
	if err = d.Decode(&document); err == nil {
		err = d.Decode(new(yaml.Node)) // what follows a line that is indented less than the first
	}
	if err == io.EOF {
		err = nil
	}
	return document, err
}

// checkStream rejects what only streams of documents have, before the parser sees
// it: its time is quadratic in the number of directives. It returns what is between the
// markers of the one document.
func (r *reader) checkStream() (content part, ok bool) {
	begun, ended := false, false
	content = part{text: r.source}
	number := 0
	for offset, line := range EachLine(r.source) {
		number++
		at := Place{number, 1}
		text := strings.TrimRightFunc(line, unicode.IsSpace)
		switch {
		case text == "" || strings.HasPrefix(strings.TrimLeft(text, " \t"), "#"):
		case isMarker(line, "---") && !begun && !ended:
			begun = true
			if text == "---" {
				content = part{text: r.source[offset+len(line):], line: number - 1, offset: offset + len(line)}
			}
		case isMarker(line, "---"), ended:
			r.fault(Foreign, at, "a second YAML document begins here; put everything into the first")
			return part{}, false
		case isMarker(line, "..."):
			ended = true
			content.text = r.source[content.offset:offset]
		case !begun && text[0] == '%':
			r.fault(Foreign, at, "YAML directives are not supported; remove the line")
			return part{}, false
		default:
			begun = true
		}
	}
	return content, true
}

// isMarker is whether a line is a document marker. Nothing inside a document can
// look like one.
func isMarker(line, marker string) bool {
	rest, found := strings.CutPrefix(line, marker)
	return found && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// fromYAML copies what is taken and reports the rest. An empty value stands where
// its name does. The lines of the node are counted from another one.
func (r *reader) fromYAML(n *yaml.Node, empty Place, line int) *Element {
	if n.Kind == yaml.AliasNode && r.anchored {
		return r.repeat(n, empty, line)
	}
	e := &Element{Place: Place{line + n.Line, n.Column}, Flow: n.Style&yaml.FlowStyle != 0}
	if r.count(e.Place); r.stopped {
		return e
	}
	r.reject(n, e.Place)
	switch n.Kind {
	case yaml.MappingNode:
		e.Kind = Mapping
		var merged []*Element
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := r.fromYAML(n.Content[i], e.Place, line)
			value := r.fromYAML(n.Content[i+1], name.Place, line)
			switch {
			case n.Content[i].Tag == "!!merge" && r.anchored:
				merged = append(merged, value)
			case n.Content[i].Tag == "!!merge":
				r.fault(Foreign, name.Place, "merge keys (<<) are not supported; write the fields out")
			case !name.IsScalar():
				r.fault(Form, name.Place, "expected a name, but this is %s; write \"name: value\"", name.Describe())
			default:
				e.Members = append(e.Members, Member{name, value})
			}
		}
		r.merge(e, merged)
	case yaml.SequenceNode:
		e.Kind = List
		for _, item := range n.Content {
			e.Items = append(e.Items, r.fromYAML(item, e.Place, line))
		}
	case yaml.ScalarNode:
		e.Kind, e.Text = scalarKind(n), n.Value
		if e.Kind == Nothing {
			e.Text = ""
			if n.Value == "" {
				e.Place = empty
			}
		}
	}
	return e
}

// reject reports what would make one value appear in many places, or change what it
// is behind the reader's back.
func (r *reader) reject(n *yaml.Node, at Place) {
	switch {
	case n.Kind == yaml.AliasNode:
		r.fault(Foreign, at, "*%s is a YAML alias, which is not supported; write the value out, or quote it if it begins with a star", Clip(n.Value, maxQuoted))
	case n.Anchor != "" && !r.anchored:
		r.fault(Foreign, at, "&%s is a YAML anchor, which is not supported; remove it, or quote the value if it begins with &", Clip(n.Anchor, maxQuoted))
	case n.Style&yaml.TaggedStyle != 0:
		r.fault(Foreign, at, "%s is a YAML tag, which is not supported; remove it, or quote the value if it begins with an exclamation mark", Clip(n.Tag, maxQuoted))
	}
}

func scalarKind(n *yaml.Node) Kind {
	const quotes = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	switch {
	case n.Style&quotes != 0:
		return Text
	case n.Tag == "!!null":
		return Nothing
	case n.Tag == "!!bool":
		return Truth
	case isInteger(n.Value):
		return Integer
	case n.Tag == "!!str":
		return Text
	}
	return Other
}
