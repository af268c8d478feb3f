package rule

import (
	"fmt"
	"strings"
)

// Severity is the severity of a problem.
type Severity uint8

const (
	Error   Severity = iota // the document is invalid
	Warning                 // the document is valid, but probably not as intended
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// MarshalText returns the word, so that JSON contains the word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses "error" or "warning".
func (s *Severity) UnmarshalText(text []byte) error {
	i, err := parseWord([]string{Error: "error", Warning: "warning"}, nil, string(text))
	*s = Severity(i)
	return err
}

// Problem is an error or a warning about a document of rules.
type Problem struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code,omitempty"` // such as "E005" or "W006", see LookUp; "" if it is not about rules
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`   // from 1; 0 for the whole document
	Column   int      `json:"column,omitempty"` // from 1, in characters
	Rule     string   `json:"rule,omitempty"`   // id of the rule, if it is about one

	// Field is the field with the problem, within the rule if it is about one: "limit",
	// "match.path", "tiers.pro.burst", "exempt.ip". It is "" if the problem is about a
	// whole rule or document.
	Field string `json:"field,omitempty"`

	Message string `json:"message"` // a sentence with the remedy

	// Excerpt is the line with a caret below the column. API keys are masked.
	Excerpt string `json:"excerpt,omitempty"`
}

// String formats the problem as a compiler does, in one to three lines.
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

// Problems are all problems of a document, in its order.
type Problems []Problem

// String formats each problem as a paragraph.
func (ps Problems) String() string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Errors returns the problems that make the document invalid.
func (ps Problems) Errors() Problems { return ps.of(Error) }

// Warnings returns the problems that do not make the document invalid.
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

// Err returns the errors as an *InvalidError, or nil if there are none.
func (ps Problems) Err() error {
	if errs := ps.Errors(); len(errs) > 0 {
		return &InvalidError{errs}
	}
	return nil
}

// InvalidError reports an invalid document of rules.
type InvalidError struct {
	Problems Problems // errors only, at least one
}

// Error returns the first problem in one line, and the number of others.
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
