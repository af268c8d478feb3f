package ruleedit

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// page is a source as lines, each with its line break, so that lines can be taken out
// and put in while the others stay as they are to the last byte.
type page struct {
	lines []string
	eol   string // for new lines
	new   int    // bytes of lines that were rendered
}

// maxRendered bounds the bytes that are rendered for one page. A document in the far right of
// its lines would otherwise repeat its indentation on each new one.
const maxRendered = 2 * document.MaxSize

func newPage(source string) *page {
	p := &page{eol: "\n"}
	last := 0
	for at := range document.EachLine(source) {
		if at > last {
			p.lines = append(p.lines, source[last:at])
			last = at
		}
	}
	if last < len(source) {
		p.lines = append(p.lines, source[last:])
	}
	if strings.Contains(source, "\r\n") {
		p.eol = "\r\n"
	}
	return p
}

// splice replaces the lines from one to before another, and returns the whole.
func (p *page) splice(from, to int, lines []string) []byte {
	before := slices.Clone(p.lines[:from])
	if n := len(before); n > 0 && len(lines) > 0 && lineEnd(before[n-1]) == "" {
		before[n-1] += p.eol // the last line of a file may have none
	}
	return []byte(strings.Join(slices.Concat(before, lines, p.lines[to:]), ""))
}

// lineEnd is the line break of a line.
func lineEnd(line string) string {
	return line[len(strings.TrimRight(line, "\r\n\u0085\u2028\u2029")):]
}

// element is a rule as it is written.
func element(r *rule.Rule) *document.Element {
	return document.Read("", string(rule.RuleToJSON(r)), func(document.Fault) {})
}

// render writes an element as lines that are indented, unless they become too long.
func (p *page) render(e *document.Element, indent int) ([]string, bool) {
	text, err := e.YAML()
	if err != nil {
		return nil, false
	}
	p.new += len(text) + strings.Count(string(text), "\n")*(indent+len(p.eol))
	if p.new > maxRendered {
		return nil, false
	}
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		if line != "" {
			line = strings.Repeat(" ", indent) + line
		}
		lines = append(lines, line+p.eol)
	}
	return lines, true
}

// isBlank is whether there is nothing on a line.
func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

// isComment is whether there is nothing but a comment on a line.
func isComment(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }

// indentOf is how far a line is indented.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// end is where a part ends that reaches to before a line at most: comments that are
// not indented deeper than it belong to what comes next.
func (p *page) end(from, to, indent int) int {
	for to > from+1 && (isBlank(p.lines[to-1]) || isComment(p.lines[to-1]) && indentOf(p.lines[to-1]) <= indent) {
		to--
	}
	return to
}

// remark is the comment at the end of a line, with the space before it. What is in
// quotes is no comment.
func remark(line string) string {
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		first := i == 0 || strings.IndexByte(" \t", line[i-1]) >= 0
		switch c := line[i]; {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '#' && first:
			line = strings.TrimSuffix(line, lineEnd(line))
			return line[len(strings.TrimRight(line[:i], " \t")):]
		case (c == '"' || c == '\'') && (first || strings.IndexByte("[{,:", line[i-1]) >= 0):
			quote = c
		}
	}
	return ""
}

// withRemark ends a line with the remark of another, in the same column if the remarks
// are in a column by themselves.
func (p *page) withRemark(line, other string) string {
	text := remark(other)
	if text == "" {
		return line
	}
	line = strings.TrimSuffix(line, p.eol)
	column := strings.Index(other, text) + indentOf(text)
	if words := text[indentOf(text):]; indentOf(text) > 1 {
		text = strings.Repeat(" ", max(1, column-len(line))) + words
	}
	return line + text + p.eol
}

// hasRemark is whether there is a comment among the lines. It may take a part of a
// longer text for one.
func hasRemark(lines []string) bool {
	return slices.ContainsFunc(lines, func(line string) bool { return remark(line) != "" })
}
