package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/duration"
)

func (p *parser) at(step *Step) error {
	var err error
	if step.At, err = p.instant(); err != nil {
		return err
	}
	switch step.Verb = p.next(); step.Verb {
	case "take", "charge", "renew", "peek", "refund", "reset":
	case "reserve":
		if err := p.hold(step); err != nil {
			return err
		}
	case "settle", "cancel", "extend":
		return p.settle(step)
	default:
		return fmt.Errorf("%q is unknown; after the time comes take, charge, renew, peek, refund, reset, reserve, settle, cancel or extend", step.Verb)
	}
	for {
		if err := p.op(step); err != nil {
			return err
		}
		if !p.accept("and") {
			break
		}
	}
	if err := p.modifiers(step); err != nil {
		return err
	}
	if p.accept("->") {
		if step.answers, err = p.parts(step); err != nil {
			return err
		}
	}
	return p.end()
}

// op reads KEY [COST] [leave UNITS] [look].
func (p *parser) op(step *Step) error {
	name, key, err := p.key()
	if err != nil {
		return err
	}
	limit, err := p.named(name)
	if err != nil {
		return err
	}
	op := weir.Op{Key: key, Limit: limit, Always: step.Verb == "charge" || step.Verb == "renew"}
	if step.Verb == "take" || step.Verb == "charge" || step.Verb == "renew" || step.Verb == "refund" || step.Verb == "reserve" {
		op.Cost = 1
	}
	if t := p.peek(); t != "" && (t[0] == '-' && t != "->" || '0' <= t[0] && t[0] <= '9') {
		if op.Cost, err = strconv.ParseInt(p.next(), 10, 64); err != nil {
			return fmt.Errorf("%q is not a cost; write a whole number", t)
		}
	}
	if step.Verb != "refund" && p.accept("leave") {
		t := p.next()
		if op.Leave, err = strconv.ParseInt(t, 10, 64); err != nil {
			return fmt.Errorf("%q is not a number of units to leave; write a whole number", t)
		}
	}
	if step.Verb != "refund" && step.Verb != "renew" && p.accept("look") {
		op.Look, op.Always = true, false
	}
	step.Ops = append(step.Ops, op)
	step.Names = append(step.Names, name)
	return nil
}

// key reads KEY or NAME=KEY, either quoted or bare.
func (p *parser) key() (name, key string, err error) {
	word := p.next()
	if word == "" || word == "->" {
		return "", "", fmt.Errorf("the key is required; write it after the verb")
	}
	for _, l := range p.script.Limits {
		if rest, ok := strings.CutPrefix(word, l.Name+"="); ok && l.Name != "" {
			name, word = l.Name, rest
			break
		}
	}
	if strings.HasPrefix(word, `"`) {
		if word, err = strconv.Unquote(word); err != nil {
			return "", "", fmt.Errorf("%s is not a quoted key as in Go", word)
		}
	}
	return name, word, nil
}

func (p *parser) named(name string) (*weir.Compiled, error) {
	for _, l := range p.script.Limits {
		if l.Name == name {
			return l.Limit, nil
		}
	}
	if len(p.script.Limits) == 0 {
		return nil, fmt.Errorf("no limit is defined yet; begin with a line such as \"limit 100/1m\"")
	}
	return nil, fmt.Errorf("the key does not say which limit; write %s=KEY", p.script.Limits[0].Name)
}

func (p *parser) modifiers(step *Step) error {
	if step.Verb == "refund" || step.Verb == "renew" { // of the take at a time, or whatever came last
		var err error
		if step.OfLatest = !p.accept("of"); !step.OfLatest {
			step.Of, err = p.instant()
		}
		return err
	}
	if step.Verb == "reserve" {
		return p.lasting(step)
	}
	if p.accept("within") {
		d, err := duration.Parse(p.next())
		if err != nil {
			return err
		}
		for i := range step.Ops {
			step.Ops[i].MaxDelay = d
		}
	}
	if !p.accept("times") {
		return nil
	}
	n, err := strconv.Atoi(p.next())
	if err != nil || n < 1 || n > maxTimes {
		return fmt.Errorf("times takes a whole number from 1 to %d", maxTimes)
	}
	step.Times = n
	if p.accept("every") {
		step.Every, err = duration.Parse(p.next())
	}
	if step.Every.Microseconds() > maxSpan/int64(n) {
		return fmt.Errorf("%d times every %s is longer than a century", n, duration.Format(step.Every))
	}
	return err
}

// count reads KEY from TIME to TIME -> N.
func (p *parser) count(step *Step) error {
	step.Verb = "count"
	if err := p.op(step); err != nil {
		return err
	}
	var err error
	if err = p.expect("from"); err != nil {
		return err
	}
	if step.At, err = p.instant(); err != nil {
		return err
	}
	if err = p.expect("to"); err != nil {
		return err
	}
	if step.Until, err = p.instant(); err != nil {
		return err
	}
	if err = p.expect("->"); err != nil {
		return err
	}
	n, err := strconv.ParseInt(p.next(), 10, 64)
	if err != nil {
		return fmt.Errorf("count is answered by a whole number")
	}
	step.answers = []answer{{op: -1, field: "units", number: n}}
	return p.end()
}

// instant reads a duration since the start, a time of day, or a date.
func (p *parser) instant() (weir.Micros, error) {
	word := p.next()
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
	d, err := duration.Parse(word)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time; write a duration such as 75s, a time of day such as 10:30:15, or a date such as 2026-03-29 or 2026-03-29T02:30:00+01:00", word)
	}
	if d.Microseconds() > maxSpan {
		return 0, fmt.Errorf("%q is more than a century after the start", word)
	}
	return weir.Micros(d.Microseconds()), nil
}
