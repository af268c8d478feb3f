package check

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/test/chaos/plan"
)

// follows is how long after an import an instance may still go by the clients before, while the store is well.
const follows = 3 * time.Second

// replicates is how long after an import it may be lost with a master that dies.
const replicates = time.Second

// Moves are who belonged to whom, and since when.
type Moves struct {
	mu  sync.Mutex
	all []Move
}

// Move is an import of clients: from before it was sent until it was answered.
type Move struct {
	Span
	Lines plan.Company
	Made  bool // whether it was made is unknown otherwise
}

// Note notes a move. They are noted in their order, each before anybody can know of it.
func (m *Moves) Note(move Move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, move)
}

// Answered notes when the last import was answered, and whether it was made.
func (m *Moves) Answered(at time.Duration, made bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := &m.all[len(m.all)-1]
	last.To, last.Made = at, made
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
	if c.Timeline.isDown(m.Instance, Span{m.From - follows, m.To}) || m.Moves.fits(c.Timeline, c.clientsSlot(), m) {
		return
	}
	c.blameLocked(Violation{Promise: Belongs, Span: m.Span, Rule: "company", Key: m.Key,
		What: fmt.Sprintf("instance %d counted %q for a client to whom that did not belong", m.Instance, m.Line)})
}

// clientsSlot is where the store has the clients.
func (c *Checker) clientsSlot() int {
	if c.slotOf == nil {
		return 0
	}
	return c.slotOf("clients")
}

// fits reports whether what was counted was right at some time of the request, or a little before. When the store has lost what it
// knew, the clients may be gone until they are imported again.
func (m *Moves) fits(t *Timeline, slot int, member *Member) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, move := range m.all {
		if move.Lines[member.Key] == member.Line && move.From <= member.To && member.From <= m.untilLocked(t, slot, member, i+1) {
			return true
		}
	}
	if member.Line != "" {
		return false
	}
	for _, l := range t.Losses() {
		if !l.about(slot) || l.From > member.To {
			continue
		}
		later, _ := slices.BinarySearchFunc(m.all, l.From, func(move Move, at time.Duration) int { return cmp.Compare(move.From, at) })
		if member.From <= m.untilLocked(t, slot, member, later) {
			return true
		}
	}
	return false
}

// untilLocked is how long an instance may go by what was before a move: until it knows of that, or of the first one after it that was
// certainly made, and not lost again.
func (m *Moves) untilLocked(t *Timeline, slot int, member *Member, next int) time.Duration {
	for _, move := range m.all[min(next, len(m.all)):] {
		if move.To >= member.From {
			break
		}
		if move.Made && !t.Lost(Span{move.From, move.To + replicates}, slot) {
			return move.To + follows + t.held(member.Instance, Span{move.To, member.From})
		}
	}
	return Open
}
