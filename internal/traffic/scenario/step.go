package scenario

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/notation"
)

func (p *parser) at(step *Step) {
	step.At = p.instant()
	switch step.Verb = p.next(); step.Verb {
	case "take", "charge", "renew", "peek", "refund", "reset":
	case "reserve":
		p.hold(step)
	case "settle", "cancel", "extend":
		p.settle(step)
		return
	default:
		p.fail("%q is unknown; after the time comes take, charge, renew, peek, refund, reset, reserve, settle, cancel or extend", step.Verb)
	}
	p.op(step)
	for p.accept("and") {
		p.op(step)
	}
	p.modifiers(step)
	if p.accept("->") {
		p.parts(step)
	}
}

// op reads KEY [COST] [leave UNITS] [look].
func (p *parser) op(step *Step) {
	name, key := p.key()
	op := weir.Op{Key: key, Limit: p.named(name), Always: step.Verb == "charge" || step.Verb == "renew"}
	if slices.Contains([]string{"take", "charge", "renew", "refund", "reserve"}, step.Verb) {
		op.Cost = 1
	}
	if t := p.peek(); t != "" && (t[0] == '-' && t != "->" || '0' <= t[0] && t[0] <= '9') {
		op.Cost = p.whole(fmt.Sprintf("%q is not a cost; write a whole number", t))
	}
	if step.Verb != "refund" && p.accept("leave") {
		op.Leave = p.whole(fmt.Sprintf("%q is not a number of units to leave; write a whole number", p.peek()))
	}
	if step.Verb != "refund" && step.Verb != "renew" && p.accept("look") {
		op.Look, op.Always = true, false
	}
	step.Ops = append(step.Ops, op)
	step.Names = append(step.Names, name)
}

// key reads KEY or NAME=KEY, either quoted or bare.
func (p *parser) key() (name, key string) {
	word := p.next()
	if word == "" || word == "->" {
		p.fail("the key is required; write it after the verb")
	}
	for _, l := range p.script.Limits {
		if rest, ok := strings.CutPrefix(word, l.Name+"="); ok && l.Name != "" {
			name, word = l.Name, rest
			break
		}
	}
	if strings.HasPrefix(word, `"`) {
		var err error
		if key, err = strconv.Unquote(word); err != nil {
			p.fail("%s is not a quoted key as in Go", word)
		}
		return name, key
	}
	return name, word
}

func (p *parser) named(name string) *weir.Compiled {
	for _, l := range p.script.Limits {
		if l.Name == name {
			return l.Limit
		}
	}
	if len(p.script.Limits) == 0 {
		p.fail("no limit is defined yet; begin with a line such as \"limit 100/1m\"")
	} else {
		p.fail("the key does not say which limit; write %s=KEY", p.script.Limits[0].Name)
	}
	return nil
}

func (p *parser) modifiers(step *Step) {
	switch step.Verb {
	case "refund", "renew": // of the take at a time, or whatever came last
		if step.OfLatest = !p.accept("of"); !step.OfLatest {
			step.Of = p.instant()
		}
		return
	case "reserve":
		p.lasting(step)
		return
	}
	if p.accept("within") {
		d := p.length()
		for i := range step.Ops {
			step.Ops[i].MaxDelay = d
		}
	}
	if !p.accept("times") {
		return
	}
	n, err := strconv.Atoi(p.next())
	if err != nil || n < 1 || n > maxTimes {
		p.fail("times takes a whole number from 1 to %d", maxTimes)
		return
	}
	step.Times = n
	if p.accept("every") {
		step.Every = p.length()
	}
	if step.Every.Microseconds() > maxSpan/int64(n) {
		p.fail("%d times every %s is longer than a century", n, notation.FormatDuration(step.Every))
	}
}

// count reads KEY from TIME to TIME -> N.
func (p *parser) count(step *Step) {
	step.Verb = "count"
	p.op(step)
	p.expect("from")
	step.At = p.instant()
	p.expect("to")
	step.Until = p.instant()
	p.expect("->")
	step.answers = []answer{{op: -1, field: "units", number: p.whole("count is answered by a whole number")}}
}

// states are what can be expected of a hold, in the order of weir.HoldState.
var states = []string{"unknown", "open", "settled", "expired"}

// hold reads the name of a hold.
func (p *parser) hold(step *Step) {
	if t := p.peek(); t == "" || t == "->" {
		p.fail("the hold needs a name; write it after the verb")
	}
	step.Hold = p.next()
}

// id is of the hold with a name.
func (s *Step) id() weir.HoldID {
	sum := sha256.Sum256([]byte(s.Hold))
	return weir.HoldID(sum[:16])
}

// lasting reads [for D].
func (p *parser) lasting(step *Step) {
	if p.accept("for") {
		step.TTL = p.length()
	}
}

// settle reads HOLD [USED] [for D] [-> STATE].
func (p *parser) settle(step *Step) {
	p.hold(step)
	switch step.Verb {
	case "settle":
		const mistake = "how many units were used? write a whole number after the hold"
		if step.Used = p.whole(mistake); step.Used < 0 {
			p.fail(mistake)
		}
	case "extend":
		p.lasting(step)
	}
	if p.accept("->") {
		a := answer{op: -1, field: p.next()}
		if a.number = int64(slices.Index(states, a.field)); a.number < 0 {
			p.fail("%q is not the state of a hold; expect any of %v", a.field, states)
		}
		step.answers = []answer{a}
	}
}

// parseInstant reads a duration since the start, a time of day, or a date.
func parseInstant(word string) (weir.Micros, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339Nano} {
		if t, err := time.Parse(layout, word); err == nil && 0 <= t.UnixMicro() && t.UnixMicro() <= maxSpan {
			return weir.MicrosOf(t), nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, word); err == nil {
			midnight := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
			return weir.Micros(t.Sub(midnight).Microseconds()), nil
		}
	}
	d, err := notation.ParseDuration(word)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time; write a duration such as 75s, a time of day such as 10:30:15, or a date such as 2026-03-29 or 2026-03-29T02:30:00+01:00", word)
	}
	if d.Microseconds() > maxSpan {
		return 0, fmt.Errorf("%q is more than a century after the start", word)
	}
	return weir.Micros(d.Microseconds()), nil
}

// answer is one word that is expected of a step.
type answer struct {
	op     int // of which op; -1 for the request as a whole
	field  string
	number int64 // units, nanoseconds, or an instant
}

var fields = []string{"allow", "deny", "remaining", "limit", "retry", "reset", "reset_at", "delay", "excess", "reserved", "allowed"}

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
		case "remaining", "limit", "excess", "reserved", "allowed":
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
	case "reserved":
		return a.checkNumber(d.Reserved, units)
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
