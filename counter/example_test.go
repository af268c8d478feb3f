package counter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/counter/memory"
)

// friday is a fixed clock, so that the examples always print the same.
func friday() weir.Micros {
	return weir.MicrosOf(time.Date(2025, 8, 29, 15, 0, 30, 0, time.UTC))
}

func Example() {
	ctx := context.Background()
	store := memory.New(memory.Options{})

	visits := counter.Key{Name: "visits"}
	today := counter.Key{Name: "visits", Window: counter.Day}
	for range 3 {
		if _, err := store.Add(ctx, counter.Delta{Key: visits, By: counter.One}, counter.Delta{Key: today, By: counter.One}); err != nil {
			panic(err)
		}
	}
	amounts, err := store.Get(ctx, visits, today, counter.Key{Name: "downloads"})
	if err != nil {
		panic(err)
	}
	fmt.Println(amounts)
	// Output: [3 3 0]
}

// Fractions are exact, amounts may be negative, and a reset loses nothing.
func Example_reset() {
	ctx := context.Background()
	store := memory.New(memory.Options{})
	sales := counter.Key{Name: "sales"}
	for _, price := range []string{"19.99", "0.01", "-5"} {
		by, err := counter.ParseAmount(price)
		if err != nil {
			panic(err)
		}
		if _, err := store.Add(ctx, counter.Delta{Key: sales, By: by}); err != nil {
			panic(err)
		}
	}
	had, err := store.Reset(ctx, sales)
	if err != nil {
		panic(err)
	}
	left, err := store.Get(ctx, sales)
	if err != nil {
		panic(err)
	}
	fmt.Println(had[0], left[0])
	// Output: 15 0
}

// A repeated Set changes nothing, and an addition counts from the new value.
func Example_set() {
	ctx := context.Background()
	store := memory.New(memory.Options{})
	stock := counter.Key{Name: "stock"}
	for range 2 {
		if _, err := store.Set(ctx, counter.Setting{Key: stock, To: counter.Whole(120)}); err != nil {
			panic(err)
		}
	}
	left, err := store.Add(ctx, counter.Delta{Key: stock, By: -counter.One})
	if err != nil {
		panic(err)
	}
	fmt.Println(left[0])
	// Output: 119
}

// Percentiles of the last minutes, and of all of them together.
func Example_distribution() {
	ctx := context.Background()
	now := friday()
	store := memory.New(memory.Options{Clock: func() weir.Micros { return now }})
	checkout := counter.Key{Name: "checkout_ms", Window: counter.Minute}
	for minute := range 3 {
		var times []counter.Amount
		for i := range 100 {
			times = append(times, counter.Whole(int64(10+i+50*minute)))
		}
		if err := store.Observe(ctx, counter.Sample{Key: checkout, Values: times}); err != nil {
			panic(err)
		}
		if minute < 2 {
			now += weir.Micros(time.Minute.Microseconds())
		}
	}
	series, err := store.Distributions(ctx, 3, checkout)
	if err != nil {
		panic(err)
	}
	var all counter.Distribution
	for _, point := range series[0] {
		fmt.Println(point.Start.Format("15:04"), point.Count, point.Quantile(0.5).Round(), point.Quantile(0.99).Round())
		all.Merge(&point.Distribution)
	}
	fmt.Println("all", all.Count, all.Quantile(0.95).Round(), all.Max)
	// Output:
	// 15:00 100 59 108
	// 15:01 100 108 157
	// 15:02 100 157 208
	// all 300 195 209
}

// A member counts once in each window.
func Example_distinct() {
	ctx := context.Background()
	now := friday()
	store := memory.New(memory.Options{Clock: func() weir.Micros { return now }})
	daily := counter.Key{Name: "active_users", Window: counter.Day, Distinct: true}
	monthly := counter.Key{Name: "active_users", Window: counter.Month, Distinct: true}
	for _, user := range []string{"alice", "bob", "alice"} {
		members := []string{user}
		if _, err := store.Add(ctx, counter.Delta{Key: daily, Members: members}, counter.Delta{Key: monthly, Members: members}); err != nil {
			panic(err)
		}
		now += weir.Micros((24 * time.Hour).Microseconds()) // the third day is in August, too
	}
	series, err := store.History(ctx, 4, daily)
	if err != nil {
		panic(err)
	}
	months, err := store.History(ctx, 2, monthly)
	if err != nil {
		panic(err)
	}
	fmt.Println(series[0][0].Amount, series[0][1].Amount, series[0][2].Amount, months[0][0].Amount)
	// Output: 1 1 1 2
}

