package countertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit"
)

// A window ends at exactly its end, and the past stays what it was.
func testWindows(b *table) {
	midnight := noon.Truncate(24 * time.Hour)
	for _, w := range counter.Windows()[1:] {
		end := w.Start(w.Index(weir.MicrosOf(midnight), nil)+1, nil)
		b.at(end.Add(-time.Microsecond))
		k := counter.Key{Name: "w", Window: w}
		b.add(k, "3", "3")
		b.pass(time.Microsecond)
		b.get([]string{"0"}, k)
		b.add(k, "4.5", "4.5")
		points := b.history(3, k, "0", "3", "4.5")
		if !points[2].Start.Equal(end) {
			b.t.Errorf("%v: it begins at %v", w, points[2].Start)
		}
		b.reset([]string{"4.5"}, k)
		b.history(3, k, "0", "3", "0")
		b.pass(-time.Microsecond) // a clock may go back
		b.add(k, "1", "4")
	}
	ever := counter.Key{Name: "w"}
	b.add(ever, "1", "1")
	if points := b.history(1, ever, "1"); !points[0].Start.IsZero() {
		b.t.Errorf("ever begins at %v", points[0].Start)
	}
}

// The same name in another zone is another counter, with other days and hours.
func testZones(b *table) {
	for _, c := range []struct {
		zone string
		day  string // when it is noon in UTC
		hour int    // the minute at which an hour begins, in UTC
	}{
		{"Asia/Shanghai", "2025-08-29T00:00:00+08:00", 0},
		{"Asia/Kolkata", "2025-08-29T00:00:00+05:30", 30},
		{"Asia/Kathmandu", "2025-08-29T00:00:00+05:45", 15},
		{"America/St_Johns", "2025-08-29T00:00:00-02:30", 30},
		{"Pacific/Kiritimati", "2025-08-30T00:00:00+14:00", 0},
		{"Pacific/Pago_Pago", "2025-08-29T00:00:00-11:00", 0},
	} {
		b.at(noon)
		day := counter.Key{Name: "z", Window: counter.Day, Zone: zone(b.t, c.zone)}
		b.add(day, "1", "1")
		if got := b.history(1, day, "1")[0].Start.Format(time.RFC3339); got != c.day {
			b.t.Errorf("in %s the day began at %s, want %s", c.zone, got, c.day)
		}
		hour := counter.Key{Name: "z", Window: counter.Hour, Zone: day.Zone}
		b.at(noon.Add(time.Duration(c.hour)*time.Minute - time.Second))
		b.add(hour, "1", "1")
		b.pass(time.Second)
		b.add(hour, "1", "1")
		if got := b.history(2, hour, "1", "1")[1].Start; !got.Equal(b.now) {
			b.t.Errorf("in %s an hour begins at %v, want %v", c.zone, got, b.now)
		}
	}
	b.get([]string{"0"}, counter.Key{Name: "z", Window: counter.Day})
}

// A day has all hours of its date, be they 23 or 25, and an hour that comes twice is two.
func testClocksAreSet(b *table) {
	berlin := zone(b.t, "Europe/Berlin")
	day, hour := counter.Key{Name: "d", Window: counter.Day, Zone: berlin}, counter.Key{Name: "d", Window: counter.Hour, Zone: berlin}
	for _, c := range []struct {
		day   time.Time
		hours int
	}{
		{time.Date(2025, 3, 30, 0, 0, 0, 0, berlin), 23},
		{time.Date(2025, 10, 26, 0, 0, 0, 0, berlin), 25},
		{time.Date(2025, 10, 27, 0, 0, 0, 0, berlin), 24},
	} {
		b.at(c.day)
		for range c.hours {
			b.addAll([]counter.Key{day, hour}, counter.One)
			b.get([]string{"1"}, hour)
			b.pass(time.Hour)
		}
		b.get([]string{"0"}, day)
		points := b.history(2, day, counter.Whole(int64(c.hours)).String(), "0")
		if !points[0].Start.Equal(c.day) || !points[1].Start.Equal(b.now) {
			b.t.Errorf("the days begin at %v and %v", points[0].Start, points[1].Start)
		}
	}
}

