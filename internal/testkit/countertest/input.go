package countertest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit"
)

// Each mistake names the field, and nothing is done.
func testBadInput(b *table) {
	ctx, s := b.t.Context(), b.Store
	long := strings.Repeat("x", counter.MaxNameLen+1)
	key := counter.Key{Name: "k"}
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 5}
	add := func(k counter.Key, by counter.Amount) error {
		return testkit.Err(s.Add(ctx, counter.Delta{Key: key, By: counter.One}, counter.Delta{Key: k, By: by}))
	}
	score := func(board counter.Board, m counter.Mark) error {
		return testkit.Err(s.Score(ctx, board, counter.Mark{Member: "good", By: counter.One}, m))
	}
	distinct := counter.Key{Name: "k", Distinct: true}
	include := func(members ...string) error {
		return testkit.Err(s.Add(ctx, counter.Delta{Key: distinct, Members: members}))
	}
	values := func(n int) []counter.Amount { return make([]counter.Amount, n) }
	many := slices.Repeat([]string{"m"}, counter.MaxBatch)
	good := counter.Mark{Member: "m", By: 1}
	hit := func(change func(*counter.HotList)) error {
		l := list
		change(&l)
		return testkit.Err(s.Hit(ctx, l, "i"))
	}
	for i, c := range []struct {
		field string
		err   error
	}{
		{"deltas", testkit.Err(s.Add(ctx))},
		{"deltas", testkit.Err(s.Add(ctx, make([]counter.Delta, counter.MaxBatch+1)...))},
		{"name", add(counter.Key{}, 1)},
		{"name", add(counter.Key{Name: long}, 1)},
		{"group", add(counter.Key{Name: "k", Group: long}, 1)},
		{"window", add(counter.Key{Name: "k", Window: 9}, 1)},
		{"zone", add(counter.Key{Name: "k", Zone: time.Local}, 1)},
		{"zone", add(counter.Key{Name: "k", Zone: time.FixedZone(long, 0)}, 1)},
		{"by", add(key, counter.MaxAmount+1)},
		{"by", add(key, -counter.MaxAmount-1)},
		{"by", add(key, counter.Whole(1<<62))},
		{"members", testkit.Err(s.Add(ctx, counter.Delta{Key: distinct}))},
		{"members", include(make([]string, counter.MaxBatch+1)...)},
		{"members", testkit.Err(s.Add(ctx, counter.Delta{Key: distinct, Members: many}, counter.Delta{Key: distinct, Members: []string{"m"}}))},
		{"members", testkit.Err(s.Add(ctx, counter.Delta{Key: key, By: 1, Members: []string{"m"}}))},
		{"member", include("m", "")},
		{"member", include(long)},
		{"by", testkit.Err(s.Add(ctx, counter.Delta{Key: distinct, By: 1, Members: []string{"m"}}))},
		{"distinct", testkit.Err(s.Set(ctx, counter.Setting{Key: distinct, To: 1}))},
		{"settings", testkit.Err(s.Set(ctx))},
		{"settings", testkit.Err(s.Set(ctx, make([]counter.Setting, counter.MaxBatch+1)...))},
		{"name", testkit.Err(s.Set(ctx, counter.Setting{Key: key, To: 1}, counter.Setting{}))},
		{"to", testkit.Err(s.Set(ctx, counter.Setting{Key: key, To: 1}, counter.Setting{Key: key, To: counter.MaxAmount + 1}))},
		{"to", testkit.Err(s.Set(ctx, counter.Setting{Key: key, To: -counter.MaxAmount - 1}))},
		{"keys", testkit.Err(s.Get(ctx))},
		{"name", testkit.Err(s.Get(ctx, key, counter.Key{}))},
		{"keys", testkit.Err(s.Reset(ctx, make([]counter.Key, counter.MaxBatch+1)...))},
		{"n", testkit.Err(s.History(ctx, 0, key))},
		{"n", testkit.Err(s.History(ctx, 2, key))},
		{"n", testkit.Err(s.History(ctx, 3600, counter.Key{Name: "a", Window: counter.Second}, counter.Key{Name: "b", Window: counter.Second}, counter.Key{Name: "c", Window: counter.Second}))},
		{"samples", s.Observe(ctx)},
		{"samples", s.Observe(ctx, make([]counter.Sample, counter.MaxBatch+1)...)},
		{"name", s.Observe(ctx, counter.Sample{Values: values(1)})},
		{"distinct", s.Observe(ctx, counter.Sample{Key: distinct, Values: values(1)})},
		{"values", s.Observe(ctx, counter.Sample{Key: key})},
		{"values", s.Observe(ctx, counter.Sample{Key: key, Values: []counter.Amount{1, -1}})},
		{"values", s.Observe(ctx, counter.Sample{Key: key, Values: []counter.Amount{counter.MaxAmount + 1}})},
		{"values", s.Observe(ctx, counter.Sample{Key: key, Values: values(counter.MaxValues + 1)})},
		{"values", s.Observe(ctx, counter.Sample{Key: key, Values: values(600)}, counter.Sample{Key: key, Values: values(600)})},
		{"keys", testkit.Err(s.Distributions(ctx, 1))},
		{"distinct", testkit.Err(s.Distributions(ctx, 1, distinct))},
		{"n", testkit.Err(s.Distributions(ctx, 0, key))},
		{"n", testkit.Err(s.Distributions(ctx, 2, key))},
		{"n", testkit.Err(s.Distributions(ctx, counter.MaxDistributions+1, counter.Key{Name: "a", Window: counter.Second}))},
		{"n", testkit.Err(s.Distributions(ctx, 200, counter.Key{Name: "a", Window: counter.Second}, counter.Key{Name: "b", Window: counter.Second}))},
		{"sequence", testkit.Err(s.NextID(ctx, ""))},
		{"sequence", testkit.Err(s.NextID(ctx, long))},
		{"board", score(counter.Board{}, good)},
		{"board", testkit.Err(s.Top(ctx, counter.Board{Name: long}, 1))},
		{"ago", score(counter.Board{Name: "b", Window: counter.Day, Ago: 1}, good)},
		{"ago", testkit.Err(s.Top(ctx, counter.Board{Name: "b", Window: counter.Day, Ago: counter.BoardWindows}, 1))},
		{"ago", testkit.Err(s.Top(ctx, counter.Board{Name: "b", Window: counter.Day, Ago: -1}, 1))},
		{"ago", testkit.Err(s.Top(ctx, counter.Board{Name: "b", Ago: 1}, 1))},
		{"zone", testkit.Err(s.Standing(ctx, counter.Board{Name: "b", Zone: time.Local}, "m"))},
		{"sliding", score(counter.Board{Name: "b", Sliding: time.Minute, Window: counter.Day}, good)},
		{"sliding", score(counter.Board{Name: "b", Sliding: time.Millisecond}, good)},
		{"sliding", score(counter.Board{Name: "b", Sliding: -time.Minute}, good)},
		{"sliding", score(counter.Board{Name: "b", Sliding: counter.MaxSliding + time.Second}, good)},
		{"sliding", score(counter.Board{Name: "b", Sliding: 1500 * time.Millisecond}, good)},
		{"by", score(counter.Board{Name: "b", Sliding: time.Minute}, counter.Mark{Member: "m", By: -1})},
		{"by", score(counter.Board{Name: "b", Sliding: time.Minute}, counter.Mark{Member: "m"})},
		{"by", score(counter.Board{Name: "b"}, counter.Mark{Member: "m", By: counter.MaxScore + 1})},
		{"member", score(counter.Board{Name: "b"}, counter.Mark{Member: long, By: 1})},
		{"marks", testkit.Err(s.Score(ctx, counter.Board{Name: "b"}))},
		{"n", testkit.Err(s.Top(ctx, counter.Board{Name: "b"}, 0))},
		{"n", testkit.Err(s.Top(ctx, counter.Board{Name: "b"}, counter.MaxTop+1))},
		{"members", testkit.Err(s.Standing(ctx, counter.Board{Name: "b"}))},
		{"list", hit(func(l *counter.HotList) { l.Name = "" })},
		{"window", hit(func(l *counter.HotList) { l.Window = 0 })},
		{"threshold", hit(func(l *counter.HotList) { l.Threshold = 0 })},
		{"cool", hit(func(l *counter.HotList) { l.Cool = 6 })},
		{"cool", hit(func(l *counter.HotList) { l.Cool = -1 })},
		{"items", testkit.Err(s.Hit(ctx, list))},
		{"item", testkit.Err(s.Hit(ctx, list, "good", ""))},
		{"n", testkit.Err(s.Hot(ctx, list, 0))},
		{"list", testkit.Err(s.Events(ctx, counter.HotList{}, 0))},
	} {
		invalid := (*weir.InvalidError)(nil)
		if !errors.As(c.err, &invalid) || invalid.Field != c.field || len(invalid.Reason) < 10 {
			b.t.Errorf("%d: %v, want one about %s", i, c.err, c.field)
		}
	}
	b.get([]string{"0", "0"}, key, distinct)
	b.top(counter.Board{Name: "b"}, 1)
	b.top(counter.Board{Name: "b", Sliding: time.Minute}, 1)
	b.equal("Hits", b.hit(list, "good").Hits, int64(1))
}

