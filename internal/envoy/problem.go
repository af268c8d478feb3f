package envoy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// Problem is something that is wrong with a file.
type Problem struct {
	Severity rule.Severity `json:"severity"`
	File     string        `json:"file"`
	Line     int           `json:"line,omitempty"`   // from 1; 0 if it is about the file as a whole
	Column   int           `json:"column,omitempty"` // from 1, in characters
	Message  string        `json:"message"`          // a sentence that names the remedy

	// Excerpt is the line, and below it a caret under the column.
	Excerpt string `json:"excerpt,omitempty"`
}

// String is the problem as a compiler would print it, in one to three lines.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File + ":")
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", p.Line, p.Column)
	}
	fmt.Fprintf(&b, " %s: %s", p.Severity, p.Message)
	for line := range strings.SplitSeq(p.Excerpt, "\n") {
		if p.Excerpt != "" {
			b.WriteString("\n    " + line)
		}
	}
	return b.String()
}

// Problems is everything that is wrong with some files, in their order.
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

// Err is an *InvalidError of the errors, or nil if there are warnings at most.
func (ps Problems) Err() error {
	errs := slices.DeleteFunc(slices.Clone(ps), func(p Problem) bool { return p.Severity != rule.Error })
	if len(errs) == 0 {
		return nil
	}
	return &InvalidError{errs}
}

// InvalidError is a configuration that cannot be used.
type InvalidError struct {
	Problems Problems // at least one, errors only
}

// Error names the first problem, in a line; the others are counted.
func (e *InvalidError) Error() string {
	first := e.Problems[0]
	first.Excerpt = ""
	text := "envoy: " + first.String()
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
	maxProblems = 200  // of one file; more help nobody
)

// report gathers the problems of one file.
type report struct {
	file     string
	quoter   *document.Quoter
	problems Problems
	errors   int
	left     [2]int // beyond maxProblems, by severity
	faults   map[document.Place]bool
}

func newReport(file, source string) *report {
	return &report{file: file, quoter: document.NewQuoter(source), faults: map[document.Place]bool{}}
}

func (r *report) errorf(at document.Place, format string, args ...any) {
	r.add(rule.Error, at, format, args...)
}

func (r *report) warnf(at document.Place, format string, args ...any) {
	r.add(rule.Warning, at, format, args...)
}

func (r *report) add(s rule.Severity, at document.Place, format string, args ...any) {
	if r.faults[at] {
		return
	}
	if s == rule.Error {
		r.errors++
	}
	if len(r.problems) >= maxProblems {
		r.left[s]++
		return
	}
	r.problems = append(r.problems, Problem{
		Severity: s, File: r.file, Line: at.Line, Column: at.Column,
		Message: document.Clip(fmt.Sprintf(format, args...), maxMessage),
	})
}

// fault reports what made the document unreadable. What is made of a value that was
// not taken is not worth a word.
func (r *report) fault(f document.Fault) {
	r.errorf(f.Place, "%s", f.Message)
	if f.Why == document.Foreign && len(r.faults) < maxProblems {
		r.faults[f.Place] = true
	}
}

// done returns the problems in the order of the file.
func (r *report) done() Problems {
	for s, n := range r.left {
		if n > 0 {
			r.problems = append(r.problems, Problem{Severity: rule.Severity(s), File: r.file,
				Message: fmt.Sprintf("there are %d more %ss; mend these and look again", n, rule.Severity(s))})
		}
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Severity, b.Severity))
	})
	for i := range r.problems {
		p := &r.problems[i]
		p.Excerpt = r.quoter.Quote(document.Place{Line: p.Line, Column: p.Column})
	}
	return r.problems
}