// Days begin and end in the time zone of the users.
func Example_history() {
	ctx := context.Background()
	now := friday()
	store := memory.New(memory.Options{Clock: func() weir.Micros { return now }})
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		panic(err)
	}
	orders := counter.Key{Name: "orders", Window: counter.Day, Zone: shanghai}
	for day := range int64(3) {
		if _, err := store.Add(ctx, counter.Delta{Key: orders, By: counter.Whole(10 + day)}); err != nil {
			panic(err)
		}
		if day < 2 {
			now += weir.Micros((24 * time.Hour).Microseconds())
		}
	}
	series, err := store.History(ctx, 3, orders)
	if err != nil {
		panic(err)
	}
	for _, point := range series[0] {
		fmt.Println(point.Start.Format("2006-01-02 MST"), point.Amount)
	}
	// Output:
	// 2025-08-29 CST 10
	// 2025-08-30 CST 11
	// 2025-08-31 CST 12
}

func Example_id() {
	ctx := context.Background()
	store := memory.New(memory.Options{Clock: friday})
	for range 3 {
		id, err := store.NextID(ctx, "orders")
		if err != nil {
			panic(err)
		}
		fmt.Println(id)
	}
	// Output:
	// 1756479630000000
	// 1756479630000001
	// 1756479630000002
}

func Example_leaderboard() {
	ctx := context.Background()
	store := memory.New(memory.Options{Clock: friday})
	searches := counter.Board{Name: "searches", Window: counter.Day}
	for _, word := range []string{"redis", "go", "redis", "lua", "redis", "go"} {
		if _, err := store.Score(ctx, searches, counter.Mark{Member: word, By: counter.One}); err != nil {
			panic(err)
		}
	}
	top, err := store.Top(ctx, searches, 2)
	if err != nil {
		panic(err)
	}
	for _, place := range top.Places {
		fmt.Println(place.Rank, place.Member, place.Score)
	}
	places, err := store.Standing(ctx, searches, "lua", "perl")
	if err != nil {
		panic(err)
	}
	fmt.Println(places[0].Rank, places[1].Rank)
	// Output:
	// 1 redis 3
	// 2 go 2
	// 3 0
}

// A leaderboard of the last hour slides with the clock.
func Example_slidingBoard() {
	ctx := context.Background()
	now := friday()
	store := memory.New(memory.Options{Clock: func() weir.Micros { return now }})
	searches := counter.Board{Name: "searches", Sliding: time.Hour}
	for _, word := range []string{"redis", "redis", "go"} {
		if _, err := store.Score(ctx, searches, counter.Mark{Member: word, By: counter.One}); err != nil {
			panic(err)
		}
		now += weir.Micros((40 * time.Minute).Microseconds())
	}
	top, err := store.Top(ctx, searches, 10)
	if err != nil {
		panic(err)
	}
	fmt.Println(top.Places)
	// Output: [{go 1 1}]
}

func Example_hotItems() {
	ctx := context.Background()
	now := friday()
	store := memory.New(memory.Options{Clock: func() weir.Micros { return now }})
	products := counter.HotList{Name: "products", Window: time.Hour, Threshold: 3}
	for range 4 {
		heats, err := store.Hit(ctx, products, "10001")
		if err != nil {
			panic(err)
		}
		fmt.Println(heats[0].Hits, heats[0].Hot, heats[0].Turned)
	}

	now += weir.Micros((2 * time.Hour).Microseconds())
	news, err := store.Events(ctx, products, 0)
	if err != nil {
		panic(err)
	}
	for _, event := range news.Events {
		fmt.Println(event.Item, event.Hot, event.At.Format(time.TimeOnly))
	}
	// Output:
	// 1 false false
	// 2 false false
	// 3 true true
	// 4 true false
	// 10001 true 15:00:30
	// 10001 false 17:00:30
}

func ExampleWatch() {
	ctx, cancel := context.WithCancel(context.Background())
	store := memory.New(memory.Options{})
	products := counter.HotList{Name: "products", Window: time.Hour, Threshold: 1}
	if _, err := store.Hit(ctx, products, "10001"); err != nil {
		panic(err)
	}

	const all = 1 // an ID below every event, so that Watch delivers all events; without After, it delivers only new ones
	err := counter.Watch(ctx, store, products, counter.WatchOptions{After: all}, func(event counter.Event) {
		fmt.Println(event.Item, event.Hot)
		cancel() // a real program would continue
	})
	fmt.Println(err)
	// Output:
	// 10001 true
	// context canceled
}

func ExampleActions() {
	ctx := context.Background()
	actions := counter.Actions{Store: memory.New(memory.Options{Clock: friday})}
	for range 3 {
		if _, err := actions.Record(ctx, "1001", "like"); err != nil {
			panic(err)
		}
	}
	if _, err := actions.Record(ctx, "1001", "like", "comment"); err != nil {
		panic(err)
	}
	tallies, err := actions.Read(ctx, "1001", "like", "comment", "share")
	if err != nil {
		panic(err)
	}
	for _, tally := range tallies {
		fmt.Println(tally.Action, tally.Hour, tally.Day)
	}
	tracks, err := actions.History(ctx, "1001", counter.Day, 7, "like")
	if err != nil {
		panic(err)
	}
	fmt.Println(len(tracks[0].Points), tracks[0].Points[6].Amount)
	// Output:
	// like 4 4
	// comment 1 1
	// share 0 0
	// 7 4
}
