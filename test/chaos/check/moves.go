package check

import (
	"fmt"
	"sync"
	"time"

	"github.com/weirhq/weir/test/chaos/plan"
)

// follows is how long after a file of clients was written an instance may still go by the one before.
const follows = 2 * time.Second

// Moves are who belonged to whom, and since when.
type Moves struct {
	mu  sync.Mutex
	all []Move
}

// Move is a file of clients: from before it was written until it was there.
type Move struct {
	Span
	Lines plan.Company
}

// Note notes a move. They are noted in their order, each before anybody can know of it.
func (m *Moves) Note(move Move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, move)
}

// Written notes when the last file was there.
func (m *Moves) Written(at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[len(m.all)-1].To = at
}

// Member is a request with the API key of a client that moves.
type Member struct {
	Call
	Key   string
	Line  string // the clients that were counted, from the top down
	Moves *Moves
}

func (m *Member) end() time.Duration { return m.To }

func (m *Member) judgeLocked(c *Checker) {
	c.tally.Members++
	if m.Status != 200 {
		c.unansweredLocked("check of a client that moves", m.Instance, m.Status, m.Error, m.Span)
		return
	}
	if c.Timeline.isDown(m.Instance, Span{m.From - follows, m.To}) || m.Moves.fits(c.Timeline, m) {
		return
	}
	c.blameLocked(Violation{Promise: Belongs, Span: m.Span, Rule: "company", Key: m.Key,
		What: fmt.Sprintf("instance %d counted %q for a client to whom that did not belong", m.Instance, m.Line)})
}

// fits reports whether what was counted was right at some time of the request, or a little before.
func (m *Moves) fits(t *Timeline, member *Member) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, move := range m.all {
		until := Open
		if i+1 < len(m.all) && m.all[i+1].To < member.From {
			next := m.all[i+1].To
			until = next + follows + t.stalled(member.Instance, Span{next, member.From})
		}
		if move.From <= member.To && member.From <= until && move.Lines[member.Key] == member.Line {
			return true
		}
	}
	return false
}
