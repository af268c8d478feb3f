package redis

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	countermemory "github.com/weirhq/weir/counter/memory"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// pair is the same store twice.
type pair struct {
	rt            *rapid.T
	ctx           testing.TB
	memory, redis counter.Store
	last          int64 // event
	calls         map[string]int
}

// same asks both, and wants one answer.
func same[T any](p *pair, what string, ask func(counter.Store) (T, error)) T {
	p.rt.Helper()
	got, gotErr := ask(p.redis)
	want, wantErr := ask(p.memory)
	if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
		p.rt.Fatalf("%s\n redis %+v, %v\nmemory %+v, %v", what, got, gotErr, want, wantErr)
	}
	if gotErr == nil {
		p.calls[what]++
	}
	return got
}

// Long random histories have the same answers in memory and in Redis, to the last
// millionth and event.
func TestDifferential(t *testing.T) {
	client := clientOf(t, testredis.Start(t))
	calls := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		if err := client.Do(t.Context(), client.B().Flushall().Build()).Error(); err != nil {
			t.Fatal(err)
		}
		members := rapid.IntRange(1, 12).Draw(rt, "MaxMembers")
		kept := counter.Retention{Seconds: 5, Minutes: 3, Hours: 4, Days: 10, Months: 10, Years: 10}
		var clock fake
		p := &pair{rt: rt, ctx: t, calls: calls,
			memory: countermemory.New(countermemory.Options{MaxMembers: members, Retention: kept, Clock: clock.Now}),
			redis:  storeOn(t, client, Options{MaxMembers: members, Retention: kept, Clock: clock.Now}),
		}
		now := rapid.SampledFrom([]time.Time{
			time.Date(2025, 3, 29, 23, 59, 50, 0, time.UTC), // Berlin sets its clocks an hour later
			time.Date(2023, 12, 31, 15, 59, 50, 0, time.UTC),
			time.Date(2024, 2, 28, 23, 59, 50, 0, time.UTC),
		}).Draw(rt, "begin")
		latest := now
		for range rapid.IntRange(20, 120).Draw(rt, "steps") {
			now = now.Add(leaps.Draw(rt, "leap"))
			if back := latest.Add(-10 * time.Second); now.Before(back) {
				now = back // who has forgotten what was long over could not know better
			}
			if now.After(latest) {
				latest = now
			}
			clock.Set(weir.MicrosOf(now))
			p.step()
		}
	})
	for _, what := range []string{"Add", "Get", "Set", "Reset", "History", "NextID", "Observe", "Distributions", "Score", "Top", "Standing", "Hit", "Hot", "Events"} {
		if calls[what] < 20 {
			t.Errorf("%s was asked %d times, which shows little", what, calls[what])
		}
	}
}

// leaps of the clock: often none, seldom far, sometimes back. What has no window is
// forgotten after a year, by Redis's own clock.
var leaps = rapid.OneOf(
	rapid.Just(time.Duration(0)),
	rapid.Just(time.Microsecond),
	rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(0, 5e6).Draw(t, "µs")) * time.Microsecond
	}),
	rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(-20, 90).Draw(t, "s")) * time.Second
	}),
	rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.IntRange(0, 30).Draw(t, "h")) * time.Hour }),
)

var (
	names   = rapid.SampledFrom([]string{"a", "b", "{a}", "a:b"})
	members = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "\xff", "{", " ", "1"})
	zones   = rapid.Custom(func(t *rapid.T) *time.Location {
		zone, err := time.LoadLocation(rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe"}).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		return zone
	})
	windows = rapid.SampledFrom(counter.Windows())
	amounts = rapid.OneOf(
		rapid.Custom(func(t *rapid.T) counter.Amount { return counter.Whole(rapid.Int64Range(-3, 5).Draw(t, "units")) }),
		rapid.Custom(func(t *rapid.T) counter.Amount {
			return counter.Amount(rapid.Int64Range(-2e6, 2e6).Draw(t, "millionths"))
		}),
		rapid.SampledFrom([]counter.Amount{counter.MaxAmount, -counter.MaxAmount, counter.MaxScore, -counter.MaxScore, counter.MaxAmount - 512, 1}),
	)
	keys = rapid.Custom(func(t *rapid.T) counter.Key {
		return counter.Key{
			Name: names.Draw(t, "name"), Group: rapid.SampledFrom([]string{"", "", "a"}).Draw(t, "group"),
			Window: windows.Draw(t, "window"), Zone: zones.Draw(t, "zone"), Distinct: rapid.IntRange(0, 3).Draw(t, "distinct") == 0,
		}
	})
	boards = rapid.Custom(func(t *rapid.T) counter.Board {
		if rapid.Bool().Draw(t, "sliding") {
			return counter.Board{Name: "b", Sliding: rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 20 * time.Hour}).Draw(t, "span")}
		}
		return counter.Board{Name: "b", Window: windows.Draw(t, "window"), Zone: zones.Draw(t, "zone")}
	})
	hotLists = rapid.Custom(func(t *rapid.T) counter.HotList {
		threshold := rapid.SampledFrom([]int64{3, 3, 3, 2}).Draw(t, "threshold")
		return counter.HotList{
			Name: "h", Window: rapid.SampledFrom([]time.Duration{time.Minute, 20 * time.Hour}).Draw(t, "span"),
			Threshold: threshold, Cool: rapid.SampledFrom([]int64{0, 0, 0, threshold - 1}).Draw(t, "cool"),
		}
	})
)

