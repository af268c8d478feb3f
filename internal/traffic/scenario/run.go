// Package scenario is a small language for what a limiter must answer, and a
// runner for any store. A scenario reads like a conversation:
//
//	limit sliding_window 100/60s
//	at 0s    take alice 80 -> allow remaining 20
//	at 75s   peek alice    -> remaining 40
//
// # Limits
//
//	limit [NAME:] LIMIT
//
// LIMIT is what weir.ParseLimit reads. A NAME is needed when there are several;
// a key is then written NAME=KEY.
//
// # Steps
//
//	at TIME take   KEY [COST] [leave UNITS] [look] [and KEY ...]... [within D] [times N [every D]] [-> ANSWER]
//	at TIME charge KEY [COST] ... [-> ANSWER]
//	at TIME renew  KEY [leave UNITS] [and KEY ...]... [of TIME] [-> ANSWER]
//	at TIME peek   KEY [COST] ... [-> ANSWER]
//	at TIME refund KEY [COST] [and KEY [COST]]... [of TIME]
//	at TIME reset  KEY
//	at TIME reserve HOLD KEY [COST] [leave UNITS] [look] [and KEY ...]... [for D] [-> ANSWER]
//	at TIME settle HOLD USED [-> STATE]
//	at TIME cancel HOLD [-> STATE]
//	at TIME extend HOLD [for D] [-> STATE]
//	count KEY from TIME to TIME -> N
//
// TIME is a duration since the scenario's start, a time of day such as 10:30:15, or, for
// limits that follow the calendar, a date such as 2026-03-29, which begins in UTC, or
// 2026-03-29T02:30:00+01:00. The start is 1970, and aligned to every window of constant
// length. Time may go back. A KEY with
// spaces or odd bytes is quoted as in Go. Ops joined by "and" are one request.
// "within" is the longest acceptable delay. "times" repeats the request, "every"
// moves the clock between. "count" adds up the units that left in [from, to),
// delays included. "charge" takes the cost even if it does not fit, and "allow" then
// says that it did. "leave" allows the request only if so many units stay free for
// others. "look" requires that the cost fits, and charges nothing. "refund"
// gives back what was taken at the time after "of", or the newest units. "renew" gives
// back a place of an in-flight limit and takes one from now on.
//
// HOLD is a name that the script gives to a hold. The hold lasts as long as "for" says,
// or a minute. USED are the units that each of its ops has used. STATE is settled, open,
// expired or unknown.
//
// # Answers
//
//	allow | deny | remaining N | limit N | retry D|never | reset D | reset_at TIME | delay D | excess N | reserved N | allowed N
//
// in any number and order. A request with several ops is answered as a whole,
// "allow" or "deny"; parts after ";" speak of one limit:
//
//	-> deny; ip deny retry 5s; user allow remaining 3
//
// With "times", allow and deny speak of every request, "allowed N" of how many
// were, and the rest of the last one. "#" starts a comment.
package scenario

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	_ "time/tzdata" // for the zones of cases, whatever the system has

	"github.com/weirhq/weir"
)

// Subject is a store whose clock a scenario can set.
type Subject struct {
	Store weir.Store
	Set   func(now weir.Micros)
}

// client is a key under a limit.
type client struct{ name, key string }

// release is units that left: allowed, and their delay over.
type release struct {
	at    weir.Micros
	units int64
}

// Run plays the script to a subject with empty memory, and reports every answer
// that differs from what is expected.
func (s *Script) Run(ctx context.Context, subject Subject) error {
	r := &runner{ctx: ctx, subject: subject, releases: make(map[client][]release), receipts: make(map[taken]weir.Receipt)}
	for i := range s.Steps {
		if step := &s.Steps[i]; step.Verb == "count" {
			r.releases[client{step.Names[0], step.Ops[0].Key}] = nil
		}
	}
	var errs []error
	for i := range s.Steps {
		if err := r.step(&s.Steps[i]); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %s: %w", s.Name, s.Steps[i].Line, s.Steps[i].Text, err))
		}
	}
	return errors.Join(errs...)
}

type runner struct {
	ctx       context.Context
	subject   Subject
	decisions []weir.Decision
	releases  map[client][]release // of those who are counted
	receipts  map[taken]weir.Receipt
}

// taken is a take that may be given back.
type taken struct {
	client
	at weir.Micros
}

