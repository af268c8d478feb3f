package rule

import (
	"strings"
	"unicode"

	"github.com/weirhq/weir/internal/document"
)

// Usable returns the set of a document that can be parsed and compiled. Otherwise the
// error is an *InvalidError with everything that is wrong. The name is as in [Parse].
func Usable(name string, source []byte) (*Set, error) {
	set, problems := Parse(name, source)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	// What was parsed compiles, but this is the last gate before all instances.
	if _, err := Compile(set, Options{}); err != nil {
		return nil, err
	}
	return set, nil
}

// Ready returns the draft as a repository keeps it, if it is Usable: the author and
// the summary are one line each, and not too long, and a summary that is missing
// tells what is different from the current document.
func (d Draft) Ready(name string, current []byte) (Draft, error) {
	set, err := Usable(name, d.Source)
	if err != nil {
		return Draft{}, err
	}
	d.Author = oneLine(d.Author, MaxAuthor)
	d.Summary = oneLine(d.Summary, MaxSummary)
	if d.Summary == "" {
		// One that could not be parsed has nothing in common with the new one.
		old, _ := Parse(name, current)
		d.Summary = Summarize(old, set)
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