func (p *pair) step() {
	ctx, rt := p.ctx.Context(), p.rt
	several := func(most int) int { return rapid.IntRange(1, most).Draw(rt, "n") }
	switch rapid.IntRange(0, 15).Draw(rt, "call") {
	case 0, 1:
		deltas := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) counter.Delta {
			k := keys.Draw(t, "key")
			if k.Distinct {
				return counter.Delta{Key: k, Members: rapid.SliceOfN(members, 1, 3).Draw(t, "members")}
			}
			return counter.Delta{Key: k, By: amounts.Draw(t, "by")}
		}), 1, 5).Draw(rt, "deltas")
		same(p, "Add", func(s counter.Store) ([]counter.Amount, error) { return s.Add(ctx, deltas...) })
	case 2:
		all := rapid.SliceOfN(keys, 1, 8).Draw(rt, "keys")
		same(p, "Get", func(s counter.Store) ([]counter.Amount, error) { return s.Get(ctx, all...) })
	case 3:
		all := rapid.SliceOfN(keys, 1, 2).Draw(rt, "keys")
		same(p, "Reset", func(s counter.Store) ([]counter.Amount, error) { return s.Reset(ctx, all...) })
	case 13:
		settings := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) counter.Setting {
			return counter.Setting{Key: keys.Draw(t, "key"), To: rapid.OneOf(amounts, rapid.Just(counter.Amount(0))).Draw(t, "to")}
		}), 1, 3).Draw(rt, "settings")
		same(p, "Set", func(s counter.Store) ([]counter.Amount, error) { return s.Set(ctx, settings...) })
	case 14, 15:
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) counter.Sample {
			key := keys.Draw(t, "key")
			key.Distinct = false
			values := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) counter.Amount { return max(amounts.Draw(t, "value"), 0) }), 1, 4)
			return counter.Sample{Key: key, Values: values.Draw(t, "values")}
		}), 1, 3).Draw(rt, "samples")
		same(p, "Observe", func(s counter.Store) (bool, error) { return true, s.Observe(ctx, all...) })
		n := 1
		if all[0].Key.Window != counter.Ever {
			n = several(3)
		}
		same(p, "Distributions", func(s counter.Store) ([][]counter.DistributionPoint, error) {
			return s.Distributions(ctx, n, all[0].Key)
		})
	case 4:
		key, n := keys.Draw(rt, "key"), several(10)
		same(p, "History", func(s counter.Store) ([][]counter.Point, error) { return s.History(ctx, n, key) })
	case 5:
		name := names.Draw(rt, "sequence")
		same(p, "NextID", func(s counter.Store) (int64, error) { return s.NextID(ctx, name) })
	case 6, 7:
		board := boards.Draw(rt, "board")
		marks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) counter.Mark {
			m := counter.Mark{Member: members.Draw(t, "member"), By: amounts.Draw(t, "by")}
			if board.Sliding != 0 && m.By < 0 {
				m.By = -m.By
			}
			return m
		}), 1, 4).Draw(rt, "marks")
		same(p, "Score", func(s counter.Store) ([]counter.Amount, error) { return s.Score(ctx, board, marks...) })
	case 8:
		board, n := boards.Draw(rt, "board"), several(15)
		if board.Window != counter.Ever {
			board.Ago = rapid.IntRange(0, counter.BoardWindows-1).Draw(rt, "ago")
		}
		same(p, "Top", func(s counter.Store) (counter.Ranking, error) { return s.Top(ctx, board, n) })
	case 9:
		board, who := boards.Draw(rt, "board"), rapid.SliceOfN(members, 1, 4).Draw(rt, "members")
		same(p, "Standing", func(s counter.Store) ([]counter.Standing, error) { return s.Standing(ctx, board, who...) })
	case 10, 11:
		list, items := hotLists.Draw(rt, "list"), rapid.SliceOfN(members, 1, 6).Draw(rt, "items")
		same(p, "Hit", func(s counter.Store) ([]counter.Heat, error) { return s.Hit(ctx, list, items...) })
	case 12:
		list, n := hotLists.Draw(rt, "list"), several(4)
		same(p, "Hot", func(s counter.Store) ([]counter.Heat, error) { return s.Hot(ctx, list, n) })
		after := rapid.SampledFrom([]int64{0, p.last, counter.Latest}).Draw(rt, "after")
		p.last = same(p, "Events", func(s counter.Store) (counter.Events, error) { return s.Events(ctx, list, after) }).Next
	}
}