func (r *runner) step(step *Step) error {
	switch step.Verb {
	case "count":
		return r.count(step)
	case "reset":
		r.subject.Set(step.At)
		return r.subject.Store.Reset(r.ctx, step.Ops...)
	case "refund":
		r.subject.Set(step.At)
		ops, err := r.withReceipts(step)
		if err != nil {
			return err
		}
		return r.subject.Store.Refund(r.ctx, ops...)
	case "settle", "cancel", "extend":
		r.subject.Set(step.At)
		return r.settle(step)
	}
	ask, ops := r.subject.Store.Take, step.Ops
	switch step.Verb {
	case "peek":
		ask = r.subject.Store.Peek
	case "renew":
		var err error
		if ops, err = r.withReceipts(step); err != nil {
			return err
		}
	case "reserve":
		ask = r.reserve(step)
	}
	passed := int64(0)
	for i := range step.Times {
		now := step.At + weir.Micros(i)*weir.Micros(step.Every.Microseconds())
		r.subject.Set(now)
		var err error
		if r.decisions, err = ask(r.ctx, r.decisions[:0], ops...); err != nil {
			return err
		}
		if len(r.decisions) != len(step.Ops) {
			return fmt.Errorf("%d ops were answered by %d decisions", len(step.Ops), len(r.decisions))
		}
		allowed := weir.Allowed(r.decisions)
		if allowed {
			passed++
		}
		if step.Verb == "charge" || step.Verb == "renew" || step.Verb == "take" && allowed {
			r.release(step, now)
			for j, op := range step.Ops {
				if !op.Look {
					r.receipts[taken{client{step.Names[j], op.Key}, now}] = r.decisions[j].Receipt
				}
			}
		}
		if err := r.check(step, allowed, i == step.Times-1); err != nil {
			if step.Times > 1 {
				return fmt.Errorf("request %d of %d: %w", i+1, step.Times, err)
			}
			return err
		}
	}
	for _, a := range step.answers {
		if a.field == "allowed" {
			if err := a.checkNumber(passed, units); err != nil {
				return err
			}
		}
	}
	return nil
}

// check compares a request's answers: verdicts always, the rest at the last.
func (r *runner) check(step *Step, allowed, last bool) error {
	for _, a := range step.answers {
		verdict := a.field == "allow" || a.field == "deny"
		var err error
		switch {
		case a.op < 0 && verdict:
			err = a.checkVerdict(allowed)
		case a.op >= 0 && (verdict || last):
			err = a.check(r.decisions[a.op])
		}
		if err != nil {
			if len(step.Ops) > 1 && a.op >= 0 {
				return fmt.Errorf("%s: %w", step.Names[a.op], err)
			}
			return err
		}
	}
	return nil
}

func (r *runner) release(step *Step, now weir.Micros) {
	for i, op := range step.Ops {
		c := client{step.Names[i], op.Key}
		if all, counted := r.releases[c]; counted && !op.Look {
			r.releases[c] = append(all, release{now + weir.Micros(r.decisions[i].Delay.Microseconds()), op.Cost - r.decisions[i].Excess})
		}
	}
}

// withReceipts returns the ops of a step with the receipts of what it is about.
func (r *runner) withReceipts(step *Step) ([]weir.Op, error) {
	ops := append([]weir.Op(nil), step.Ops...)
	for i := range ops {
		ops[i].Receipt = weir.Latest
		if step.OfLatest {
			continue
		}
		receipt, found := r.receipts[taken{client{step.Names[i], ops[i].Key}, step.Of}]
		if !found {
			return nil, fmt.Errorf("%q took nothing at that time that could be refunded", ops[i].Key)
		}
		ops[i].Receipt = receipt
	}
	return ops, nil
}

func (r *runner) count(step *Step) error {
	var sum int64
	for _, l := range r.releases[client{step.Names[0], step.Ops[0].Key}] {
		if step.At <= l.at && l.at < step.Until {
			sum += l.units
		}
	}
	return step.answers[0].checkNumber(sum, units)
}

var errNoHolds = errors.New("the store has no holds")

// reserve is what asks the store for a hold.
func (r *runner) reserve(step *Step) func(context.Context, []weir.Decision, ...weir.Op) ([]weir.Decision, error) {
	return func(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
		store, ok := r.subject.Store.(weir.HoldStore)
		if !ok {
			return dst, errNoHolds
		}
		return store.Reserve(ctx, dst, weir.Reservation{ID: step.id(), TTL: step.TTL}, ops...)
	}
}

// settle ends a hold, or extends it.
func (r *runner) settle(step *Step) error {
	store, ok := r.subject.Store.(weir.HoldStore)
	if !ok {
		return errNoHolds
	}
	s := weir.Settlement{ID: step.id(), TTL: step.TTL}
	if step.Verb != "extend" {
		s.Used = func(string, int64) int64 { return step.Used }
	}
	done, err := store.Settle(r.ctx, s)
	if err != nil {
		return err
	}
	for _, a := range step.answers {
		if int64(done.State) != a.number {
			return fmt.Errorf("the hold is %s, want %s", done.State, a.field)
		}
	}
	return nil
}

//go:embed cases/*.txt
var caseFiles embed.FS

// Cases returns the scenarios that every store must pass, one file a case.
func Cases() ([]*Script, error) {
	files, err := fs.Glob(caseFiles, "cases/*.txt")
	if err != nil {
		return nil, err
	}
	var scripts []*Script
	var errs []error
	for _, file := range files {
		src, err := caseFiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		script, err := Parse(file, src)
		scripts, errs = append(scripts, script), append(errs, err)
	}
	return scripts, errors.Join(errs...)
}
