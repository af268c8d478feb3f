package rules

import (
	"fmt"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/internal/rounds"
)

// walkLen is a power of two, long enough for no branch predictor to learn it.
const walkLen = 1 << 16

// subject is one set of rules and who asks about it.
type subject struct {
	table *rule.Table
	ask   func(i int) (*letter, int)
	walk  []uint32 // the order in which requests come, each by the rule that is its own
}

func newSubject(table *rule.Table, shape Shape) *subject {
	return &subject{table, shape.ask, clients.Walk(0, len(table.Rules())-common, walkLen)}
}

// round is what so many matches took.
type round struct {
	ns     float64 // each, without the loop itself
	loop   float64 // the loop itself
	allocs float64 // each
}

func (s *subject) round(matches int) (round, error) {
	loop := rounds.AtOnce(1, func(int) { s.loop(matches) })
	wrong := 0
	cost := rounds.AtOnce(1, func(int) { wrong = s.match(matches) })
	if wrong > 0 {
		return round{}, fmt.Errorf("rules: %d of %d requests did not meet their own rule and the %d that are everybody's", wrong, matches, common)
	}
	per := func(x int64) float64 { return float64(x) / float64(matches) }
	return round{
		ns:     per(cost.Wall.Nanoseconds() - loop.Wall.Nanoseconds()),
		loop:   per(loop.Wall.Nanoseconds()),
		allocs: per(int64(cost.Mallocs)),
	}, nil
}

// match is the measured loop. It returns how many answers were wrong.
func (s *subject) match(matches int) (wrong int) {
	var room [8]rule.Hit
	req := rule.Request{Attributes: map[string]string{}}
	rules := s.table.Rules()
	for i := range matches {
		at := s.walk[i&(walkLen-1)]
		l, number := s.ask(int(at))
		l.arrive(&req, number)
		hits := s.table.Match(room[:0], &req)
		if len(hits) != 1+common || hits[0].Entry != rules[at] {
			wrong++
		}
	}
	return wrong
}

// loop is the same without matching.
func (s *subject) loop(matches int) {
	req := rule.Request{Attributes: map[string]string{}}
	for i := range matches {
		l, number := s.ask(int(s.walk[i&(walkLen-1)]))
		l.arrive(&req, number)
	}
}
