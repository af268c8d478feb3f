package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/traffic/scenario"
)

// Bounds on traffic, so that a slip of the keyboard ends in a sentence and not
// in a full memory. The units' bound lets them be added up without overflow.
const (
	MaxRequests = 2_000_000
	maxUnits    = 1 << 62
	maxAt       = weir.Micros(100 * 365 * day)

	day = 24 * 60 * 60 * 1_000_000 // microseconds
)

// Request is one arrival.
type Request struct {
	At       weir.Micros
	Key      string
	Cost     int64
	MaxDelay time.Duration // of a shaping limit; see weir.Op
}

// Traffic is requests in the order of time.
type Traffic struct {
	Text     string // what it is, for the head of a report
	Requests []Request
	Notes    []string // what a reader should know about it
}

// collector gathers requests within the bounds. After a mistake it gathers nothing more.
type collector struct {
	most     int         // requests; 0 is MaxRequests
	start    weir.Micros // what times are counted from
	requests []Request
	units    int64
	err      error // the first mistake
}

func (c *collector) addRequest(r Request) {
	switch {
	case !c.room(1):
	case r.At < 0 || r.At > maxAt:
		c.err = errors.New("longer than 100 years; use earlier times")
	case r.Cost > maxUnits-c.units:
		c.err = errors.New("the sum of the costs is too large; use smaller costs")
	default:
		r.At += c.start
		c.requests = append(c.requests, r)
		c.units += r.Cost
	}
}

// room reports whether n more requests are within the bound.
func (c *collector) room(n int64) bool {
	most := cmp.Or(c.most, MaxRequests)
	if c.err == nil && n > int64(most-len(c.requests)) {
		c.err = fmt.Errorf("more than %d requests; use less traffic, or a smaller limit for a pattern", most)
	}
	return c.err == nil
}

// sorted returns the requests in the order of time, and otherwise as they came.
func (c *collector) sorted() []Request {
	slices.SortStableFunc(c.requests, byTime)
	return c.requests
}

func byTime(a, b Request) int { return cmp.Compare(a.At, b.At) }

// each adds n requests of one client, if there is room for all of them.
func (c *collector) each(n int64, at func(i int64) weir.Micros) {
	if !c.room(n) {
		return
	}
	for i := int64(0); i < n && c.err == nil; i++ {
		c.addRequest(Request{At: at(i), Key: "client", Cost: 1})
	}
}

// spread adds n requests of one client, evenly from one instant to another,
// the latter excluded.
func (c *collector) spread(n int64, from, to weir.Micros) {
	c.each(n, func(i int64) weir.Micros { return from + share(to-from, i, n) })
}

// rate adds n requests in every period from one instant to another.
func (c *collector) rate(n int64, period, from, to weir.Micros) {
	// About how many they are is enough to deny most of what is too much at
	// once; add counts exactly.
	about := float64(to-from) / float64(period) * float64(n)
	if !c.room(int64(min(about, math.MaxInt32)) - 1) {
		return
	}
	for i := int64(0); c.err == nil; i++ {
		at := from + share(period, i, n)
		if at >= to {
			return
		}
		c.addRequest(Request{At: at, Key: "client", Cost: 1})
	}
}

// share is length × i / n, whatever the product. The quotient is in range: one
// before it was within a stretch, and a length is less than 300 years.
func share(length weir.Micros, i, n int64) weir.Micros {
	high, low := bits.Mul64(uint64(length), uint64(i))
	quotient, _ := bits.Div64(high, low, uint64(n))
	return weir.Micros(quotient)
}

// clients is how many there are, and who asks for the most units; of several, the first.
func (t Traffic) clients() (n int, busiest string) {
	units := make(map[string]int64)
	for i := range t.Requests {
		units[t.Requests[i].Key] += t.Requests[i].Cost
	}
	for i := range t.Requests {
		if key := t.Requests[i].Key; i == 0 || units[key] > units[busiest] {
			busiest = key
		}
	}
	return len(units), busiest
}

// budget is what one client could still have taken at the end of each slice.
func budget(limit *weir.Compiled, requests []Request, key string, a axis) []int64 {
	left := make([]int64, a.Count)
	var record weir.Record
	done := 0
	look := func(before int) {
		for ; done < before; done++ {
			end := a.Begin + a.Slice*weir.Micros(done+1) - 1
			op := weir.Op{Key: key, Limit: limit}
			left[done] = op.Peek(record.State, record.Tail, end).Remaining
		}
	}
	for i := range requests {
		r := &requests[i]
		if r.Key != key {
			continue
		}
		look(a.slice(r.At))
		op := weir.Op{Key: key, Limit: limit, Cost: r.Cost, MaxDelay: r.MaxDelay}
		next, _ := op.Decide(record.State, record.Tail, r.At)
		record.Keep(limit, next)
	}
	look(a.Count)
	return left
}

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
			if c.addRequest(r); c.err != nil {
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
