package countertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit"
)

// INCR and EXPIRE on a key for each minute.
func recipeFixedWindow(b *table) {
	requests := counter.Key{Name: "rate_limit:user1001", Window: counter.Minute}
	b.at(time.Date(2025, 8, 29, 15, 0, 30, 0, time.UTC))
	for n := range 101 {
		b.add(requests, "1", fmt.Sprint(n+1))
	}
	b.at(time.Date(2025, 8, 29, 15, 1, 0, 0, time.UTC))
	b.add(requests, "1", "1")
}

// A count by the minute and one by the hour, both at once.
func recipeUserLimits(b *table) {
	minute := counter.Key{Group: "1001", Name: "post", Window: counter.Minute}
	hour := counter.Key{Group: "1001", Name: "post", Window: counter.Hour}
	for n := range 4 {
		got, err := b.Store.Add(b.t.Context(), counter.Delta{Key: minute, By: counter.One}, counter.Delta{Key: hour, By: counter.One})
		b.same("Add", got, err, fmt.Sprint(n+1), fmt.Sprint(n+1))
	}
	b.pass(time.Minute)
	b.get([]string{"0", "4"}, minute, hour)
}

// INCR global:id:generator, and one counter for three servers.
func recipeDistributed(b *table) {
	last := int64(0)
	for range 3 {
		id, err := b.Store.NextID(b.t.Context(), "global:id:generator")
		if err != nil || id <= last {
			b.t.Fatalf("after %d comes %d, %v", last, id, err)
		}
		last = id
	}
	calls := counter.Key{Name: "global:stats:api_calls"}
	for n := range 3 {
		b.add(calls, "1", fmt.Sprint(n+1))
	}
	b.get([]string{"3"}, calls)
}

// Counters by business, and by the hour.
func recipeBusiness(b *table) {
	keys := []counter.Key{{Name: "business:orders:count"}, {Name: "business:payments:count"}, {Name: "business:users:count"}}
	got, err := b.Store.Add(b.t.Context(), counter.Delta{Key: keys[0], By: counter.One}, counter.Delta{Key: keys[1], By: counter.One}, counter.Delta{Key: keys[0], By: counter.One})
	b.same("Add", got, err, "1", "1", "2")
	b.get([]string{"2", "1", "0"}, keys...)
	hourly := counter.Key{Name: "distributed:api_calls", Window: counter.Hour}
	b.add(hourly, "1547", "1547")
	b.pass(time.Hour)
	b.add(hourly, "1", "1")
	b.history(2, hourly, "1547", "1")
}

// INCR, INCRBY, INCRBYFLOAT, DECR and DECRBY.
func recipeIncr(b *table) {
	b.add(counter.Key{Name: "page_views"}, "1", "1")
	score := counter.Key{Name: "score"}
	b.add(score, "10", "10")
	b.add(score, "15", "25")
	temperature := counter.Key{Name: "temperature"}
	b.add(temperature, "0.5", "0.5")
	b.add(temperature, "1.2", "1.7")
	remaining := counter.Key{Name: "remaining"}
	b.add(remaining, "100", "100")
	b.add(remaining, "-1", "99")
	b.add(remaining, "-10", "89")
	tenths := counter.Key{Name: "tenths"} // which are not exact as floats
	for n := range 10 {
		b.add(tenths, "0.1", []string{"0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"}[n])
	}
}

// Visits in all, by the day, by the hour, by the page and by the user, in one call.
func recipeVisits(b *table) {
	total := counter.Key{Name: "site:total_visits"}
	daily, hourly := counter.Key{Name: "site:visits", Window: counter.Day}, counter.Key{Name: "site:visits", Window: counter.Hour}
	page := counter.Key{Name: "page:visits:/homepage"}
	user := counter.Key{Name: "user:visits:1001", Window: counter.Day}
	keys := []counter.Key{total, daily, hourly, page, user}
	b.addAll(keys, counter.One)
	b.addAll(keys, counter.One)
	b.get([]string{"2", "2", "2", "2", "2"}, keys...)
	b.pass(time.Hour)
	b.addAll(keys, counter.One)
	b.get([]string{"3", "3", "1", "3", "3"}, keys...)
	b.pass(24 * time.Hour)
	b.get([]string{"3", "0", "0", "3", "0"}, keys...)
	b.history(2, daily, "3", "0")
}

