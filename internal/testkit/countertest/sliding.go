package countertest

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit"
)

// What was scored counts for the window at least, and a step more at most.
func testSlides(b *table) {
	for _, window := range []time.Duration{time.Second, 7 * time.Second, time.Minute, time.Hour, 30 * 24 * time.Hour, counter.MaxSliding} {
		board := counter.Board{Name: "s", Sliding: window}
		step := window / counter.Steps
		for _, into := range []time.Duration{0, step / 2, step - time.Microsecond} {
			begin := b.now.Truncate(step).Add(3*window + into)
			b.at(begin)
			b.score(board, "a", "1.5", "1.5")
			b.at(begin.Add(window / 2))
			b.score(board, "a", "2", "3.5")
			b.score(board, "b", "3", "3")
			b.top(board, 5, "a", "3.5", "b", "3")
			b.at(begin.Add(window))
			b.top(board, 5, "a", "3.5", "b", "3")
			b.at(begin.Add(window + step))
			b.top(board, 5, "b", "3", "a", "2")
			b.standing(board, "a", 2, "2")
			b.at(begin.Add(window/2 + window + step))
			b.equal("Members", b.top(board, 5).Members, 0)
			b.standing(board, "b", 0, "0")
		}
	}
}

// Who was dropped leaves nothing behind that is subtracted later.
func testSlidingRoom(b *table) {
	board := counter.Board{Name: "s", Sliding: time.Minute}
	for round := range 5 {
		for i := range 20 {
			b.score(board, fmt.Sprint(round, "-", i), "1", "1")
		}
		b.score(board, "top", "10", counter.Whole(int64(10*(round+1))).String())
		b.pass(6 * time.Second)
	}
	b.pass(33 * time.Second) // the first round was 63 s ago
	got := b.top(board, 1, "top", "40")
	if got.Members > 8 || got.Dropped == 0 {
		b.t.Errorf("%+v", got)
	}
	whole := testkit.Must(b.Store.Top(b.t.Context(), board, 100))(b.t)
	for _, p := range whole.Places[1:] {
		if p.Score != counter.One {
			b.t.Errorf("%+v", p)
		}
	}
	b.pass(time.Hour)
	b.top(board, 5)

	// In whichever step that was.
	for step := range 2 * (counter.Steps + 1) {
		board := counter.Board{Name: fmt.Sprint("s", step), Sliding: time.Minute}
		b.pass(3 * time.Second)
		b.score(board, "a", "5", "5")
		for i := range 8 {
			b.score(board, fmt.Sprint(i), "10", "10")
		}
		b.standing(board, "a", 0, "0")
		b.at(b.now.Add(3 * time.Second))
		b.score(board, "a", "20", "20")
		b.at(b.now.Add(time.Minute)) // what was dropped would be subtracted now
		b.standing(board, "a", 1, "20")
		b.at(b.now.Add(-time.Minute - 3*time.Second))
	}
}

// Who was dropped is counted as long as what it had would be: until the window has left
// the step in which that was. Whether somebody looks in between makes no difference.
func testDropsSlideAway(b *table) {
	const window, step = 20 * time.Second, time.Second
	dropped := func(board counter.Board, want int64) {
		b.t.Helper()
		got := testkit.Must(b.Store.Top(b.t.Context(), board, 1))(b.t)
		b.equal("Dropped of "+board.Name, got.Dropped, want)
	}
	fill := func(board counter.Board, round string) {
		for i := range 9 {
			b.score(board, fmt.Sprint(round, i), "1", "1")
		}
	}
	watched, left := counter.Board{Name: "watched", Sliding: window}, counter.Board{Name: "left", Sliding: window}
	begin := b.now
	for _, board := range []counter.Board{watched, left} {
		fill(board, "a") // the ninth drops two
	}
	for d := step; d <= window; d += step {
		b.at(begin.Add(d))
		dropped(watched, 2)
	}
	b.at(begin.Add(window + step))
	dropped(watched, 0)
	dropped(left, 0)

	// A board that is never empty gets over it, too.
	busy := counter.Board{Name: "busy", Sliding: window}
	begin = b.now
	fill(busy, "a")
	b.at(begin.Add(window / 2))
	fill(busy, "b") // seven were left, and every second of these drops two
	b.at(begin.Add(window))
	dropped(busy, 10)
	b.at(begin.Add(window + step))
	dropped(busy, 8)
	b.score(busy, "c", "1", "1")
	b.at(begin.Add(window/2 + window + step))
	b.equal("Dropped", b.top(busy, 5, "c", "1").Dropped, int64(0))

	// And one that was left alone for so long that nothing of it counts.
	fill(busy, "d")
	b.pass(time.Hour)
	b.score(busy, "c", "1", "1")
	dropped(busy, 0)
}

// A clock that goes back a little stands still; one that was far ahead is forgotten.
func testSlidingBack(b *table) {
	board := counter.Board{Name: "s", Sliding: time.Minute}
	b.score(board, "a", "1", "1")
	b.pass(-30 * time.Second)
	b.score(board, "a", "1", "2")
	b.pass(30*time.Second + time.Minute)
	b.top(board, 5, "a", "2")
	b.pass(3 * time.Second)
	b.top(board, 5)

	// Also if it was only looked at in between.
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 1}
	b.score(board, "a", "1", "1")
	b.hit(list, "a")
	b.pass(6 * time.Second)
	b.top(board, 5, "a", "1")
	b.hot(list, "a")
	b.pass(-6 * time.Second)
	b.score(board, "b", "1", "1")
	b.hit(list, "b")
	b.pass(63 * time.Second)
	b.top(board, 5, "b", "1")
	b.hot(list, "b")
	b.pass(6 * time.Second)
	b.top(board, 5)
	b.hot(list)

	b.pass(1000 * time.Hour)
	b.score(board, "future", "1", "1")
	b.pass(-1000 * time.Hour)
	b.score(board, "a", "1", "1")
	b.top(board, 5, "a", "1")
	b.pass(2 * time.Minute)
	b.top(board, 5)
}
