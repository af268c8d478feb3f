package envoyconfig

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/rule"
)

// fields are the values of a mapping by name. What is empty is not there.
type fields map[string]*document.Element

// place is where a field stands, or where the mapping does that lacks it.
func (f fields) place(name string, mapping *document.Element) document.Position {
	if e := f[name]; e != nil {
		return e.Position
	}
	return mapping.Position
}

// fields checks the names in a mapping.
func (p *parser) fields(e *document.Element, what string, known []string) fields {
	if e.Kind != document.Mapping {
		p.errorf(e.Position, "%s: this is %s; write fields here, such as %s", what, e.Describe(), strings.Join(known[:min(2, len(known))], ", "))
		return nil
	}
	f := make(fields, len(e.Members))
	for _, m := range e.Members {
		name := m.Name.Text
		switch {
		case slices.Contains(known, name):
			if m.Value.Kind != document.Nothing {
				f[name] = m.Value
				p.config.noteOwn(name)
			}
		case isElsewhere(name):
			// A file that was good enough until now must not keep weir from starting.
			p.warnf(m.Name.Position, "%s has no field %s, so it has no effect here; move it to where it belongs", what, name)
		default:
			p.errorf(m.Name.Position, "%s has no field %s; %s", what, document.Quote(name),
				notation.Hint(name, known, "remove it, or use one of "+strings.Join(known, ", ")))
		}
	}
	return f
}

// isElsewhere is whether a field is known in some other place, where envoyproxy/ratelimit
// would have it.
func isElsewhere(name string) bool {
	return slices.Contains(domainFields, name) || slices.Contains(descriptorFields, name) || slices.Contains(limitFields, name)
}

// text reads a scalar, also one that looks like a number. It is "" if there is none.
func (p *parser) text(e *document.Element, field string) (string, bool) {
	switch {
	case e == nil:
		return "", true
	case !e.IsScalar():
		p.errorf(e.Position, "%s: this is %s; write one value", field, e.Describe())
		return "", false
	}
	return e.Text, true
}

// truths are the words for true and false of the YAML that envoyproxy/ratelimit reads.
var truths = map[string]bool{"true": true, "yes": true, "on": true, "y": true, "false": false, "no": false, "off": false, "n": false}

func (p *parser) truth(e *document.Element, field string) bool {
	if e == nil {
		return false
	}
	if e.Kind == document.Truth || e.Kind == document.Text {
		if b, known := truths[strings.ToLower(e.Text)]; known {
			return b
		}
	}
	p.errorf(e.Position, "%s: this is %s; write true or false", field, e.Describe())
	return false
}

// number reads a whole number. It is 0 if there is none.
func (p *parser) number(e *document.Element, field string, least, most int64) (int64, bool) {
	if e == nil {
		return 0, true
	}
	text := e.Text
	if e.Kind == document.Other && text[0] >= '1' && text[0] <= '9' && strings.Trim(text, "0123456789_") == "" {
		text = strings.ReplaceAll(text, "_", "") // 1_000 is a number in the YAML of some
	} else if e.Kind != document.Integer {
		text = ""
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == "":
		p.errorf(e.Position, "%s: this is %s; write a whole number in plain digits", field, e.Describe())
	case err != nil || n < least || n > most:
		p.errorf(e.Position, "%s: %s is out of range; write %d to %d", field, document.Clip(e.Text, 40), least, most)
	default:
		return n, true
	}
	return 0, false
}

func (p *parser) failure(e *document.Element, otherwise OnFailure) OnFailure {
	if e != nil && e.Kind == document.Mapping {
		return p.fallback(e)
	}
	if word, ok := p.failureWord(e, "on_failure", failureNames); ok {
		return OnFailure{Failure: word}
	}
	return otherwise
}

// fallback reads a local fallback that ends.
func (p *parser) fallback(e *document.Element) (f OnFailure) {
	known := p.fields(e, "on_failure", fallbackFields)
	for _, name := range fallbackFields {
		if known[name] == nil {
			p.errorf(e.Position, "on_failure: %s: required; write for example {local: 60s, then: closed}", name)
			return f
		}
	}
	if text, ok := p.text(known["local"], "on_failure: local"); ok {
		var err error
		if f.For, err = notation.ParseDuration(text); err == nil {
			err = rule.Fallback{For: f.For}.Validate()
		}
		if err != nil {
			p.errorf(known["local"].Position, "on_failure: local: %s", reason(err))
		}
	}
	f.Failure = FailLocal
	f.Then, _ = p.failureWord(known["then"], "on_failure: then", thenNames)
	return f
}

// failureWord reads one of a few words, and reports whether there is one.
func (p *parser) failureWord(e *document.Element, field string, names []string) (Failure, bool) {
	text, ok := p.text(e, field)
	if !ok || text == "" {
		return 0, false
	}
	if !slices.Contains(names, text) {
		p.errorf(e.Position, "%s: %q is unknown; %s", field, text, notation.Hint(text, names, "choose one of "+strings.Join(names, ", ")))
		return 0, false
	}
	return Failure(slices.Index(failureNames, text)), true
}

// plain is a value as others read it: for metadata, which is theirs.
func plain(e *document.Element) any {
	switch e.Kind {
	case document.Mapping:
		m := make(map[string]any, len(e.Members))
		for _, member := range e.Members {
			m[member.Name.Text] = plain(member.Value)
		}
		return m
	case document.List:
		list := make([]any, len(e.Items))
		for i, item := range e.Items {
			list[i] = plain(item)
		}
		return list
	case document.Nothing:
		return nil
	case document.Truth:
		return strings.EqualFold(e.Text, "true")
	case document.Integer, document.Other:
		if x, err := strconv.ParseFloat(e.Text, 64); err == nil && !math.IsInf(x, 0) && !math.IsNaN(x) {
			return x
		}
	}
	return e.Text
}

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
	faults   map[document.Position]bool
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

func (r *report) errorf(at document.Position, format string, args ...any) {
	r.addProblem(rule.Error, at, format, args...)
}

func (r *report) warnf(at document.Position, format string, args ...any) {
	r.addProblem(rule.Warning, at, format, args...)
}

func (r *report) addProblem(s rule.Severity, at document.Position, format string, args ...any) {
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
	if at == (document.Position{}) && r.where.path != "" {
		message = r.where.String() + ": " + message
	}
	r.problems = append(r.problems, rule.Problem{
		Severity: s, File: r.file, Line: at.Line, Column: at.Column, Message: document.Clip(message, maxMessage),
	})
}

// fault reports what made the document unreadable. What is made of a value that was
// not taken is not worth a word.
func (r *report) fault(f document.Fault) {
	r.errorf(f.Position, "%s", f.Message)
	if f.Why == document.Foreign && len(r.faults) < maxProblems {
		r.faults[f.Position] = true
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
		p.Excerpt = r.quoter.Quote(document.Position{Line: p.Line, Column: p.Column})
	}
	return r.problems
}
