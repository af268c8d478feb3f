package ruleedit

import (
	"encoding/json"
	"reflect"
	"strings"
	"unicode"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// Tidy formats a document that a person wrote: it indents by two, brings the
// fields of a rule into the order of the reference, and leaves at most one empty line
// in a row and no spaces at the end of a line. It moves whole lines: comments go with
// the line that they stand on or before, and values, quotes and what is in brackets
// stay as they are. Fields with a comment between them that an empty line sets apart
// from the next one are left in their order. JSON is indented by two.
//
// A document with errors is not touched: nil is returned with the errors. Nor is one
// that would then mean something else, such as one with a dash on a line of its own:
// it is returned as it is, with a warning that says so.
func Tidy(name string, source []byte) ([]byte, rule.Problems) {
	set, problems := rule.Parse(name, source)
	if set == nil {
		return nil, problems
	}
	tidy, ok := tidySource(name, source)
	if ok {
		again, _ := rule.Parse(name, tidy)
		ok = reflect.DeepEqual(set, again)
	}
	if !ok {
		return source, append(rule.Problems{{Severity: rule.Warning, Code: "W015", File: name,
			Message: "the document was not formatted, because this would have changed its meaning; write each list item on the same line as its dash, and no comments inside texts of several lines"}}, problems...)
	}
	return tidy, problems
}

func tidySource(name string, source []byte) ([]byte, bool) {
	root := document.Read(name, string(source), func(document.Fault) {})
	switch {
	case root == nil:
		return nil, false
	case root.Kind == document.Nothing || len(root.Members) == 0:
		return source, true // nothing but comments
	case !strings.HasSuffix(name, ".json") && !json.Valid(source):
		return tidyLines(source, root)
	}
	documentOrder.sort(root)
	return indented(root.JSON()), true
}

// tidyLines indents a YAML document by two and brings it into order. It moves whole
// lines, so that every comment stays with its line, and a comment on a line of its
// own with the line after it. What is in brackets is not touched, nor is the order of a
// mapping with comments that belong to no line. It is false for a document that it does
// not understand; the caller compares what is read before and after.
func tidyLines(source []byte, root *document.Element) ([]byte, bool) {
	t := &tidier{}
	for _, line := range document.EachLine(strings.TrimPrefix(string(source), mark)) {
		indent := indentOf(line)
		t.lines = append(t.lines, &tidyLine{text: line[indent:], was: indent, remarks: isBlank(line) || isComment(line)})
	}
	if !t.place(root, 0) {
		return nil, false
	}
	t.shift()
	return []byte(written(t.arrange(root, documentOrder, 0, len(t.lines)))), true
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

func (l *tidyLine) isBlank() bool { return isBlank(l.text) }

type tidier struct{ lines []*tidyLine }

// place finds out where names and items begin, and says how far each is indented.
func (t *tidier) place(e *document.Element, indent int) bool {
	if e.Flow {
		return true
	}
	for _, m := range e.Members {
		line := t.lines[m.Name.Line-1]
		switch {
		case !line.begins:
			line.begins, line.indent, line.inner = true, indent, m.Name.Column-1
		case line.inner != m.Name.Column-1:
			return false
		}
		if !t.place(m.Value, indent+2) {
			return false
		}
	}
	for _, item := range e.Items {
		if !t.placeItem(e.Column-1, item, indent) {
			return false
		}
	}
	return true
}

// placeItem takes the dash off the line of an item.
func (t *tidier) placeItem(dash int, item *document.Element, indent int) bool {
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
	if item.IsScalar() || item.Flow {
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
