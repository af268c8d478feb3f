package scenario

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/notation"
)

// answer is one word that is expected of a step.
type answer struct {
	op     int // of which op; -1 for the request as a whole
	field  string
	number int64 // units, nanoseconds, or an instant
}

var fields = []string{"allow", "deny", "remaining", "limit", "retry", "reset", "reset_at", "delay", "excess", "allowed"}

// parts reads the answers of the request, then those of single limits.
func (p *parser) parts(step *Step) {
	if step.Verb == "reset" || step.Verb == "refund" {
		p.fail("a %s has no answer; remove the part after ->", step.Verb)
	}
	op := -1
	if len(step.Ops) == 1 {
		op = 0
	}
	p.answers(step, op)
	for p.accept(";") {
		name := p.next()
		op = -1
		for i, n := range step.Names {
			if n == name {
				op = i // of several, the last
			}
		}
		if op < 0 {
			p.fail("%q is none of the request's limits", name)
		}
		p.answers(step, op)
	}
}

// answers reads those of one limit, or of the request as a whole.
func (p *parser) answers(step *Step, op int) {
	for p.err == nil && p.peek() != "" && p.peek() != ";" {
		a := answer{op: op, field: p.next()}
		var err error
		switch a.field {
		case "allow", "deny":
		case "remaining", "limit", "excess", "allowed":
			a.number, err = strconv.ParseInt(p.next(), 10, 64)
		case "reset_at":
			var at weir.Micros
			at, err = parseInstant(p.next())
			a.number = int64(at)
		case "retry", "reset", "delay":
			d := time.Duration(weir.Never)
			if !p.accept("never") {
				d, err = notation.ParseDuration(p.next())
			}
			a.number = int64(d)
		default:
			p.fail("%q is not an answer; %s", a.field, notation.Hint(a.field, fields, fmt.Sprintf("expect any of %v", fields)))
		}
		if err != nil {
			p.fail("%s: %w", a.field, err)
		}
		if op < 0 && a.field != "allow" && a.field != "deny" && a.field != "allowed" {
			p.fail("%s of which limit? write it after \"; NAME\"", a.field)
		}
		step.answers = append(step.answers, a)
	}
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
	return notation.FormatDuration(time.Duration(d))
}
