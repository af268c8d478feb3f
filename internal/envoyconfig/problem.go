package envoyconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// InvalidError is a configuration that cannot be used.
type InvalidError struct{ rule.InvalidError }

// Error names the first problem, in a line; the others are counted.
func (e *InvalidError) Error() string {
	return "envoy: " + strings.TrimPrefix(e.InvalidError.Error(), "rule: ")
}

// Invalid is an *InvalidError of the errors among some problems, or nil if there are none.
func Invalid(problems rule.Problems) error {
	if errs := problems.Errors(); len(errs) > 0 {
		return &InvalidError{rule.InvalidError{Problems: errs}}
	}
	return nil
}

const (
	maxMessage  = 1000 // bytes of a message
	maxProblems = 200  // of one file; more would not help
)

// report gathers the problems of one file.
type report struct {
	file     string
	quoter   *document.Quoter
	problems rule.Problems
	errors   int
	left     [2]int // beyond maxProblems, by severity
	faults   map[document.Place]bool
	where    where
}

// where is what is being read, for elements without a place.
type where struct {
	path string
	item int // of the descriptors below the path, from 1; 0 is the path itself
}

func (w where) String() string {
	if w.item == 0 {
		return w.path
	}
	return fmt.Sprintf("%s.descriptors[%d]", w.path, w.item-1)
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
	message := fmt.Sprintf(format, args...)
	if at == (document.Place{}) && r.where.path != "" {
		message = r.where.String() + ": " + message
	}
	r.problems = append(r.problems, rule.Problem{
		Severity: s, File: r.file, Line: at.Line, Column: at.Column, Message: document.Clip(message, maxMessage),
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
func (r *report) done() rule.Problems {
	for s, n := range r.left {
		if n > 0 {
			r.problems = append(r.problems, rule.Problem{Severity: rule.Severity(s), File: r.file,
				Message: fmt.Sprintf("there are %d more %ss; fix these and validate again", n, rule.Severity(s))})
		}
	}
	slices.SortStableFunc(r.problems, func(a, b rule.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Severity, b.Severity))
	})
	for i := range r.problems {
		p := &r.problems[i]
		p.Excerpt = r.quoter.Quote(document.Place{Line: p.Line, Column: p.Column})
	}
	return r.problems
}
