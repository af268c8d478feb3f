package redis

import (
	"context"
	"time"

	"github.com/weirhq/weir/counter"
)

// slidingKept is for how long a sliding board is of interest.
func slidingKept(window time.Duration) time.Duration { return window + window/counter.Steps*2 }

// askBoard runs the script of a board, of either kind, unless what was asked is invalid. The
// answer begins with the number of its window.
func (s *Store) askBoard(ctx context.Context, b *counter.Board, invalid error, verb string, args ...string) *reader {
	if invalid != nil {
		return &reader{err: invalid}
	}
	most, left := itoa(int64(s.maxMembers)), itoa(int64(s.roomFor()))
	if b.Sliding != 0 {
		head := []string{s.now(), verb, itoa(int64(counter.StepWidth(b.Sliding))), millis(slidingKept(b.Sliding)), most, left}
		return s.ask(ctx, slidingScript, s.slidingKeys("s", b.Name, b.Sliding), append(head, args...))
	}
	head := []string{s.now(), verb, windowOf(b.Window), zoneAt(s.around(), b.Zone), itoa(int64(b.Ago)),
		millis(s.kept.BoardAfter(b.Window)), most, left}
	return s.ask(ctx, boardScript, s.boardKeys(b), append(head, args...))
}

// Score implements counter.Store.
func (s *Store) Score(ctx context.Context, b counter.Board, marks ...counter.Mark) ([]counter.Amount, error) {
	args := make([]string, 0, 2*len(marks))
	for _, m := range marks {
		args = append(args, m.Member, itoa(int64(m.By)))
	}
	r := s.askBoard(ctx, &b, b.ValidateScore(marks), "score", args...)
	scores := r.list(r.answer, 1)
	after := make([]counter.Amount, len(marks))
	for i := range after {
		after[i] = counter.Amount(r.number(scores, i))
	}
	return result(after, r)
}

// Top implements counter.Store.
func (s *Store) Top(ctx context.Context, b counter.Board, n int) (counter.Ranking, error) {
	r := s.askBoard(ctx, &b, b.ValidateTop(n), "top", itoa(int64(n)))
	index, lines := r.number(r.answer, 0), r.list(r.answer, 1)
	if r.err != nil {
		return counter.Ranking{}, r.err
	}
	ranking := counter.Ranking{
		Places: make([]counter.Place, len(lines)/2), Members: int(r.number(r.answer, 2)), Dropped: r.number(r.answer, 3), Start: b.Window.Start(index, b.Zone),
	}
	for i := range ranking.Places {
		ranking.Places[i] = counter.Place{Member: r.text(lines, 2*i), Rank: i + 1, Score: counter.Amount(r.number(lines, 2*i+1))}
	}
	return ranking, r.err
}

// Standing implements counter.Store.
func (s *Store) Standing(ctx context.Context, b counter.Board, members ...string) ([]counter.Place, error) {
	r := s.askBoard(ctx, &b, b.ValidateStanding(members), "standing", members...)
	lines := r.list(r.answer, 1)
	places := make([]counter.Place, len(members))
	for i, member := range members {
		places[i].Member = member
		if len(lines) > 0 { // else there is no such board
			places[i].Score, places[i].Rank = counter.Amount(r.number(lines, 2*i)), int(r.number(lines, 2*i+1))
		}
	}
	return result(places, r)
}
