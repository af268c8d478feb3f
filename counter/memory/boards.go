package memory

import (
	"context"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

// board is a leaderboard by the calendar, or without a window: a ring of tables.
type board struct {
	ring [counter.BoardWindows]boardWindow
}

type boardWindow struct {
	index   int64
	table   table // nil if it was never used
	dropped int64
}

func (b *board) weight() int {
	n := 1
	for i := range b.ring {
		n += len(b.ring[i].table)
	}
	return n
}

// slot is where the ring has a window. It may hold another one.
func (b *board) slot(index int64) *boardWindow {
	return &b.ring[(index%counter.BoardWindows+counter.BoardWindows)%counter.BoardWindows]
}

// window returns what is known of a window, and the empty one if nothing is.
func (b *board) window(index int64) boardWindow {
	if w := b.slot(index); w.table != nil && w.index == index {
		return *w
	}
	return boardWindow{index: index}
}

func (s *Store) findBoard(b *counter.Board, now weir.Micros) (*entry, *board) {
	id := ident{kind: kindBoard, window: b.Window, zone: counter.ZoneName(b.Zone), name: b.Name}
	return findOr(&s.room, id, now, func() *board { return &board{} })
}

// Score implements counter.Store.
func (s *Store) Score(ctx context.Context, b counter.Board, marks ...counter.Mark) ([]counter.Amount, error) {
	now, err := s.lock(ctx, b.ValidateScore(marks))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if b.Sliding != 0 {
		return s.scoreSliding(&b, marks, now)
	}
	e, found := s.findBoard(&b, now)
	w := found.window(b.Window.Index(now, b.Zone))
	if !w.table.fits(marks) {
		return nil, counter.ErrRange
	}
	if err := s.room.claimOne(e, now); err != nil {
		return nil, err
	}
	if w.table == nil {
		w.table = table{}
	}
	after := make([]counter.Amount, len(marks))
	for i, m := range marks {
		after[i] = counter.Amount(w.table.addScore(m.Member, int64(m.By)))
	}
	if len(w.table) > s.maxMembers {
		w.dropped += int64(len(w.table.trim(s.roomFor())))
	}
	*found.slot(w.index) = w
	s.room.keep(e, now, now+micros(s.kept.BoardAfter(b.Window)))
	return after, nil
}

// look returns a window of a board, to read.
func (s *Store) look(b *counter.Board, now weir.Micros) boardWindow {
	if b.Sliding != 0 {
		if e, found := findBody[*sliding](&s.room, slidingIdent(b), now); found != nil {
			found.advance(now)
			s.room.weigh(e)
			return boardWindow{table: found.sum, dropped: found.missing()}
		}
		return boardWindow{}
	}
	_, found := s.findBoard(b, now)
	return found.window(b.Window.Index(now, b.Zone) - int64(b.Ago))
}

// Top implements counter.Store.
func (s *Store) Top(ctx context.Context, b counter.Board, n int) (counter.Ranking, error) {
	now, err := s.lock(ctx, b.ValidateTop(n))
	if err != nil {
		return counter.Ranking{}, err
	}
	defer s.mu.Unlock()
	w := s.look(&b, now)
	return counter.Ranking{
		Places: w.table.ranking(n), Members: len(w.table), Dropped: w.dropped, Start: b.Window.Start(w.index, b.Zone),
	}, nil
}

// Standing implements counter.Store.
func (s *Store) Standing(ctx context.Context, b counter.Board, members ...string) ([]counter.Standing, error) {
	now, err := s.lock(ctx, b.ValidateStanding(members))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.look(&b, now).table.standing(members), nil
}
