package rulefile

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/document"
)

func init() { document.RegisterYAML(read, write) }

// reader reads a source that is YAML: the part of it that people write by hand, without anchors, aliases, tags
// and directives, and one document a file. It takes a time in proportion to the source, whatever is in it.
type reader struct {
	*document.Reader
	piece   int // marks that are read at once
	aliases int // that stand within each other here
}

func read(source *document.Reader) *document.Element {
	piece := pieceMarks
	if source.Anchored && strings.Contains(source.Source, "&") {
		piece = maxPiece // an alias must be in the piece of its anchor
	}
	return readPieces(source, piece)
}

func readPieces(source *document.Reader, piece int) *document.Element {
	r := &reader{Reader: source, piece: piece}
	content, ok := r.checkStream()
	if !ok {
		return nil
	}
	if marks(r.Source) > r.piece {
		return r.long(content)
	}
	return r.atOnce(part{text: r.Source})
}

// loadYAML turns a panic of the parser into an error: an uploaded document must not
// stop the process.
func loadYAML(source string) (root yaml.Node, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("the parser failed: %v", failure)
		}
	}()
	d := yaml.NewDecoder(strings.NewReader(source))
	if err = d.Decode(&root); err == nil {
		err = d.Decode(new(yaml.Node)) // what follows a line that is indented less than the first
	}
	if err == io.EOF {
		err = nil
	}
	return root, err
}

