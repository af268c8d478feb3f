package document

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxExcerpt = 100   // characters of a line that is quoted
	maxSecrets = 1_000 // values to be kept out of a line; one with more is not quoted
)

// withoutMark cuts off the mark with which some editors begin a file.
func withoutMark(source string) string { return strings.TrimPrefix(source, "\xef\xbb\xbf") }

// EachLine breaks a source where a YAML parser does. It yields the offset of each line,
// and the line without its break.
func EachLine(source string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		start := 0
		for i := 0; i < len(source); {
			n := LineBreak(source[i:])
			if n == 0 {
				i++
				continue
			}
			if !yield(start, source[start:i]) {
				return
			}
			i += n
			start = i
		}
		yield(start, source[start:])
	}
}

// LineBreak is the length of the line break that s begins with, or 0.
func LineBreak(s string) int {
	switch {
	case s[0] != '\n' && s[0] != '\r' && s[0] < 0x80:
		return 0
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

// Quoter quotes lines of a source in messages. It goes through the source once if the
// places are in order.
type Quoter struct {
	source  string
	secrets map[int][]string
	line    int // the one at the offset, from 1
	offset  int
	ready   int    // the line that is shown
	shown   []rune // as it may be shown; it may be very long
}

// NewQuoter returns a Quoter for a source, as Read takes it.
func NewQuoter(source string) *Quoter {
	return &Quoter{source: withoutMark(source), secrets: map[int][]string{}, line: 1}
}

// Hide keeps a value out of what is quoted of its line.
func (q *Quoter) Hide(at Position, secret string) {
	if secret != "" && len(q.secrets[at.Line]) < 2*maxSecrets {
		q.ready = 0 // what was made ready may show it
		q.secrets[at.Line] = append(q.secrets[at.Line], secret, strings.Repeat("*", utf8.RuneCountInString(secret)))
	}
}

// Quote returns the line of a place, and below it a caret under the column. Secrets
// in it are blotted out, and what could write to a terminal.
func (q *Quoter) Quote(at Position) string {
	if len(q.secrets[at.Line]) >= 2*maxSecrets || !q.prepareLine(at.Line) {
		return ""
	}
	line := q.shown
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
		switch {
		case c == '\t':
			c = ' '
		case !unicode.IsPrint(c):
			c = utf8.RuneError
		}
		b.WriteRune(c)
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

// Within returns the place of a character of a value that stands at a place: the place of
// the value itself if the value is not written there as it is, such as a text of several
// lines.
func (q *Quoter) Within(at Position, value string, character int) Position {
	if !q.prepareLine(at.Line) || at.Column < 1 || at.Column > len(q.shown) {
		return at
	}
	rest := string(q.shown[at.Column-1:])
	if unquoted := strings.TrimLeft(rest[:1], `"'`) + rest[1:]; len(unquoted) < len(rest) {
		rest = unquoted
		character++
	}
	if !strings.HasPrefix(rest, value) {
		return at
	}
	at.Column += character
	return at
}

// prepareLine makes a line ready to be shown, if there is such a line.
func (q *Quoter) prepareLine(line int) bool {
	if line < 1 {
		return false
	}
	if q.ready == line {
		return true
	}
	if line < q.line {
		q.line, q.offset = 1, 0
	}
	for start, text := range EachLine(q.source[q.offset:]) {
		if q.line == line {
			q.offset += start
			q.ready, q.shown = line, []rune(strings.NewReplacer(q.secrets[line]...).Replace(text))
			return true
		}
		q.line++
	}
	q.line, q.offset = 1, 0
	return false
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
	Position
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
	if n := LineBreak(w.source[w.offset:]); n > 0 {
		w.Line, w.Column, w.offset = w.Line+1, 1, w.offset+n
		return
	}
	_, n := utf8.DecodeRuneInString(w.source[w.offset:])
	w.Column, w.offset = w.Column+1, w.offset+n
}

// Seek returns the first place from which on a source is as wanted; none if there is none.
func Seek(source string, wanted func(rest string) bool) Position {
	for w := (walker{Position{1, 1}, source, 0}); w.offset < len(source); w.step() {
		if wanted(source[w.offset:]) {
			return w.Position
		}
	}
	return Position{}
}
