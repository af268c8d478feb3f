package redis

import (
	"context"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/redislink"
)

// slidingKept is for how long a sliding board is of interest.
func slidingKept(window time.Duration) time.Duration { return window + window/counter.Steps*2 }

// askBoard runs the script of a board, of either kind, unless what was asked is invalid. The
// answer begins with the number of its window.
func (s *Store) askBoard(ctx context.Context, b *counter.Board, invalid error, verb string, args ...string) *redislink.Answer {
	if invalid != nil {
		return s.conn.Failed(invalid)
	}
	most, left := itoa(int64(s.maxMembers)), itoa(int64(s.roomFor()))
	if b.Sliding != 0 {
		head := []string{s.now(), verb, itoa(int64(counter.StepWidth(b.Sliding))), millis(slidingKept(b.Sliding)), most, left}
		return s.call(ctx, slidingScript, s.slidingKeys("s", b.Name, b.Sliding), append(head, args...))
	}
	head := []string{s.now(), verb, windowOf(b.Window), zoneAt(s.around(), b.Zone), itoa(int64(b.Ago)),
		millis(s.kept.BoardAfter(b.Window)), most, left}
	return s.call(ctx, boardScript, s.boardKeys(b), append(head, args...))
}

// Score implements counter.Store.
func (s *Store) Score(ctx context.Context, b counter.Board, marks ...counter.Mark) ([]counter.Amount, error) {
	args := make([]string, 0, 2*len(marks))
	for _, m := range marks {
		args = append(args, m.Member, itoa(int64(m.By)))
	}
	a := s.askBoard(ctx, &b, b.ValidateScore(marks), "score", args...)
	a.Int()
	scores := a.List()
	after := make([]counter.Amount, len(marks))
	for i := range after {
		after[i] = amount(scores)
	}
	return redislink.Result(after, a)
}

// Top implements counter.Store.
func (s *Store) Top(ctx context.Context, b counter.Board, n int) (counter.Ranking, error) {
	a := s.askBoard(ctx, &b, b.ValidateTop(n), "top", itoa(int64(n)))
	index, lines := a.Int(), a.List()
	places := make([]counter.Standing, lines.Len()/2)
	for i := range places {
		places[i] = counter.Standing{Member: lines.Text(), Rank: i + 1, Score: amount(lines)}
	}
	return redislink.Result(counter.Ranking{
		Places: places, Members: int(a.Int()), Dropped: a.Int(), Start: b.Window.Start(index, b.Zone),
	}, a)
}

// Standing implements counter.Store.
func (s *Store) Standing(ctx context.Context, b counter.Board, members ...string) ([]counter.Standing, error) {
	a := s.askBoard(ctx, &b, b.ValidateStanding(members), "standing", members...)
	a.Int()
	lines := a.List()
	places := make([]counter.Standing, len(members))
	known := lines.Len() > 0 // else there is no such board
	for i, member := range members {
		places[i].Member = member
		if known {
			places[i].Score, places[i].Rank = amount(lines), int(lines.Int())
		}
	}
	return redislink.Result(places, a)
}
