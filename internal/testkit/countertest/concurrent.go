package countertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit"
)

// begin has users do something at once, each so many times, and returns how to wait for them.
func (b *table) begin(users, rounds int, do func(user, round int) error) (wait func()) {
	var all sync.WaitGroup
	for user := range users {
		all.Go(func() {
			for round := range rounds {
				if err := do(user, round); err != nil {
					b.t.Error(err)
				}
			}
		})
	}
	return all.Wait
}

// Many at once lose nothing, and share no number.
func testConcurrent(b *table) {
	t := b.t
	const users, rounds = 8, 40
	k := []counter.Key{{Group: "g", Name: "x"}, {Group: "g", Name: "y", Window: counter.Day}}
	board, sliding := counter.Board{Name: "b"}, counter.Board{Name: "b", Sliding: time.Hour}
	var mu sync.Mutex
	ids := map[int64]bool{}
	taken := [2]counter.Amount{}
	var last [users]int64
	b.begin(users, rounds, func(user, round int) error {
		after, err := b.Store.Add(t.Context(), counter.Delta{Key: k[0], By: counter.One}, counter.Delta{Key: k[1], By: -counter.One / 2})
		if err != nil || after[0] != -2*after[1] {
			t.Errorf("Add = %v, %v: one was changed without the other", after, err)
		}
		for _, on := range []counter.Board{board, sliding} {
			if _, err := b.Store.Score(t.Context(), on, counter.Mark{Member: "m", By: counter.One}); err != nil {
				return err
			}
		}
		id, err := b.Store.NextID(t.Context(), "s")
		if err != nil || id <= last[user] {
			t.Errorf("after %d came %d, %v", last[user], id, err)
		}
		last[user] = id
		mu.Lock()
		if ids[id] {
			t.Errorf("%d was given out twice", id)
		}
		ids[id] = true
		mu.Unlock()
		if user == 0 && round%4 == 0 {
			had, err := b.Store.Reset(t.Context(), k...)
			if err != nil || had[0] != -2*had[1] {
				return fmt.Errorf("a reset gave %v, %v", had, err)
			}
			taken[0], taken[1] = taken[0]+had[0], taken[1]+had[1]
		}
		return nil
	})()
	left := testkit.Must(b.Store.Get(t.Context(), k...))(t)
	if sum := left[0] + taken[0]; sum != counter.Whole(users*rounds) {
		t.Errorf("what was reset and what is left are %v", sum)
	}
	b.top(board, 1, "m", fmt.Sprint(users*rounds))
	b.top(sliding, 1, "m", fmt.Sprint(users*rounds))
}

// While many add, one sets: what each setting found, and what was added since, is all that
// was.
func testConcurrentSet(b *table) {
	t := b.t
	const users, rounds = 6, 40
	k := counter.Key{Name: "k"}
	wait := b.begin(users, rounds, func(int, int) error {
		return testkit.Err(b.Store.Add(t.Context(), counter.Delta{Key: k, By: counter.One}))
	})
	const start = 1_000_000
	sum := counter.Amount(0)
	for i := range rounds {
		had, err := b.Store.Set(t.Context(), counter.Setting{Key: k, To: counter.Whole(start)})
		if err != nil {
			t.Fatal(err)
		}
		sum += had[0]
		if i > 0 {
			sum -= counter.Whole(start)
		}
	}
	wait()
	left := testkit.Must(b.Store.Get(t.Context(), k))(t)
	if sum += left[0] - counter.Whole(start); sum != counter.Whole(users*rounds) {
		t.Errorf("the additions are %v, want %d", sum, users*rounds)
	}
}

// A call whose context has ended fails, and nothing is changed.
func testCancelled(b *table) {
	ctx, cancel := context.WithCancel(b.t.Context())
	cancel()
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 1}
	for what, err := range map[string]error{
		"Add":           testkit.Err(b.Store.Add(ctx, counter.Delta{Key: counter.Key{Name: "k"}, By: counter.One})),
		"Get":           testkit.Err(b.Store.Get(ctx, counter.Key{Name: "k"})),
		"Set":           testkit.Err(b.Store.Set(ctx, counter.Setting{Key: counter.Key{Name: "k"}, To: counter.One})),
		"Reset":         testkit.Err(b.Store.Reset(ctx, counter.Key{Name: "k"})),
		"History":       testkit.Err(b.Store.History(ctx, 1, counter.Key{Name: "k"})),
		"Observe":       b.Store.Observe(ctx, counter.Sample{Key: counter.Key{Name: "k"}, Values: []counter.Amount{1}}),
		"Distributions": testkit.Err(b.Store.Distributions(ctx, 1, counter.Key{Name: "k"})),
		"NextID":        testkit.Err(b.Store.NextID(ctx, "k")),
		"Score":         testkit.Err(b.Store.Score(ctx, counter.Board{Name: "k"}, counter.Mark{Member: "m", By: 1})),
		"Top":           testkit.Err(b.Store.Top(ctx, counter.Board{Name: "k"}, 1)),
		"Standing":      testkit.Err(b.Store.Standing(ctx, counter.Board{Name: "k"}, "m")),
		"Hit":           testkit.Err(b.Store.Hit(ctx, list, "i")),
		"Hot":           testkit.Err(b.Store.Hot(ctx, list, 1)),
		"Events":        testkit.Err(b.Store.Events(ctx, list, 0)),
	} {
		if !errors.Is(err, context.Canceled) {
			b.t.Errorf("%s = %v", what, err)
		}
	}
	b.get([]string{"0"}, counter.Key{Name: "k"})
	b.top(counter.Board{Name: "k"}, 1)
	b.hot(list)
}
