package document

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxExcerpt = 100 // characters of a line that is quoted

// Lines is a source, line by line.
type Lines []string

// withoutMark cuts off the mark with which some editors begin a file.
func withoutMark(source []byte) []byte { return bytes.TrimPrefix(source, []byte("\xef\xbb\xbf")) }

// SplitLines breaks a source where a YAML parser does.
func SplitLines(source string) Lines {
	var lines Lines
	start := 0
	for i := 0; i < len(source); {
		n := lineBreak(source[i:])
		if n == 0 {
			i++
			continue
		}
		lines = append(lines, source[start:i])
		i += n
		start = i
	}
	return append(lines, source[start:])
}

// lineBreak is the length of the line break that s begins with, or 0.
func lineBreak(s string) int {
	switch {
	case strings.HasPrefix(s, "\r\n"):
		return 2
	case s[0] == '\n', s[0] == '\r':
		return 1
	case strings.HasPrefix(s, "\u0085"):
		return 2
	case strings.HasPrefix(s, "\u2028"), strings.HasPrefix(s, "\u2029"):
		return 3
	}
	return 0
}

// Quoter quotes lines of a source in messages.
type Quoter struct {
	source  string
	lines   Lines
	secrets map[int][]string
	ready   map[int][]rune // lines as they may be shown; one may be very long
}

// NewQuoter returns a Quoter for a source, as Read takes it.
func NewQuoter(source []byte) *Quoter {
	return &Quoter{source: string(withoutMark(source)), secrets: map[int][]string{}, ready: map[int][]rune{}}
}

// Hide keeps a value out of what is quoted of its line.
func (q *Quoter) Hide(at Place, secret string) {
	if secret != "" {
		q.secrets[at.Line] = append(q.secrets[at.Line], secret, strings.Repeat("*", utf8.RuneCountInString(secret)))
	}
}

// Quote returns the line of a place, and below it a caret under the column. Secrets
// in it are blotted out, and what could write to a terminal.
func (q *Quoter) Quote(at Place) string {
	if q.lines == nil {
		q.lines = SplitLines(q.source)
	}
	if at.Line < 1 || at.Line > len(q.lines) {
		return ""
	}
	line, known := q.ready[at.Line]
	if !known {
		line = []rune(strings.NewReplacer(q.secrets[at.Line]...).Replace(q.lines[at.Line-1]))
		q.ready[at.Line] = line
	}
	column := min(max(at.Column, 1), len(line)+1) - 1
	start, end := 0, len(line)
	if len(line) > maxExcerpt {
		start, end = max(0, column-maxExcerpt/2), min(len(line), column+maxExcerpt/2)
	}
	var b strings.Builder
	if start > 0 {
		b.WriteRune('…')
	}
	for _, c := range line[start:end] {
		b.WriteRune(printable(c))
	}
	if end < len(line) {
		b.WriteRune('…')
	}
	indent := column - start
	if start > 0 {
		indent++
	}
	return strings.TrimRight(b.String(), " ") + "\n" + strings.Repeat(" ", indent) + "^"
}

func printable(c rune) rune {
	switch {
	case c == '\t':
		return ' '
	case !unicode.IsPrint(c):
		return utf8.RuneError
	}
	return c
}

// Clip cuts a text that is longer than n bytes.
func Clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	const end = "…"
	cut := n - len(end)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + end
}

// walker knows the place of an offset, as long as one only goes forward.
type walker struct {
	Place
	source string
	offset int
}

// advance goes to an offset.
func (w *walker) advance(offset int) {
	for w.offset < min(offset, len(w.source)) {
		w.step()
	}
}

// skip passes characters of a set.
func (w *walker) skip(set string) {
	for w.offset < len(w.source) && strings.IndexByte(set, w.source[w.offset]) >= 0 {
		w.step()
	}
}

func (w *walker) step() {
	if n := lineBreak(w.source[w.offset:]); n > 0 {
		w.Line, w.Column, w.offset = w.Line+1, 1, w.offset+n
		return
	}
	_, n := utf8.DecodeRuneInString(w.source[w.offset:])
	w.Column, w.offset = w.Column+1, w.offset+n
}
