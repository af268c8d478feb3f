package document

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// hints are what usually lies behind an error of the YAML parser, by a part of it.
var hints = []struct {
	part string
	why  Why
	hint string
}{
	{"unknown anchor", Foreign, "a value that begins with * needs quotes, as in host: \"*.example.com\""},
	{"while scanning an alias", Foreign, "a value that begins with * needs quotes, as in action: \"*\""},
	{"while scanning an anchor", Foreign, "a value that begins with & needs quotes"},
	{"mapping values are not allowed", Syntax, "check the indentation, and quote a value that contains a colon and a space"},
	{"did not find expected key", Syntax, "the fields of one mapping must begin in the same column"},
	{"did not find expected '-' indicator", Syntax, "the items of one list must begin in the same column, and so must the fields of one item"},
	{"did not find expected ',' or", Syntax, "a bracket is not closed, a comma is missing, or a value with brackets, such as /users/{id}, is not in quotes"},
	{"did not find expected <document start>", Syntax, "the line is indented less than the first line of the document; start both in the same column"},
	{"could not find expected ':'", Syntax, "a name needs a colon and a space after it"},
	{"found unexpected end of stream", Syntax, "close the quote"},
	{"escape", Syntax, "in double quotes a backslash begins an escape; write two of them, or use single quotes"},
	{"cannot start any token", Syntax, "indent with spaces, not tabs, and put a value that begins with @, ` or % in quotes"},
	{"max depth", Bounds, "reduce the nesting"},
	{"control characters", Syntax, "remove the invisible characters"},
}

// syntax says what the YAML parser found in a part of the source, where, and what
// usually helps.
func (r *reader) syntax(err error, p part) {
	load, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		r.fault(Syntax, Place{}, "invalid YAML: %v", err)
		return
	}
	at, begin := Place{load.Mark.Line, load.Mark.Column}, Place{load.ContextMark.Line, load.ContextMark.Column}
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
	if r.anchored && strings.Contains(said, "unknown anchor") {
		r.fault(Syntax, at, "invalid YAML: %s; write the anchor before its first alias, in a document of at most %d lines and values; a value that begins with * needs quotes", Clip(said, 200), maxPiece)
		return
	}
	for _, h := range hints {
		if strings.Contains(said, h.part) {
			r.fault(h.why, at, "invalid YAML: %s; %s", Clip(said, 200), h.hint)
			return
		}
	}
	r.fault(Syntax, at, "invalid YAML: %s", Clip(said, 200))
}

// isBlankFrom is whether nothing follows from a line on.
func isBlankFrom(source string, line int) bool {
	number := 0
	for offset := range EachLine(source) {
		if number++; number == line {
			return strings.TrimSpace(source[offset:]) == ""
		}
	}
	return true
}

// firstControl finds the first character that YAML does not allow.
func firstControl(source string) Place {
	w := walker{Place{1, 1}, source, 0}
	for w.offset < len(source) {
		c, _ := utf8.DecodeRuneInString(source[w.offset:])
		if lineBreak(source[w.offset:]) == 0 && (c != '\t' && unicode.IsControl(c) || c == '\uFFFE' || c == '\uFFFF') {
			return w.Place
		}
		w.step()
	}
	return Place{}
}
