package counter

import (
	"cmp"
	"strconv"
	"time"

	"github.com/weirhq/weir"
)

const (
	// BoardWindows is how many windows of a leaderboard can be read, the current one
	// included.
	BoardWindows = 8

	// Steps is in how many steps a sliding window moves. What was counted expires
	// when it is as old as the window, or up to one step later: a twentieth.
	Steps = 20

	// MaxSliding is the longest sliding window.
	MaxSliding = 366 * 24 * time.Hour

	// DefaultMaxMembers bounds a leaderboard, and a hot list, unless a store's
	// options say otherwise.
	DefaultMaxMembers = 10_000
)

// Board names a leaderboard. The same name with another window is another board.
//
// A member whose score is 0 is not on it. When there are more members than a store
// allows, the lowest are dropped until an eighth is free, and what they had is
// forgotten: a score is never too high, but that of a member who was dropped and came
// back is too low by what it had then. The top is right as long as nobody in it ever
// was among the lowest when it was full; Ranking.Dropped tells whether there is doubt.
type Board struct {
	// Name is any bytes; at least one.
	Name string

	// Window and Zone are as those of a Key. Default Ever.
	Window Window
	Zone   *time.Location

	// Ago reads an earlier window: 1 is yesterday's board. Only the current one can be
	// written. At most BoardWindows − 1.
	Ago int

	// Sliding makes it a board of the last so much time instead, in whole seconds. It
	// has no other window then, and scores only grow.
	Sliding time.Duration
}

// Mark is what a member scores.
type Mark struct {
	Member string
	By     Amount // may be negative, except on a sliding board
}

// Place is where a member stands.
type Place struct {
	Member string
	Rank   int // from 1; 0 if it is not on the board
	Score  Amount
}

// Ranking is the top of a leaderboard: the highest score first, equal ones by the bytes
// of the member.
type Ranking struct {
	Places  []Place
	Members int       // on the whole board
	Dropped int64     // how many there was no room for in its window, so that 0 says that every score is exact
	Start   time.Time // of its window; zero if it has none that begins
}

// Validate checks a board, for stores.
func (b *Board) Validate() error {
	if err := checkName("board", b.Name); err != nil {
		return err
	}
	if b.Sliding != 0 {
		if b.Window != Ever || b.Ago != 0 || b.Zone != nil {
			return invalid("sliding", "a sliding board has no other window, zone or past; leave Window, Zone and Ago out")
		}
		return checkSliding("sliding", b.Sliding)
	}
	if err := checkWindow(b.Window, b.Zone); err != nil {
		return err
	}
	switch {
	case b.Ago < 0 || b.Ago >= BoardWindows:
		return invalid("ago", "%d is not kept; write 0 for the current window, up to %d", b.Ago, BoardWindows-1)
	case b.Ago > 0 && b.Window == Ever:
		return invalid("ago", "a board without a window has no earlier one; leave it 0")
	}
	return nil
}

func checkSliding(field string, d time.Duration) error {
	if d < time.Second || d > MaxSliding || d%time.Second != 0 {
		return invalid(field, "%v cannot be had; write whole seconds, from 1s to %vh", d, MaxSliding.Hours())
	}
	return nil
}

// ValidateScore checks a call, for stores.
func (b *Board) ValidateScore(marks []Mark) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if b.Ago != 0 {
		return invalid("ago", "only the current window can be written; leave it 0")
	}
	if err := checkBatch("marks", len(marks), MaxBatch); err != nil {
		return err
	}
	for _, m := range marks {
		if err := checkName("member", m.Member); err != nil {
			return err
		}
		if !m.By.within(MaxScore) {
			return invalid("by", "%v is more than there can be; at most %v is", m.By, MaxScore)
		}
		if b.Sliding != 0 && m.By <= 0 {
			return invalid("by", "%v does not raise a score; on a sliding board they only grow", m.By)
		}
	}
	return nil
}

// ValidateTop checks a call, for stores.
func (b *Board) ValidateTop(n int) error {
	return cmp.Or(b.Validate(), checkTop(n))
}

func checkTop(n int) error {
	if n < 1 || n > MaxTop {
		return invalid("n", "%s cannot be listed; ask for 1 to %d", strconv.Itoa(n), MaxTop)
	}
	return nil
}

// ValidateStanding checks a call, for stores.
func (b *Board) ValidateStanding(members []string) error {
	return cmp.Or(b.Validate(), checkNames("member", members, MaxBatch))
}

func checkNames(field string, names []string, most int) error {
	if err := checkBatch(field+"s", len(names), most); err != nil {
		return err
	}
	for _, name := range names {
		if err := checkName(field, name); err != nil {
			return err
		}
	}
	return nil
}

// StepWidth is how long a step of a sliding window is, for stores.
func StepWidth(window time.Duration) weir.Micros {
	return weir.Micros((window / Steps).Microseconds())
}
