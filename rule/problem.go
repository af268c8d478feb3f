package rule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
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

const (
	maxMessage  = 1000 // bytes of a message
	maxProblems = 1000 // more would not help, and a hostile document has millions
)

// report gathers the problems of one document.
type report struct {
	file     string
	quoter   *document.Quoter
	rule     string      // the id of the rule that is being read
	problems [2]Problems // by severity
	left     [2]int      // beyond maxProblems
	seen     map[seen]bool
	faults   map[document.Position]bool
}

type seen struct {
	document.Position
	message string
}

// errorf reports an error in a field, with which the message begins: "match: path". The
// field is "" if the whole is wrong.
func (r *report) errorf(code string, at document.Position, field, format string, args ...any) {
	r.reportf(Error, code, at, field, format, args...)
}

func (r *report) warnf(code string, at document.Position, field, format string, args ...any) {
	r.reportf(Warning, code, at, field, format, args...)
}

func (r *report) reportf(s Severity, code string, at document.Position, field, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if field != "" {
		message = field + ": " + message
	}
	r.problem(s, code, at, fieldPath(field), message)
}

// fieldPath makes "tiers.pro.limit" of "tiers: pro: limit".
func fieldPath(field string) string {
	if field == wholeDocument || field == wholeRule {
		return ""
	}
	return strings.ReplaceAll(strings.TrimSuffix(field, ": the name"), ": ", ".")
}

func (r *report) problem(s Severity, code string, at document.Position, field, message string) {
	if r.faults[at] {
		return
	}
	if len(r.problems[s]) >= maxProblems {
		r.left[s]++
		return
	}
	message = document.Clip(message, maxMessage)
	key := seen{at, message}
	if r.seen[key] {
		return
	}
	r.seen[key] = true
	r.problems[s] = append(r.problems[s], Problem{
		Severity: s, Code: code, File: r.file, Line: at.Line, Column: at.Column,
		Rule: r.rule, Field: field, Message: message,
	})
}

// fault reports what made the document unreadable.
func (r *report) fault(f document.Fault) {
	r.errorf(faultCodes[f.Why], f.Position, "", "%s", f.Message)
	if f.Why == document.Foreign && len(r.faults) < maxProblems {
		r.faults[f.Position] = true // what is made of a value that was not taken is not worth a word
	}
}

var faultCodes = map[document.Why]string{
	document.Syntax: "E001", document.Bounds: "E002", document.Foreign: "E003",
	document.Twice: "E004", document.Form: "E006",
}

// forget drops the problems that were found.
func (r *report) forget() { r.problems, r.left, r.seen = [2]Problems{}, [2]int{}, map[seen]bool{} }

// found tells whether something was found in between.
func (r *report) found() int {
	return len(r.problems[Error]) + len(r.problems[Warning]) + r.left[Error] + r.left[Warning]
}

// done returns the problems in the order of the document. Errors go before warnings if
// there are too many.
func (r *report) done() Problems {
	problems := r.problems[Error]
	room := min(maxProblems-len(problems), len(r.problems[Warning]))
	problems = append(problems, r.problems[Warning][:room]...)
	r.left[Warning] += len(r.problems[Warning]) - room
	for s, code := range []string{Error: "E002", Warning: "W000"} {
		if r.left[s] > 0 {
			problems = append(problems, Problem{Severity: Severity(s), Code: code, File: r.file,
				Message: fmt.Sprintf("there are %d more %ss; fix these and validate again", r.left[s], Severity(s))})
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Code, b.Code))
	})
	for i := range problems {
		p := &problems[i]
		p.Excerpt = r.quoter.Quote(document.Position{Line: p.Line, Column: p.Column})
	}
	return problems
}
