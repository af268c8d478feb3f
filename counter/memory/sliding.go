package memory

import (
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

// parts is how many steps cover a sliding window: one more than it has, for the oldest
// is seldom there from its beginning.
const parts = counter.Steps + 1

// sliding is scores in a window that slides: the sum of what was counted in its steps.
// Reading it is cheap, because a step that expires is subtracted once.
type sliding struct {
	width   weir.Micros // of a step
	latest  int64       // the step that is counted into
	sum     table
	parts   [parts]table // by step; nil if there is nothing
	dropped [parts]int64 // by step, too: what they had is missed no longer than it would count
}

func newSliding(window time.Duration, now weir.Micros) *sliding {
	width := counter.StepWidth(window)
	return &sliding{width: width, latest: int64(now / width), sum: table{}}
}

func (s *sliding) weight() int {
	n := 1 + len(s.sum)
	for _, p := range s.parts {
		n += len(p)
	}
	return n
}

// slot is where the ring has a step.
func slot(step int64) int64 { return (step%parts + parts) % parts }

func (s *sliding) part(step int64) *table { return &s.parts[slot(step)] }

// advance takes away what the window has left behind, and reports whether it has moved.
// A clock that goes back stands still, unless it goes back by more than the window: then
// it was wrong before, and all that was counted is forgotten.
func (s *sliding) advance(now weir.Micros) bool {
	current := int64(now / s.width)
	switch {
	case current > s.latest+counter.Steps || current < s.latest-counter.Steps:
		s.sum, s.parts, s.dropped = table{}, [parts]table{}, [parts]int64{}
	case current > s.latest:
		for step := s.latest - counter.Steps; step < current-counter.Steps; step++ {
			p := s.part(step)
			for member, n := range *p {
				s.sum.addScore(member, -n)
			}
			*p = nil
			s.dropped[slot(step)] = 0
		}
	default:
		return false
	}
	s.latest = current
	return true
}

// reached is how far the time has come, also when the clock has gone back since.
func (s *sliding) reached(now weir.Micros) weir.Micros {
	return max(now, weir.Micros(s.latest)*s.width)
}

func (s *sliding) addScore(member string, by int64) int64 {
	p := s.part(s.latest)
	if *p == nil {
		*p = table{}
	}
	p.addScore(member, by)
	return s.sum.addScore(member, by)
}

// trim drops the lowest, and reports whether there were too many.
func (s *sliding) trim(most, left int) bool {
	if len(s.sum) <= most {
		return false
	}
	gone := s.sum.trim(left)
	for _, p := range s.parts {
		for _, r := range gone {
			delete(p, r.member)
		}
	}
	s.dropped[slot(s.latest)] += int64(len(gone))
	return true
}

// missing is how many were dropped within the window.
func (s *sliding) missing() (n int64) {
	for _, dropped := range s.dropped {
		n += dropped
	}
	return n
}

func slidingIdent(b *counter.Board) ident {
	return ident{kind: kindSliding, span: b.Sliding, name: b.Name}
}

func (s *Store) scoreSliding(b *counter.Board, marks []counter.Mark, now weir.Micros) ([]counter.Amount, error) {
	e, found := findOr(&s.room, slidingIdent(b), now, func() *sliding { return newSliding(b.Sliding, now) })
	found.advance(now)
	if !found.sum.fits(marks) {
		return nil, counter.ErrRange
	}
	if err := s.room.claimOne(e, now); err != nil {
		return nil, err
	}
	after := make([]counter.Amount, len(marks))
	for i, m := range marks {
		after[i] = counter.Amount(found.addScore(m.Member, int64(m.By)))
	}
	found.trim(s.maxMembers, s.roomFor())
	s.room.keep(e, now, found.reached(now)+micros(b.Sliding)+2*found.width)
	return after, nil
}