// A month has the days of the calendar, and a year the months, in their zone.
func testMonths(b *table) {
	shanghai, asuncion := zone(b.t, "Asia/Shanghai"), zone(b.t, "America/Asuncion")
	for _, c := range []struct {
		window counter.Window
		zone   *time.Location
		end    string // of one window, and the start of the next
	}{
		{counter.Month, nil, "2024-03-01T00:00:00Z"}, {counter.Month, nil, "2025-03-01T00:00:00Z"}, {counter.Month, nil, "2100-03-01T00:00:00Z"},
		{counter.Month, nil, "2026-01-01T00:00:00Z"}, {counter.Month, shanghai, "2025-10-01T00:00:00+08:00"},
		{counter.Month, asuncion, "2023-10-01T01:00:00-03:00"}, // when the clocks were set forward at midnight
		{counter.Year, nil, "2026-01-01T00:00:00Z"}, {counter.Year, nil, "2025-01-01T00:00:00Z"}, {counter.Year, shanghai, "2026-01-01T00:00:00+08:00"},
	} {
		end := testkit.Must(time.Parse(time.RFC3339, c.end))(b.t)
		k := counter.Key{Name: c.end, Window: c.window, Zone: c.zone}
		b.at(end.Add(-time.Microsecond))
		b.add(k, "2", "2")
		b.at(end)
		b.add(k, "3", "3")
		points := b.history(3, k, "0", "2", "3")
		if got := points[2].Start.Format(time.RFC3339); got != c.end {
			b.t.Errorf("%v begins at %s, want %s", c.window, got, c.end)
		}
		board := counter.Board{Name: c.end, Window: c.window, Zone: c.zone}
		b.score(board, "m", "1", "1")
		b.at(points[1].Start)
		b.get([]string{"2"}, k)
		b.equal("Members", b.top(board, 1).Members, 0)
	}
}

// What is set is what is there then, however often; an addition counts from there.
func testSet(b *table) {
	total, today := counter.Key{Name: "s"}, counter.Key{Group: "g", Name: "s", Window: counter.Day}
	set := func(to string, want ...string) {
		b.t.Helper()
		got, err := b.Store.Set(b.t.Context(), counter.Setting{Key: total, To: amount(b.t, to)}, counter.Setting{Key: today, To: -amount(b.t, to)})
		b.same("Set", got, err, want...)
	}
	set("8999999999999.999999", "0", "0")
	set("8999999999999.999999", "8999999999999.999999", "-8999999999999.999999")
	set("7.5", "8999999999999.999999", "-8999999999999.999999")
	b.add(total, "1", "8.5")
	b.add(today, "1", "-6.5")
	set("0", "8.5", "-6.5")
	set("0", "0", "0")
	set("2", "0", "0")
	b.pass(24 * time.Hour)
	b.get([]string{"2", "0"}, total, today)
	set("3", "2", "0")
	b.history(2, today, "-2", "-3")
	// Of two values for one, the later stays.
	got, err := b.Store.Set(b.t.Context(), counter.Setting{Key: total, To: counter.Whole(5)}, counter.Setting{Key: total, To: counter.Whole(6)})
	b.same("Set", got, err, "3", "5")
	b.get([]string{"6"}, total)
}

// Names are any bytes, and never meet.
func testNames(b *table) {
	b.at(noon)
	names := []string{"a", "a:b", "a{b}", "}", "{", "{}", "}{", "a}", "%7D", "%", "a%3Ab", "\x00", "\xff\xfe", "热搜", " ", "\r\n", "day", ":", "::"}
	var keys []counter.Key
	for _, name := range names {
		keys = append(keys, counter.Key{Name: name}, counter.Key{Name: name, Window: counter.Day}, counter.Key{Name: name, Group: "a"}, counter.Key{Name: "a", Group: name},
			counter.Key{Name: name, Window: counter.Day, Zone: time.FixedZone(name, 3600)})
	}
	seen := map[string]bool{}
	distinct := keys[:0]
	for _, k := range keys {
		text := k.Window.String() + "\x01" + k.Name + "\x01" + k.Group + "\x01" + counter.ZoneName(k.Zone)
		if !seen[text] {
			seen[text] = true
			distinct = append(distinct, k)
		}
	}
	for i, k := range distinct {
		b.add(k, counter.Whole(int64(i+1)).String(), counter.Whole(int64(i+1)).String())
	}
	for i, k := range distinct {
		b.get([]string{counter.Whole(int64(i + 1)).String()}, k)
	}
	for i, name := range names {
		board := counter.Board{Name: name}
		b.score(board, name, counter.Whole(int64(i+1)).String(), counter.Whole(int64(i+1)).String())
		b.score(counter.Board{Name: name, Sliding: time.Minute}, name, "1", "1")
		b.hit(counter.HotList{Name: name, Window: time.Minute, Threshold: 1}, name)
	}
	for i, name := range names {
		b.top(counter.Board{Name: name}, 10, name, counter.Whole(int64(i+1)).String())
		b.top(counter.Board{Name: name, Sliding: time.Minute}, 10, name, "1")
		list := counter.HotList{Name: name, Window: time.Minute, Threshold: 1}
		b.hot(list, name)
		b.events(list, 0, "+"+name)
	}
}

