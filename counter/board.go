package counter

import (
	"cmp"
	"strconv"
	"time"

	"github.com/weirhq/weir"
)

const (
	// BoardWindows is the number of windows of a leaderboard that can be read,
	// including the current one.
	BoardWindows = 8

	// Steps is the number of steps of a sliding window. A count expires when it is as
	// old as the window, or up to one step (a twentieth of the window) later.
	Steps = 20

	// MaxSliding is the maximum length of a sliding window.
	MaxSliding = 366 * 24 * time.Hour

	// DefaultMaxMembers is the default maximum of members of a leaderboard and items of
	// a hot list.
	DefaultMaxMembers = 10_000
)

// Board identifies a leaderboard. The same name with another window is another board.
//
// A member with score 0 is not on the board. When a board is full, the store drops the
// lowest members until an eighth is free, and loses their scores. So a score is never
// too high, but it is too low for a member that was dropped and came back. The top is
// exact as long as none of its members was ever dropped; Ranking.Dropped is 0 if no
// member was.
type Board struct {
	// Name is any bytes; at least one.
	Name string

	// Window and Zone have the meaning that they have in a Key. Default Ever.
	Window Window
	Zone   *time.Location

	// Ago selects an earlier window: 1 is yesterday's board if the window is Day.
	// Earlier windows are read-only. At most BoardWindows − 1.
	Ago int

	// Sliding makes the board cover the last Sliding instead of a calendar window, in
	// whole seconds. Window must then be Ever, and scores can only grow.
	Sliding time.Duration
}

// Mark is a change of a member's score.
type Mark struct {
	Member string
	By     Amount // may be negative, except on a sliding board
}

// Standing is the position of a member.
type Standing struct {
	Member string
	Rank   int // from 1; 0 if the member is not on the board
	Score  Amount
}

// Ranking is the top of a leaderboard: highest score first, equal scores ordered by the
// bytes of the member.
type Ranking struct {
	Places  []Standing
	Members int       // number of members on the whole board
	Dropped int64     // number of members dropped in this window; if 0, every score is exact
	Start   time.Time // start of the window; zero for Ever and for sliding boards
}

// Validate checks a board, for stores.
func (b *Board) Validate() error {
	if err := checkName("board", b.Name); err != nil {
		return err
	}
	if b.Sliding != 0 {
		if b.Window != Ever || b.Ago != 0 || b.Zone != nil {
			return invalid("sliding", "a sliding board has no calendar window, zone or past; omit Window, Zone and Ago")
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
		return invalid(field, "%v is not valid; write whole seconds, from 1s to %vh", d, MaxSliding.Hours())
	}
	return nil
}

// ValidateScore checks the arguments of Score, for stores.
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
			return invalid("by", "%v is too large; the maximum is %v", m.By, MaxScore)
		}
		if b.Sliding != 0 && m.By <= 0 {
			return invalid("by", "%v does not increase the score; scores on a sliding board only grow", m.By)
		}
	}
	return nil
}

// ValidateTop checks the arguments of Top, for stores.
func (b *Board) ValidateTop(n int) error {
	return cmp.Or(b.Validate(), checkTop(n))
}

func checkTop(n int) error {
	if n < 1 || n > MaxTop {
		return invalid("n", "%s is out of range; request 1 to %d", strconv.Itoa(n), MaxTop)
	}
	return nil
}

// ValidateStanding checks the arguments of Standing, for stores.
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

// StepWidth returns the length of one step of a sliding window, for stores.
func StepWidth(window time.Duration) weir.Micros {
	return weir.Micros((window / Steps).Microseconds())
}