// checkStream rejects what only streams of documents have, before the parser sees
// it: its time is quadratic in the number of directives. It returns what is between the
// markers of the one document.
func (r *reader) checkStream() (content part, ok bool) {
	begun, ended := false, false
	content = part{text: r.Source}
	number := 0
	for offset, line := range document.EachLine(r.Source) {
		number++
		at := document.Position{Line: number, Column: 1}
		text := strings.TrimRightFunc(line, unicode.IsSpace)
		switch {
		case text == "" || strings.HasPrefix(strings.TrimLeft(text, " \t"), "#"):
		case isMarker(line, "---") && !begun && !ended:
			begun = true
			if text == "---" {
				content = part{text: r.Source[offset+len(line):], line: number - 1, offset: offset + len(line)}
			}
		case isMarker(line, "---"), ended:
			r.Fault(document.Foreign, at, "a second YAML document begins here; put everything into the first")
			return part{}, false
		case isMarker(line, "..."):
			ended = true
			content.text = r.Source[content.offset:offset]
		case !begun && text[0] == '%':
			r.Fault(document.Foreign, at, "YAML directives are not supported; remove the line")
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
func (r *reader) fromYAML(n *yaml.Node, empty document.Position, line int) *document.Element {
	if n.Kind == yaml.AliasNode && r.Anchored {
		return r.repeat(n, empty, line)
	}
	e := &document.Element{Position: document.Position{Line: line + n.Line, Column: n.Column}, Flow: n.Style&yaml.FlowStyle != 0}
	if r.Count(e.Position); r.Stopped {
		return e
	}
	r.reject(n, e.Position)
	switch n.Kind {
	case yaml.MappingNode:
		e.Kind = document.Mapping
		var merged []*document.Element
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := r.fromYAML(n.Content[i], e.Position, line)
			value := r.fromYAML(n.Content[i+1], name.Position, line)
			switch {
			case n.Content[i].Tag == "!!merge" && r.Anchored:
				merged = append(merged, value)
			case n.Content[i].Tag == "!!merge":
				r.Fault(document.Foreign, name.Position, "merge keys (<<) are not supported; write the fields out")
			case !name.IsScalar():
				r.Fault(document.Form, name.Position, "expected a name, but this is %s; write \"name: value\"", name.Describe())
			default:
				e.Members = append(e.Members, document.Member{Name: name, Value: value})
			}
		}
		r.merge(e, merged)
	case yaml.SequenceNode:
		e.Kind = document.List
		for _, item := range n.Content {
			e.Items = append(e.Items, r.fromYAML(item, e.Position, line))
		}
	case yaml.ScalarNode:
		e.Kind, e.Text = scalarKind(n), n.Value
		if e.Kind == document.Nothing {
			e.Text = ""
			if n.Value == "" {
				e.Position = empty
			}
		}
	}
	return e
}

// reject reports what would make one value appear in many places, or change what it
// is behind the reader's back.
func (r *reader) reject(n *yaml.Node, at document.Position) {
	switch {
	case n.Kind == yaml.AliasNode:
		r.Fault(document.Foreign, at, "*%s is a YAML alias, which is not supported; write the value out, or quote it if it begins with a star", document.Clip(n.Value, document.MaxQuoted))
	case n.Anchor != "" && !r.Anchored:
		r.Fault(document.Foreign, at, "&%s is a YAML anchor, which is not supported; remove it, or quote the value if it begins with &", document.Clip(n.Anchor, document.MaxQuoted))
	case n.Style&yaml.TaggedStyle != 0:
		r.Fault(document.Foreign, at, "%s is a YAML tag, which is not supported; remove it, or quote the value if it begins with an exclamation mark", document.Clip(n.Tag, document.MaxQuoted))
	}
}

func scalarKind(n *yaml.Node) document.Kind {
	const quotes = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	switch {
	case n.Style&quotes != 0:
		return document.Text
	case n.Tag == "!!null":
		return document.Nothing
	case n.Tag == "!!bool":
		return document.Truth
	case document.IsInteger(n.Value):
		return document.Integer
	case n.Tag == "!!str":
		return document.Text
	}
	return document.Other
}

// repeat makes once more what an alias stands for. Every value of it is counted before it
// is made, so few lines cannot stand for more than a document may have; and a value that
// contains itself comes to an end.
func (r *reader) repeat(n *yaml.Node, empty document.Position, line int) *document.Element {
	at := document.Position{Line: line + n.Line, Column: n.Column}
	if r.aliases == document.MaxDepth {
		r.Stop(document.Bounds, at, "more than %d aliases stand within each other; write the value of *%s out", document.MaxDepth, document.Clip(n.Value, document.MaxQuoted))
		return &document.Element{}
	}
	r.aliases++
	defer func() { r.aliases-- }()
	e := r.fromYAML(n.Alias, empty, line)
	e.Position = at
	return e
}

// merge adds the members of other mappings that a mapping does not have itself. Of two that
// are merged, the first wins.
func (r *reader) merge(into *document.Element, values []*document.Element) {
	if len(values) == 0 || r.Stopped {
		return
	}
	known := make(map[string]bool, len(into.Members))
	for _, m := range into.Members {
		known[m.Name.Text] = true
	}
	for _, value := range values {
		mappings := []*document.Element{value}
		if value.Kind == document.List {
			mappings = value.Items
		}
		for _, from := range mappings {
			if from.Kind != document.Mapping {
				r.Fault(document.Form, from.Position, "<<: this is %s; write an alias of a mapping, as in <<: *name", from.Describe())
				continue
			}
			for _, m := range from.Members {
				if !known[m.Name.Text] {
					known[m.Name.Text] = true
					into.Members = append(into.Members, m)
				}
			}
		}
	}
}

// hints are what usually lies behind an error of the YAML parser, by a part of it.
var hints = []struct {
	part string
	why  document.Why
	hint string
}{
	{"unknown anchor", document.Foreign, "a value that begins with * needs quotes, as in host: \"*.example.com\""},
	{"while scanning an alias", document.Foreign, "a value that begins with * needs quotes, as in action: \"*\""},
	{"while scanning an anchor", document.Foreign, "a value that begins with & needs quotes"},
	{"mapping values are not allowed", document.Syntax, "check the indentation, and quote a value that contains a colon and a space"},
	{"did not find expected key", document.Syntax, "the fields of one mapping must begin in the same column"},
	{"did not find expected '-' indicator", document.Syntax, "the items of one list must begin in the same column, and so must the fields of one item"},
	{"did not find expected ',' or", document.Syntax, "a bracket is not closed, a comma is missing, or a value with brackets, such as /users/{id}, is not in quotes"},
	{"did not find expected <document start>", document.Syntax, "the line is indented less than the first line of the document; start both in the same column"},
	{"could not find expected ':'", document.Syntax, "a name needs a colon and a space after it"},
	{"found unexpected end of stream", document.Syntax, "close the quote"},
	{"escape", document.Syntax, "in double quotes a backslash begins an escape; write two of them, or use single quotes"},
	{"cannot start any token", document.Syntax, "indent with spaces, not tabs, and put a value that begins with @, ` or % in quotes"},
	{"max depth", document.Bounds, "reduce the nesting"},
	{"control characters", document.Syntax, "remove the invisible characters"},
}

// syntax says what the YAML parser found in a part of the source, where, and what
// usually helps.
func (r *reader) syntax(err error, p part) {
	load, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		r.Fault(document.Syntax, document.Position{}, "invalid YAML: %v", err)
		return
	}
	at, begin := document.Position{Line: load.Mark.Line, Column: load.Mark.Column}, document.Position{Line: load.ContextMark.Line, Column: load.ContextMark.Column}
	said := strings.TrimSpace(load.ContextMsg + " " + load.Message)
	switch {
	case at.Line == 0:
		at = firstControl(p.text)
	case begin.Line > 0 && begin.Line < at.Line && isBlankFrom(p.text, at.Line):
		at = begin // what is not closed is of more interest than the end
	case begin.Line > 0 && begin.Line < at.Line:
		said = fmt.Sprintf("%s (begun in line %d) %s", load.ContextMsg, p.line+begin.Line, load.Message)
	}
	at.Line += p.line
	if r.Anchored && strings.Contains(said, "unknown anchor") {
		r.Fault(document.Syntax, at, "invalid YAML: %s; write the anchor before its first alias, in a document of at most %d lines and values; a value that begins with * needs quotes", document.Clip(said, 200), maxPiece)
		return
	}
	for _, h := range hints {
		if strings.Contains(said, h.part) {
			r.Fault(h.why, at, "invalid YAML: %s; %s", document.Clip(said, 200), h.hint)
			return
		}
	}
	r.Fault(document.Syntax, at, "invalid YAML: %s", document.Clip(said, 200))
}

// isBlankFrom is whether nothing follows from a line on.
func isBlankFrom(source string, line int) bool {
	number := 0
	for offset := range document.EachLine(source) {
		if number++; number == line {
			return strings.TrimSpace(source[offset:]) == ""
		}
	}
	return true
}

// firstControl finds the first character that YAML does not allow.
func firstControl(source string) document.Position {
	return document.Seek(source, func(rest string) bool {
		c, _ := utf8.DecodeRuneInString(rest)
		return document.LineBreak(rest) == 0 && (c != '\t' && unicode.IsControl(c) || c == '\uFFFE' || c == '\uFFFF')
	})
}