// What a store keeps is listed with all that a call needs to read it, sequences apart.
func testListed(b *table) {
	ctx := b.t.Context()
	list := func(n int) counter.Names {
		b.t.Helper()
		return testkit.Must(b.Store.Names(ctx, n))(b.t)
	}
	b.equal("Names of an empty store", list(counter.MaxBatch), counter.Names{All: []counter.Named{}})
	shanghai := testkit.Must(time.LoadLocation("Asia/Shanghai"))(b.t)
	b.add(counter.Key{Name: "views"}, "1", "1")
	b.add(counter.Key{Name: "a:b{c}%7D\xff", Group: "g:|{", Window: counter.Day, Zone: shanghai}, "1", "1")
	testkit.Must(b.Store.Add(ctx, counter.Delta{Key: counter.Key{Name: "users", Window: counter.Month, Distinct: true}, Members: []string{"alice"}}))(b.t)
	if err := b.Store.Observe(ctx, counter.Sample{Key: counter.Key{Name: "ms", Group: "g", Window: counter.Hour}, Values: []counter.Amount{counter.One}}); err != nil {
		b.t.Fatal(err)
	}
	b.score(counter.Board{Name: "*?[songs]", Window: counter.Day}, "x", "1", "1")
	b.score(counter.Board{Name: "songs", Sliding: time.Minute}, "x", "1", "1")
	testkit.Must(b.Store.Hit(ctx, counter.HotList{Name: "goods", Window: time.Hour, Threshold: 3, Cool: 2}, "lamp"))(b.t)
	testkit.Must(b.Store.NextID(ctx, "orders"))(b.t)
	want := []counter.Named{
		{Kind: counter.KindBoard, Name: "*?[songs]", Window: counter.Day, Zone: "UTC"},
		{Kind: counter.KindBoard, Name: "songs", Span: time.Minute},
		{Kind: counter.KindCounter, Name: "a:b{c}%7D\xff", Group: "g:|{", Window: counter.Day, Zone: "Asia/Shanghai"},
		{Kind: counter.KindCounter, Name: "views", Zone: "UTC"},
		{Kind: counter.KindDistinct, Name: "users", Window: counter.Month, Zone: "UTC"},
		{Kind: counter.KindDistribution, Name: "ms", Group: "g", Window: counter.Hour, Zone: "UTC"},
		{Kind: counter.KindHot, Name: "goods", Span: time.Hour, Threshold: 3, Cool: 2},
	}
	b.equal("Names", list(counter.MaxBatch), counter.Names{All: want})
	b.equal("Names, as many as there are", list(len(want)), counter.Names{All: want})
	if few := list(3); len(few.All) != 3 || !few.More {
		b.t.Errorf("three of them are %+v", few)
	}
	for _, n := range []int{0, -1, counter.MaxBatch + 1} {
		if _, err := b.Store.Names(ctx, n); err == nil {
			b.t.Errorf("%d names were listed", n)
		}
	}
}

// What would leave the range is rejected as a whole; up to it, all is exact.
func testRange(b *table) {
	k := counter.Key{Name: "r"}
	b.add(k, "8999999999999.000001", "8999999999999.000001")
	b.add(k, "0.000001", "8999999999999.000002")
	other := counter.Key{Name: "other"}
	rejected := func(err error) {
		b.t.Helper()
		if !errors.Is(err, counter.ErrRange) {
			b.t.Errorf("%v, want ErrRange", err)
		}
	}
	rejected(testkit.Err(b.Store.Add(b.t.Context(), counter.Delta{Key: other, By: counter.One}, counter.Delta{Key: k, By: counter.Whole(2)})))
	// Neither of two may, which alone would do.
	rejected(testkit.Err(b.Store.Add(b.t.Context(), counter.Delta{Key: other, By: counter.Whole(-5e12)}, counter.Delta{Key: other, By: counter.Whole(-5e12)})))
	b.get([]string{"8999999999999.000002", "0"}, k, other)
	b.add(k, "-9000000000000", "-0.999998")

	board := counter.Board{Name: "r"}
	b.score(board, "a", "9007199254.740991", "9007199254.740991")
	b.score(board, "b", "-9007199254.740991", "-9007199254.740991")
	b.score(board, "c", "9007199254.74099", "9007199254.74099")
	rejected(testkit.Err(b.Store.Score(b.t.Context(), board, counter.Mark{Member: "d", By: counter.One}, counter.Mark{Member: "b", By: -1})))
	b.top(board, 10, "a", "9007199254.740991", "c", "9007199254.74099", "b", "-9007199254.740991")
	sliding := counter.Board{Name: "r", Sliding: time.Minute}
	b.score(sliding, "a", "9007199254.740991", "9007199254.740991")
	rejected(testkit.Err(b.Store.Score(b.t.Context(), sliding, counter.Mark{Member: "a", By: 1})))
}

