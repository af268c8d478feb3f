package document

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// Tidy indents a YAML document by two and brings it into an order. It moves whole
// lines, so that every comment stays with its line, and a comment on a line of its
// own with the line after it. At most one empty line in a row is left, and no space
// at the end of a line.
//
// What is in brackets is not touched, nor is the order of a mapping with comments
// that belong to no line. It is false for a document that it does not understand.
// Whoever calls it compares what is read before and after.
func Tidy(source []byte, o *Order) ([]byte, bool) {
	text := withoutMark(string(source))
	tree, err := loadYAML(text)
	if err != nil || len(tree.Content) == 0 {
		return nil, false
	}
	t := &tidier{}
	for _, line := range EachLine(text) {
		t.lines = append(t.lines, newTidyLine(line))
	}
	root := tree.Content[0]
	if !t.place(root, 0) {
		return nil, false
	}
	t.shift()
	return []byte(written(t.arrange(root, o, 0, len(t.lines)))), true
}

// tidyLine is a line on its way to where it belongs.
type tidyLine struct {
	text    string // without indentation
	was     int    // how far it was indented
	indent  int    // how far it will be
	dashes  int    // dashes before what it says, of list items that begin here
	begins  bool   // a name or an item does
	inner   int    // where what follows the dashes was
	remarks bool   // nothing but a comment, or nothing
}

func newTidyLine(line string) *tidyLine {
	text := strings.TrimLeft(line, " ")
	trimmed := strings.TrimRightFunc(text, unicode.IsSpace)
	return &tidyLine{text: text, was: len(line) - len(text), remarks: trimmed == "" || trimmed[0] == '#'}
}

func (l *tidyLine) isBlank() bool { return strings.TrimSpace(l.text) == "" }

type tidier struct{ lines []*tidyLine }

// place finds out where names and items begin, and says how far each is indented.
func (t *tidier) place(n *yaml.Node, indent int) bool {
	if n.Style&yaml.FlowStyle != 0 {
		return true
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			line := t.lines[key.Line-1]
			switch {
			case !line.begins:
				line.begins, line.indent, line.inner = true, indent, key.Column-1
			case line.inner != key.Column-1:
				return false
			}
			if !t.place(value, indent+2) {
				return false
			}
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if !t.placeItem(n.Column-1, item, indent) {
				return false
			}
		}
	}
	return true
}

// placeItem takes the dash off the line of an item.
func (t *tidier) placeItem(dash int, item *yaml.Node, indent int) bool {
	line := t.lines[item.Line-1]
	if !line.begins {
		line.begins, line.indent, line.inner = true, indent, line.was
	}
	rest, found := strings.CutPrefix(line.text, "- ")
	if !found || line.inner != dash {
		return false // a dash on a line of its own
	}
	line.text = strings.TrimLeft(rest, " ")
	line.inner += 2 + len(rest) - len(line.text)
	line.dashes++
	if item.Kind == yaml.ScalarNode || item.Style&yaml.FlowStyle != 0 {
		return line.inner == item.Column-1
	}
	return t.place(item, indent+2)
}

// shift indents the lines on which nothing begins. What goes on from a line before
// moves with it. A comment is indented as the line after it, if it was, or else as
// the last line before it that began in the same column.
func (t *tidier) shift() {
	next := t.following()
	columns := map[int]int{} // where lines began, and where they do now
	var owner *tidyLine
	for i, line := range t.lines {
		switch {
		case line.begins:
			owner = line
			columns[line.was], columns[line.inner] = line.indent, line.indent+2*line.dashes
		case line.remarks && next[i] != nil && next[i].was == line.was:
			line.indent = next[i].indent
		case owner == nil && next[i] != nil:
			line.indent = next[i].indent
		case owner == nil:
			line.indent = line.was // nothing begins on a line of its own
		case !line.remarks || line.was > owner.was:
			line.remarks = line.isBlank() // otherwise it is part of a longer text
			line.indent = max(0, line.was+owner.indent+2*owner.dashes-owner.inner)
		default:
			line.indent = columns[line.was]
		}
	}
}

// following is, for each line, the next on which something begins, if there are only
// comments between.
func (t *tidier) following() []*tidyLine {
	next := make([]*tidyLine, len(t.lines))
	var last *tidyLine
	for i := len(t.lines) - 1; i >= 0; i-- {
		next[i] = last
		switch line := t.lines[i]; {
		case line.begins:
			last = line
		case !line.remarks:
			last = nil
		}
	}
	return next
}

// written puts the lines together.
func written(lines []*tidyLine) string {
	var b strings.Builder
	blank := true
	for _, line := range lines {
		text := strings.TrimRightFunc(line.text, unicode.IsSpace)
		if text == "" {
			if !blank {
				b.WriteByte('\n')
			}
			blank = true
			continue
		}
		blank = false
		b.WriteString(strings.Repeat(" ", line.indent))
		b.WriteString(strings.Repeat("- ", line.dashes))
		b.WriteString(text)
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
