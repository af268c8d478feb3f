package rule

import (
	"fmt"
	"strings"
)

// Severity is how bad a problem is.
type Severity uint8

const (
	Error   Severity = iota // the document cannot be used
	Warning                 // it can, but hardly does what was meant
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// MarshalText makes the word the form in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *Severity) UnmarshalText(text []byte) error {
	i, err := parseWord([]string{Error: "error", Warning: "warning"}, nil, string(text))
	*s = Severity(i)
	return err
}

// Problem is something that is wrong with a document of rules.
type Problem struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code,omitempty"` // such as "E005" or "W006"; see LookUp. Of what is no rule, ""
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`   // from 1; 0 if it is about the document as a whole
	Column   int      `json:"column,omitempty"` // from 1, in characters
	Rule     string   `json:"rule,omitempty"`   // the id, if it is about one

	// Field is the field at fault as it is written, in the rule if it is about one:
	// "limit", "match.path", "tiers.pro.burst", "exempt.ip". It is "" if it is about a
	// whole rule or the whole document.
	Field string `json:"field,omitempty"`

	Message string `json:"message"` // a sentence that names the remedy

	// Excerpt is the line, and below it a caret under the column. API keys are
	// blotted out.
	Excerpt string `json:"excerpt,omitempty"`
}

// String is the problem as a compiler would print it, in one to three lines.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	fmt.Fprintf(&b, "%s: %s", p.Severity, p.Message)
	if p.Code != "" {
		b.WriteString(" [" + p.Code + "]")
	}
	for line := range strings.SplitSeq(p.Excerpt, "\n") {
		if p.Excerpt != "" {
			b.WriteString("\n    " + line)
		}
	}
	return b.String()
}

// Problems is everything that is wrong with a document, in its order.
type Problems []Problem

// String is one paragraph a problem.
func (ps Problems) String() string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Errors are those that make the document unusable.
func (ps Problems) Errors() Problems { return ps.of(Error) }

// Warnings are those that do not.
func (ps Problems) Warnings() Problems { return ps.of(Warning) }

func (ps Problems) of(s Severity) Problems {
	var some Problems
	for _, p := range ps {
		if p.Severity == s {
			some = append(some, p)
		}
	}
	return some
}

// Err is an *InvalidError of the errors, or nil if there are none.
func (ps Problems) Err() error {
	if errs := ps.Errors(); len(errs) > 0 {
		return &InvalidError{errs}
	}
	return nil
}

// InvalidError is a document of rules that cannot be used.
type InvalidError struct {
	Problems Problems // at least one, errors only
}

// Error names the first problem, in a line; the others are counted.
func (e *InvalidError) Error() string {
	first := e.Problems[0]
	first.Excerpt = ""
	text := "rule: " + first.String()
	switch more := len(e.Problems) - 1; more {
	case 0:
		return text
	case 1:
		return text + ", and another error"
	default:
		return fmt.Sprintf("%s, and %d more errors", text, more)
	}
}