// Likes, comments, posts and downloads of a user on a day, and all of them in one read.
func recipeOperations(b *table) {
	actions := counter.Actions{Store: b.Store}
	for action, n := range map[string]int{"likes": 15, "comments": 8, "posts": 3, "downloads": 12} {
		for i := range n {
			got, err := actions.Record(b.t.Context(), "1001", action)
			if err != nil || got[0].Day != int64(i+1) {
				b.t.Fatalf("Record = %+v, %v", got, err)
			}
		}
	}
	got := testkit.Must(actions.Read(b.t.Context(), "1001", "likes", "comments", "posts", "downloads"))(b.t)
	b.equal("Read", got, []counter.Tally{{Action: "likes", Hour: 15, Day: 15}, {Action: "comments", Hour: 8, Day: 8}, {Action: "posts", Hour: 3, Day: 3}, {Action: "downloads", Hour: 12, Day: 12}})
}

// Counters that begin again by themselves, and GETSET counter 0.
func recipeReset(b *table) {
	b.at(time.Date(2025, 8, 29, 23, 59, 59, 0, time.UTC))
	keys := []counter.Key{{Name: "c", Window: counter.Day}, {Name: "c", Window: counter.Hour}, {Name: "c", Window: counter.Minute}}
	for _, k := range keys {
		b.add(k, "7", "7")
	}
	b.get([]string{"7", "7", "7"}, keys...)
	b.pass(time.Second)
	b.get([]string{"0", "0", "0"}, keys...)

	sales := counter.Key{Name: "sales"}
	b.add(sales, "1999.99", "1999.99")
	b.reset([]string{"1999.99"}, sales)
	b.reset([]string{"0"}, sales)
	b.add(sales, "5", "5")
}

// ZADD and ZREMRANGEBYSCORE of an hour's accesses, against 1000.
func recipeHotProduct(b *table) {
	products := counter.HotList{Name: "hot:product", Window: time.Hour, Threshold: 1000}
	b.hit(products, "10002")
	for n := range 1000 {
		heat := b.hit(products, "10001")
		if heat.Hits != int64(n+1) || heat.Hot != (n+1 >= 1000) || heat.Turned != (n+1 == 1000) {
			b.t.Fatalf("after %d hits: %+v", n+1, heat)
		}
		b.pass(3 * time.Millisecond)
	}
	b.hot(products, "10001")
	b.events(products, 0, "+10001")
	b.pass(time.Hour + time.Hour/counter.Steps)
	b.hot(products)
	b.events(products, 0, "+10001", "-10001")
}

// ZINCRBY, ZREVRANGE WITHSCORES and ZSCORE on today's searches.
func recipeHotSearch(b *table) {
	today := counter.Board{Name: "hot_search", Window: counter.Day, Zone: zone(b.t, "Asia/Shanghai")}
	for _, s := range []struct {
		word string
		n    int64
	}{{"JavaScript基础", 98}, {"Redis教程", 156}, {"Python爬虫", 142}} {
		testkit.Must(b.Store.Score(b.t.Context(), today, counter.Mark{Member: s.word, By: counter.Whole(s.n)}))(b.t)
	}
	b.top(today, 10, "Redis教程", "156", "Python爬虫", "142", "JavaScript基础", "98")
	b.standing(today, "Redis教程", 1, "156")
	b.standing(today, "JavaScript基础", 3, "98")
	b.pass(4 * time.Hour) // midnight in Shanghai
	b.top(today, 10)
	yesterday := today
	yesterday.Ago = 1
	b.top(yesterday, 1, "Redis教程", "156")
}

