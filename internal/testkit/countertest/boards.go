package countertest

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit"
)

// The highest is first, equal ones go by their bytes, and no member has 0.
func testOrder(b *table) {
	board := counter.Board{Name: "o"}
	b.top(board, 5)
	b.standing(board, "a", 0, "0")
	for _, m := range []struct{ member, by, want string }{
		{"b", "1", "1"}, {"a", "1", "1"}, {"Z", "1", "1"}, {"\xff", "1", "1"}, {"c", "2.5", "2.5"}, {"down", "-3", "-3"}, {"b", "0.000001", "1.000001"}, {"gone", "4", "4"}, {"gone", "-4", "0"},
	} {
		b.score(board, m.member, m.by, m.want)
	}
	got := b.top(board, 10, "c", "2.5", "b", "1.000001", "Z", "1", "a", "1", "\xff", "1", "down", "-3")
	if got.Members != 6 || got.Dropped != 0 || !got.Start.IsZero() {
		b.t.Errorf("%+v", got)
	}
	b.top(board, 2, "c", "2.5", "b", "1.000001")
	places := testkit.Must(b.Store.Standing(b.t.Context(), board, "down", "c", "absent", "gone", "a"))(b.t)
	b.equal("Standing", places, []counter.Standing{
		{Member: "down", Rank: 6, Score: -3 * counter.One}, {Member: "c", Rank: 1, Score: 2_500_000}, {Member: "absent"}, {Member: "gone"}, {Member: "a", Rank: 4, Score: counter.One},
	})
	scores, err := b.Store.Score(b.t.Context(), board, counter.Mark{Member: "x", By: 5}, counter.Mark{Member: "y", By: 6}, counter.Mark{Member: "x", By: 7})
	b.same("Score", scores, err, "0.000005", "0.000006", "0.000012")
}

// Each window has its own board, and the last ones can be read.
func testBoardWindows(b *table) {
	berlin := zone(b.t, "Europe/Berlin")
	for _, w := range []counter.Window{counter.Second, counter.Minute, counter.Hour, counter.Day} {
		board := counter.Board{Name: "w", Window: w, Zone: berlin}
		for i := range 20 {
			b.score(board, fmt.Sprint("m", i), "1", "1")
			start := b.top(board, 10, fmt.Sprint("m", i), "1").Start
			if b.now.Before(start) || b.now.Sub(start) >= w.Width() {
				b.t.Errorf("at %v a window by %v began at %v", b.now, w, start)
			}
			for ago := 1; ago < counter.BoardWindows; ago++ {
				past := board
				past.Ago = ago
				if i-ago < 0 {
					b.top(past, 10)
					continue
				}
				b.top(past, 10, fmt.Sprint("m", i-ago), "1")
				b.standing(past, fmt.Sprint("m", i-ago), 1, "1")
				b.standing(past, fmt.Sprint("m", i), 0, "0")
			}
			b.pass(w.Width())
		}
		b.top(board, 10)
		b.standing(board, "m19", 0, "0")
		b.pass(100 * w.Width())
		past := board
		past.Ago = 5
		b.top(past, 10)
		b.score(board, "new", "1", "1") // in the place of an old one
		b.top(board, 10, "new", "1")
	}
	b.top(counter.Board{Name: "w"}, 1)
	b.top(counter.Board{Name: "w", Window: counter.Day}, 1)
}

// When a board is full, the lowest go, and the highest are right.
func testRoom(b *table) {
	for _, board := range []counter.Board{{Name: "r"}, {Name: "r", Window: counter.Day}, {Name: "r", Sliding: time.Hour}} {
		for i := range 16 {
			by := counter.Whole(int64(i + 10)).String()
			b.score(board, fmt.Sprintf("m%02d", i), by, by)
		}
		if got := b.top(board, 1, "m15", "25"); got.Members != 16 || got.Dropped != 0 {
			b.t.Errorf("%+v", got)
		}
		b.score(board, "star", "100", "100") // one too many: down to 14
		got := b.top(board, 3, "star", "100", "m15", "25", "m14", "24")
		if got.Members != 14 || got.Dropped != 3 {
			b.t.Errorf("%+v", got)
		}
		b.standing(board, "m02", 0, "0")
		b.standing(board, "m03", 14, "13")
		for i := range 200 {
			b.score(board, fmt.Sprint("flood", i), "1", "1")
		}
		got = b.top(board, 3, "star", "100", "m15", "25", "m14", "24")
		if got.Members > 16 || got.Dropped < 180 {
			b.t.Errorf("%+v", got)
		}
		b.score(board, "m02", "1", "1") // what it had is forgotten
	}
	b.pass(24 * time.Hour)
	today := counter.Board{Name: "r", Window: counter.Day}
	b.equal("Dropped", b.top(today, 3).Dropped, int64(0))
	b.pass((counter.BoardWindows - 1) * 24 * time.Hour) // in the place of the day that was full
	b.score(today, "a", "1", "1")
	b.equal("Dropped", b.top(today, 3, "a", "1").Dropped, int64(0))
	b.equal("Dropped", b.top(counter.Board{Name: "r", Sliding: time.Hour}, 3).Dropped, int64(0))
}
