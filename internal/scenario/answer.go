package scenario

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/duration"
	"github.com/weirhq/weir/internal/spelling"
)

// answer is one word that is expected of a step.
type answer struct {
	op     int // of which op; -1 for the request as a whole
	field  string
	number int64 // units, nanoseconds, or an instant
}

var fields = []string{"allow", "deny", "remaining", "limit", "retry", "reset", "reset_at", "delay", "excess", "allowed"}

// parts reads the answers of the request, then those of single limits.
func (p *parser) parts(step *Step) ([]answer, error) {
	if step.Verb == "reset" || step.Verb == "refund" {
		return nil, fmt.Errorf("a %s has no answer; remove the part after ->", step.Verb)
	}
	whole := -1
	if len(step.Ops) == 1 {
		whole = 0
	}
	answers, err := p.answers(nil, whole)
	for err == nil && p.accept(";") {
		name := p.next()
		op := -1
		for i, n := range step.Names {
			if n == name {
				op = i
			}
		}
		if op < 0 {
			return nil, fmt.Errorf("%q is none of the request's limits", name)
		}
		answers, err = p.answers(answers, op)
	}
	return answers, err
}

func (p *parser) answers(into []answer, op int) ([]answer, error) {
	for p.peek() != "" && p.peek() != ";" {
		a := answer{op: op, field: p.next()}
		var err error
		switch a.field {
		case "allow", "deny":
		case "remaining", "limit", "excess", "allowed":
			a.number, err = strconv.ParseInt(p.next(), 10, 64)
		case "reset_at":
			var at weir.Micros
			at, err = p.instant()
			a.number = int64(at)
		case "retry", "reset", "delay":
			var d time.Duration
			if p.accept("never") {
				d = weir.Never
			} else {
				d, err = duration.Parse(p.next())
			}
			a.number = int64(d)
		default:
			return nil, fmt.Errorf("%q is not an answer; %s", a.field, spelling.Hint(a.field, fields, fmt.Sprintf("expect any of %v", fields)))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.field, err)
		}
		if op < 0 && a.field != "allow" && a.field != "deny" && a.field != "allowed" {
			return nil, fmt.Errorf("%s of which limit? write it after \"; NAME\"", a.field)
		}
		into = append(into, a)
	}
	return into, nil
}

// check compares one decision with what was expected of it.
func (a answer) check(d weir.Decision) error {
	switch a.field {
	case "allow", "deny":
		return a.checkVerdict(d.Allowed)
	case "remaining":
		return a.checkNumber(d.Remaining, units)
	case "limit":
		return a.checkNumber(d.Limit, units)
	case "retry":
		return a.checkNumber(int64(d.RetryAfter), span)
	case "reset":
		return a.checkNumber(int64(d.ResetAfter), span)
	case "reset_at":
		return a.checkNumber(int64(d.ResetAt), moment)
	case "delay":
		return a.checkNumber(int64(d.Delay), span)
	case "excess":
		return a.checkNumber(d.Excess, units)
	}
	return nil
}

func (a answer) checkVerdict(allowed bool) error {
	if allowed == (a.field == "allow") {
		return nil
	}
	return fmt.Errorf("it was not: want %s", a.field)
}

// checkNumber compares a number that is written in some way.
func (a answer) checkNumber(got int64, write func(int64) string) error {
	if got == a.number {
		return nil
	}
	return fmt.Errorf("%s is %s, want %s", a.field, write(got), write(a.number))
}

func units(n int64) string { return strconv.FormatInt(n, 10) }

func moment(at int64) string { return weir.Micros(at).Time().Format(time.RFC3339Nano) }

func span(d int64) string {
	if time.Duration(d) == weir.Never {
		return "never"
	}
	return duration.Format(time.Duration(d))
}