// Likes, comments and shares of a user in an hour, kept for a day.
func recipeBehaviour(b *table) {
	actions := counter.Actions{Store: b.Store}
	for action, n := range map[string]int{"like": 25, "comment": 8, "share": 3} {
		for range n {
			testkit.Must(actions.Record(b.t.Context(), "1001", action))(b.t)
		}
	}
	b.pass(time.Hour)
	tracks := testkit.Must(actions.History(b.t.Context(), "1001", counter.Hour, 24, "like", "comment", "share"))(b.t)
	for i, want := range []counter.Amount{25, 8, 3} {
		points := tracks[i].Points
		if len(points) != 24 || points[22].Amount != want*counter.One || points[23].Amount != 0 || !points[23].Start.Equal(b.now) {
			b.t.Errorf("%s: %+v", tracks[i].Action, points)
		}
	}
}

// Requests, errors and response times by the second, for five minutes.
func recipeLive(b *table) {
	requests, errors, took := counter.Key{Name: "metrics:qps", Window: counter.Second}, counter.Key{Name: "metrics:errors", Window: counter.Second},
		counter.Key{Name: "metrics:response_ms", Window: counter.Second}
	b.add(requests, "850", "850")
	b.add(errors, "5", "5")
	b.add(took, "1700.5", "1700.5")
	b.get([]string{"850", "5", "1700.5"}, requests, errors, took)
	b.pass(299 * time.Second)
	b.get([]string{"0"}, requests)
	if points := b.history(300, requests, append([]string{"850"}, slices.Repeat([]string{"0"}, 299)...)...); !points[0].Start.Equal(noon) {
		b.t.Errorf("it begins at %v", points[0].Start)
	}
}

// Seconds for an hour, minutes for a day, hours for thirty days, days for a year; and
// what is counted in all four adds up.
func recipeRetention(b *table) {
	var keys []counter.Key
	for _, w := range []counter.Window{counter.Second, counter.Minute, counter.Hour, counter.Day} {
		keys = append(keys, counter.Key{Group: "metrics", Name: "requests", Window: w})
	}
	sum := func(n int, k counter.Key) string {
		b.t.Helper()
		series := testkit.Must(b.Store.History(b.t.Context(), n, k))(b.t)
		total := counter.Amount(0)
		for _, p := range series[0] {
			total += p.Amount
		}
		return total.String()
	}
	for i := range 60 {
		b.addAll(keys, counter.Whole(int64(i)))
		if i < 59 {
			b.pass(time.Second)
		}
	}
	for i, n := range []int{3600, 1440, 720, 366} {
		if got := sum(n, keys[i]); got != "1770" {
			b.t.Errorf("by %v it is %s", keys[i].Window, got)
		}
		if _, err := b.Store.History(b.t.Context(), n+1, keys[i]); err == nil {
			b.t.Errorf("%d windows by %v can be read", n+1, keys[i].Window)
		}
	}
	b.pass(time.Hour) // all but the last second are an hour old
	for i, want := range []string{"0", "1770", "1770", "1770"} {
		if got := sum([]int{3600, 1440, 720, 366}[i], keys[i]); got != want {
			b.t.Errorf("an hour later, by %v it is %s", keys[i].Window, got)
		}
	}
}

// A hash of sub-counts that are summed.
func recipeSubCounts(b *table) {
	list := counter.HotList{Name: "ratelimit:counter:user1001", Window: time.Minute, Threshold: 100}
	for range 60 {
		b.hit(list, "api")
		b.pass(time.Second)
	}
	b.equal("Hits", b.hit(list, "api").Hits, int64(61))
	b.pass(30 * time.Second)
	if heat := b.hit(list, "api"); heat.Hits < 31 || heat.Hits > 35 {
		b.t.Errorf("half a minute later: %+v", heat)
	}
}
