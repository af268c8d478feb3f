package simulate

import (
	"fmt"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/traffic/scenario"
)

// maxWords bounds the memory of logs and sub-windows over all keys of a
// scenario, in words of 8 bytes.
const maxWords = 1 << 24

// beyond is the smallest cost that no limit has room for.
const beyond = weir.MaxUnits + 1

// Case is one limit of a scenario, and the traffic that it is asked about.
type Case struct {
	Name    string // "" if the scenario's only limit has none
	Limit   weir.Limit
	Traffic Traffic
}

// FromScript makes a case of every limit that a scenario takes from. Each is
// played on its own, whatever other limits share its requests, in the order of
// time. Peeks, charges, holds, refunds and resets are no traffic.
//
// It checks the whole script against the bounds, so that a script that passes
// can also be run.
func FromScript(script *scenario.Script) ([]Case, error) {
	s := scriptCases{script: script, at: make(map[string]*collector)}
	for i := range script.Steps {
		if err := s.step(&script.Steps[i]); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", script.Name, script.Steps[i].Line, err)
		}
	}
	var cases []Case
	words := int64(0)
	for _, named := range script.Limits {
		c := s.at[named.Name]
		if c == nil {
			continue
		}
		s.turns = s.turns || !slices.IsSortedFunc(c.requests, byTime)
		t := Traffic{Text: "the takes of " + script.Name, Requests: c.sorted(), Notes: s.notes()}
		words += wordsFor(named.Limit.Limit(), t.Requests)
		cases = append(cases, Case{named.Name, named.Limit.Limit(), t})
	}
	switch {
	case len(cases) == 0:
		return nil, fmt.Errorf("%s: no requests; write for example \"at 0s take alice times 10\"", script.Name)
	case words > maxWords:
		return nil, fmt.Errorf("%s: the keys need more than %d MB in a log or in sub-windows; use fewer keys, smaller costs, or fewer buckets", script.Name, maxWords*8>>20)
	}
	return cases, nil
}

type scriptCases struct {
	script *scenario.Script
	at     map[string]*collector // by the limit's name
	asked  int

	joins, mends, turns, clips bool // what notes speaks of
}

func (s *scriptCases) step(step *scenario.Step) error {
	s.mends = s.mends || step.Verb == "reset" || step.Verb == "refund" || step.Verb == "charge" || step.Hold != ""
	s.joins = s.joins || len(step.Ops) > 1
	if s.asked += step.Times * len(step.Ops); s.asked > MaxRequests {
		return fmt.Errorf("the scenario has more than %d requests; use less traffic", MaxRequests)
	}
	every := weir.Micros(step.Every.Microseconds())
	if step.Verb != "take" {
		return nil
	}
	if err := weir.ValidateTake(step.Ops); err != nil {
		return err
	}
	for i, op := range step.Ops {
		s.clips = s.clips || op.Cost > beyond
		c := s.at[step.Names[i]]
		if c == nil {
			c = new(collector)
			s.at[step.Names[i]] = c
		}
		for n := range weir.Micros(step.Times) {
			r := Request{At: step.At + n*every, Key: op.Key, Cost: min(op.Cost, beyond), MaxDelay: op.MaxDelay}
			if c.add(r); c.err != nil {
				return c.err
			}
		}
	}
	return nil
}

// notes tells how the simulation differs from the scenario.
func (s *scriptCases) notes() []string {
	var notes []string
	if s.joins {
		notes = append(notes, "requests with several limits are played against each limit on its own.")
	}
	if s.mends {
		notes = append(notes, "charges, holds, refunds and resets are left out.")
	}
	if s.turns {
		notes = append(notes, "the scenario's clock goes back; requests are played in the order of time.")
	}
	if s.clips {
		notes = append(notes, fmt.Sprintf("a cost of more than %d units fits no limit, and is added up as %d.", int64(beyond-1), int64(beyond)))
	}
	return notes
}

// wordsFor is the most that one lane can remember of all keys together.
func wordsFor(limit weir.Limit, requests []Request) int64 {
	const defaultBuckets = 60
	longest := min(limit.N, weir.MaxLogUnits)
	units := make(map[string]int64)
	words := int64(0)
	for i := range requests {
		r := &requests[i]
		before, seen := units[r.Key]
		if !seen {
			words += int64(max(limit.Buckets, defaultBuckets))
		}
		after := min(longest, before+min(longest, r.Cost))
		units[r.Key] = after
		words += after - before
	}
	return words
}

// outcome is what became of each request.
type outcome struct {
	allowed []bool
	delay   []weir.Micros // nil if the limit does not shape
}

// released is when the i-th request, which was allowed, left.
func (o *outcome) released(i int, requests []Request) weir.Micros {
	if o.delay == nil {
		return requests[i].At
	}
	return requests[i].At + o.delay[i]
}

// play asks one limit about all requests. There is one op a request, so it can
// ask the arithmetic itself, with no store between.
func play(limit *weir.Compiled, requests []Request) outcome {
	o := outcome{allowed: make([]bool, len(requests))}
	if limit.Limit().Shape {
		o.delay = make([]weir.Micros, len(requests))
	}
	keys := make(map[string]*weir.Record)
	for i := range requests {
		r := &requests[i]
		key := keys[r.Key]
		if key == nil {
			key = new(weir.Record)
			keys[r.Key] = key
		}
		op := weir.Op{Key: r.Key, Limit: limit, Cost: r.Cost, MaxDelay: r.MaxDelay}
		next, d := op.Decide(key.State, key.Tail, r.At)
		key.Keep(limit, next)
		o.allowed[i] = d.Allowed
		if o.delay != nil {
			o.delay[i] = weir.Micros(d.Delay.Microseconds())
		}
	}
	return o
}
