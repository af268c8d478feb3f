package repo

import (
	"strings"
	"unicode"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// Ready returns the draft as a repository keeps it, if it is [rule.Usable]: the author and
// the summary are one line each, and not too long, and a summary that is missing
// tells what is different from the current document.
func (d Draft) Ready(name string, current []byte) (Draft, error) {
	set, err := rule.Usable(name, d.Source)
	if err != nil {
		return Draft{}, err
	}
	d.Author = oneLine(d.Author, MaxAuthor)
	d.Summary = oneLine(d.Summary, rule.MaxSummary)
	if d.Summary == "" {
		// One that could not be parsed has nothing in common with the new one.
		old, _ := rule.Parse(name, current)
		d.Summary = rule.Summarize(old, set)
	}
	return d, nil
}

// oneLine makes a text fit for logs and lists: nobody signs for two lines.
func oneLine(text string, most int) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return document.Clip(strings.TrimSpace(text), most)
}
