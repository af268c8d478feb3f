package ruleedit

import (
	"regexp"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// yamlForm is a document whose rules are items of a list, one after a dash each, on
// lines of their own.
type yamlForm struct {
	*page
	mark  string // with which some editors begin a file
	root  *document.Element
	rules *document.Element // nil if there is no such field
	at    int               // the line of the field
	end   int               // the line before which the list ends at the latest
	dash  int               // the column of the dashes, or less than 0
	heads []int             // the lines of the dashes
}

func newYAMLForm(source []byte) *yamlForm {
	text := strings.TrimPrefix(string(source), mark)
	f := &yamlForm{page: newPage(text), mark: string(source[:len(source)-len(text)]), dash: -1}
	f.root = document.Read("", text, func(document.Fault) {})
	if f.root == nil {
		return f // which cannot be: the source is valid
	}
	f.end = len(f.lines)
	for i, m := range f.root.Members {
		if m.Name.Text != "rules" {
			continue
		}
		f.rules, f.at = m.Value, m.Name.Line-1
		if i+1 < len(f.root.Members) {
			f.end = f.root.Members[i+1].Name.Line - 1
		}
	}
	for i := f.at; i < f.end; i++ {
		if strings.HasPrefix(f.lines[i], "...") {
			f.end = i // of the document
		}
	}
	f.findHeads()
	return f
}

// findHeads finds the lines of the dashes, if all is as expected.
func (f *yamlForm) findHeads() {
	if f.rules == nil || len(f.rules.Items) == 0 || f.rules.Line-1 <= f.at {
		return
	}
	dash := f.rules.Column - 1
	for _, item := range f.rules.Items {
		line := item.Line - 1
		for line > f.at && !hasDash(f.lines[line], dash) {
			line-- // a dash may be on a line of its own
		}
		if line == f.at || len(f.heads) > 0 && line <= f.heads[len(f.heads)-1] {
			return
		}
		f.heads = append(f.heads, line)
	}
	f.dash = dash
}

func hasDash(line string, column int) bool {
	return indentOf(line) == column && (strings.HasPrefix(line[column:], "- ") || strings.TrimSpace(line[column:]) == "-")
}

// item returns the lines of a rule.
func (f *yamlForm) item(i int) (from, to int) {
	to = f.end
	if i+1 < len(f.heads) {
		to = f.heads[i+1]
	}
	return f.heads[i], f.page.end(f.heads[i], to, f.dash)
}

func (f *yamlForm) spliced(from, to int, lines []string, kept bool) (change, bool) {
	return change{append([]byte(f.mark), f.splice(from, to, lines)...), kept}, true
}

// renderItem writes a rule as an item of the list.
func (f *yamlForm) renderItem(r *rule.Rule, dash int) ([]string, bool) {
	return f.render(&document.Element{Kind: document.List, Items: []*document.Element{element(r)}}, dash)
}

func (f *yamlForm) add(r *rule.Rule) (change, bool) {
	if len(f.heads) == 0 {
		return f.addFirst(r)
	}
	last := len(f.heads) - 1
	from, to := f.item(last)
	lines, ok := f.renderItem(r, f.dash)
	if !ok || f.dash < 0 {
		return change{}, false
	}
	if above := f.comments(from); last > 0 && isBlank(f.lines[above-1]) {
		lines = slices.Insert(lines, 0, f.eol) // as between the others
	}
	return f.spliced(to, to, lines, true)
}

// noRules is a field without a rule in it.
var noRules = regexp.MustCompile(`^(rules:)[ \t]*?(?:\[[ \t]*\]|null|~)?([ \t]+#.*)?$`)

// addFirst adds a rule to a document that has none.
func (f *yamlForm) addFirst(r *rule.Rule) (change, bool) {
	lines, ok := f.renderItem(r, 2)
	switch {
	case !ok || f.root == nil:
		return change{}, false
	case f.rules == nil:
		return f.spliced(f.end, f.end, slices.Insert(lines, 0, "rules:"+f.eol), true)
	}
	line := f.lines[f.at]
	head := noRules.FindStringSubmatch(strings.TrimSuffix(line, lineEnd(line)))
	if head == nil {
		return change{}, false
	}
	to := f.at + 1
	var comments []string
	for to < f.end && isComment(f.lines[to]) && indentOf(f.lines[to]) > 0 {
		comments = append(comments, f.lines[to])
		to++
	}
	return f.spliced(f.at, to, slices.Concat([]string{head[1] + head[2] + f.eol}, comments, lines), true)
}

func (f *yamlForm) replace(i int, r *rule.Rule) (change, bool) {
	if f.dash < 0 {
		return change{}, false
	}
	from, to := f.item(i)
	lines, ok := f.renderItem(r, f.dash)
	if !ok {
		return change{}, false
	}
	lines[0] = f.withRemark(lines[0], f.lines[from])
	return f.spliced(from, to, lines, !hasRemark(f.lines[from+1:to]))
}

// remove takes the comments directly above the rule for its own.
func (f *yamlForm) remove(i int) (change, bool) {
	if f.dash < 0 {
		return change{}, false
	}
	from, to := f.item(i)
	from = f.comments(from)
	if isBlank(f.lines[from-1]) && (to == len(f.lines) || isBlank(f.lines[to])) {
		from-- // one empty line is enough
	}
	return f.spliced(from, to, nil, true)
}

// comments is the first of the comments that are directly above a rule.
func (f *yamlForm) comments(head int) int {
	for head-1 > f.at && isComment(f.lines[head-1]) && indentOf(f.lines[head-1]) == f.dash {
		head--
	}
	return head
}

// whole is the set and nothing but it.
func (f *yamlForm) whole(set *rule.Set) change {
	text := rule.Format(set)
	if len(set.Rules) == 0 && string(text) == "{}\n" {
		text = []byte("rules: []\n") // where the next one goes is plain to see
	}
	return change{text, !hasRemark(f.lines)}
}