// What is older than is kept cannot be read, and does not stay; what is not is not lost.
func testRetention(b *table) {
	t := b.t
	k := counter.Key{Name: "k", Window: counter.Minute}
	for range 100 {
		b.add(k, "2", "2")
		b.history(1, k, "2")
		b.pass(time.Minute)
	}
	b.history(3, k, "2", "2", "0")
	if _, err := b.Store.History(t.Context(), 4, k); err == nil {
		t.Error("more can be read than is kept")
	}
}

// Numbers grow, with the clock and without it, backwards too.
func testIDs(b *table) {
	last := int64(0)
	for i, step := range []time.Duration{0, 0, 1, -time.Hour, 0, time.Hour, 48 * time.Hour, -time.Minute} {
		b.pass(step)
		id, err := b.Store.NextID(b.t.Context(), "s")
		if err != nil || id <= last {
			b.t.Fatalf("%d: after %d comes %d, %v", i, last, id, err)
		}
		last = id
	}
	other, err := b.Store.NextID(b.t.Context(), "other")
	if err != nil || other != b.now.UnixMicro() {
		b.t.Errorf("another sequence begins with %d, %v", other, err)
	}
}

// A user's actions are counted by the hour and by the day of a zone.
func testActions(b *table) {
	t := b.t
	actions := counter.Actions{Store: b.Store, Zone: zone(t, "Asia/Shanghai")}
	record := func(user string, names ...string) []counter.Tally {
		t.Helper()
		return testkit.Must(actions.Record(t.Context(), user, names...))(t)
	}
	b.equal("Record", record("1001", "like", "share", "like"), []counter.Tally{{Action: "like", Hour: 1, Day: 1}, {Action: "share", Hour: 1, Day: 1}, {Action: "like", Hour: 2, Day: 2}})
	b.pass(time.Hour)
	b.equal("Record", record("1001", "like"), []counter.Tally{{Action: "like", Hour: 1, Day: 3}})
	b.equal("Record", record("1002", "like"), []counter.Tally{{Action: "like", Hour: 1, Day: 1}})
	b.pass(3 * time.Hour) // midnight in Shanghai
	b.equal("Record", record("1001", "like"), []counter.Tally{{Action: "like", Hour: 1, Day: 1}})
	got := testkit.Must(actions.Read(t.Context(), "1001", "share", "like", "never"))(t)
	b.equal("Read", got, []counter.Tally{{Action: "share", Hour: 0, Day: 0}, {Action: "like", Hour: 1, Day: 1}, {Action: "never", Hour: 0, Day: 0}})
	tracks := testkit.Must(actions.History(t.Context(), "1001", counter.Day, 3, "like", "share"))(t)
	for i, want := range []string{"0 3 1", "0 1 0"} {
		p := tracks[i].Points
		if got := fmt.Sprint(p[0].Amount, p[1].Amount, p[2].Amount); got != want || !p[2].Start.Equal(b.now) {
			t.Errorf("%s: %s since %v", tracks[i].Action, got, p[2].Start)
		}
	}
	b.get([]string{"1"}, counter.Key{Group: "user:1001", Name: "like", Window: counter.Day, Zone: actions.Zone})
	for _, bad := range []error{
		testkit.Err(actions.Record(t.Context(), "", "like")), testkit.Err(actions.Record(t.Context(), "u")), testkit.Err(actions.Read(t.Context(), "u", "")),
		testkit.Err(actions.Read(t.Context(), string(make([]byte, 252)), "like")), testkit.Err(actions.History(t.Context(), "u", counter.Minute, 1, "like")),
		testkit.Err(actions.History(t.Context(), "u", counter.Day, 367, "like")), testkit.Err(actions.Record(t.Context(), "u", make([]string, 129)...)),
	} {
		if invalid := (*weir.InvalidError)(nil); !errors.As(bad, &invalid) {
			t.Errorf("%v is no InvalidError", bad)
		}
	}
}