// What is just allowed works.
func testLargest(b *table) {
	ctx, long := b.t.Context(), strings.Repeat("x", counter.MaxNameLen)
	var deltas []counter.Delta
	var marks []counter.Mark
	var items, members []string
	for i := range counter.MaxBatch {
		name := long[:counter.MaxNameLen-1] + string(rune('A'+i%20))
		deltas = append(deltas, counter.Delta{Key: counter.Key{Group: long, Name: name, Window: counter.Day, Zone: time.UTC}, By: counter.One})
		marks = append(marks, counter.Mark{Member: name, By: counter.One})
		items, members = append(items, name), append(members, name)
	}
	after, err := b.Store.Add(ctx, deltas...)
	if err != nil || after[counter.MaxBatch-1] != counter.Whole(13) {
		b.t.Errorf("Add = %v, %v", after, err)
	}
	users := counter.Key{Group: long, Name: long, Window: counter.Year, Distinct: true}
	if after, err := b.Store.Add(ctx, counter.Delta{Key: users, Members: members}); err != nil || after[0] != counter.Whole(20) {
		b.t.Errorf("Add = %v, %v", after, err)
	}
	board := counter.Board{Name: long, Sliding: counter.MaxSliding}
	if _, err := b.Store.Score(ctx, board, marks...); err != nil {
		b.t.Error(err)
	}
	if places, err := b.Store.Standing(ctx, board, members...); err != nil || places[0] != (counter.Standing{Member: members[0], Rank: 1, Score: counter.Whole(13)}) {
		b.t.Errorf("Standing = %+v, %v", places[0], err)
	}
	if top, err := b.Store.Top(ctx, board, counter.MaxTop); err != nil || len(top.Places) != 20 {
		b.t.Errorf("Top = %+v, %v", top, err)
	}
	if heats, err := b.Store.Hit(ctx, counter.HotList{Name: long, Window: counter.MaxSliding, Threshold: 1}, items...); err != nil || heats[0].Hits != 13 {
		b.t.Errorf("Hit = %+v, %v", heats, err)
	}
	var spread []counter.Amount
	for i := range counter.MaxValues {
		spread = append(spread, counter.Amount(1)<<(i%52)+counter.Amount(i))
	}
	times := counter.Key{Group: long, Name: long, Window: counter.Second}
	if err := b.Store.Observe(ctx, counter.Sample{Key: times, Values: spread}); err != nil {
		b.t.Error(err)
	}
	if series, err := b.Store.Distributions(ctx, counter.MaxDistributions, times); err != nil || series[0][counter.MaxDistributions-1].Count != counter.MaxValues {
		b.t.Errorf("Distributions = %d, %v", len(series), err)
	}
	day := counter.Key{Name: "h", Window: counter.Second}
	if series, err := b.Store.History(ctx, 3600, day, day); err != nil || len(series[1]) != 3600 {
		b.t.Errorf("History = %d, %v", len(series), err)
	}
}
