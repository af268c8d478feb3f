// Package countertest is a test suite that every implementation of counter.Store must
// pass:
//
//	func TestSuite(t *testing.T) {
//		countertest.Run(t, func(t *testing.T, o countertest.Settings) countertest.Subject {
//			var now atomic.Int64
//			store := mystore.New(mystore.Options{MaxMembers: o.MaxMembers, Clock: …})
//			return countertest.Subject{Store: store, Set: …}
//		})
//	}
//
// Each time the store must be empty and must use the time given to Set.
package countertest

import (
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit"
)

// Settings are the options with which a test opens a store.
type Settings struct {
	MaxMembers int // 0 for the default
	Retention  counter.Retention
}

// Subject is an empty store with a settable clock.
type Subject struct {
	Store counter.Store
	Set   func(weir.Micros)
}

// Open returns a new subject.
type Open func(t *testing.T, o Settings) Subject

// suite is all tests, each with the options of its store.
var suite = []struct {
	name string
	test func(*table)
	Settings
}{
	{"Recipes/FixedWindow", recipeFixedWindow, Settings{}},
	{"Recipes/UserLimits", recipeUserLimits, Settings{}},
	{"Recipes/DistributedID", recipeDistributed, Settings{}},
	{"Recipes/BusinessCounters", recipeBusiness, Settings{}},
	{"Recipes/IncrCommands", recipeIncr, Settings{}},
	{"Recipes/PageViews", recipeVisits, Settings{}},
	{"Recipes/UserOperations", recipeOperations, Settings{}},
	{"Recipes/Reset", recipeReset, Settings{}},
	{"Recipes/HotProducts", recipeHotProduct, Settings{}},
	{"Recipes/SearchLeaderboard", recipeHotSearch, Settings{}},
	{"Recipes/UserActions", recipeBehaviour, Settings{}},
	{"Recipes/LiveMetrics", recipeLive, Settings{}},
	{"Recipes/Retention", recipeRetention, Settings{}},
	{"Recipes/SubWindows", recipeSubCounts, Settings{}},
	{"Counters/Windows", testWindows, Settings{}},
	{"Counters/Zones", testZones, Settings{}},
	{"Counters/ClocksAreSet", testClocksAreSet, Settings{}},
	{"Counters/Months", testMonths, Settings{}},
	{"Counters/Set", testSet, Settings{}},
	{"Counters/Names", testNames, Settings{}},
	{"Counters/Listed", testListed, Settings{}},
	{"Counters/Range", testRange, Settings{}},
	{"Counters/Retention", testRetention, Settings{Retention: counter.Retention{Minutes: 3}}},
	{"Counters/IDs", testIDs, Settings{}},
	{"Distinct/Once", testDistinctOnce, Settings{}},
	{"Distinct/Windows", testDistinctWindows, Settings{}},
	{"Distinct/Error", testDistinctError, Settings{}},
	{"Distinct/AllOrNone", testDistinctAllOrNone, Settings{}},
	{"Distinct/Concurrent", testDistinctConcurrent, Settings{}},
	{"Distributions/Values", testValues, Settings{}},
	{"Distributions/Windows", testDistributionWindows, Settings{}},
	{"Distributions/Retention", testDistributionRetention, Settings{Retention: counter.Retention{Minutes: 3}}},
	{"Distributions/Concurrent", testObserveConcurrent, Settings{}},
	{"Boards/Order", testOrder, Settings{}},
	{"Boards/Windows", testBoardWindows, Settings{}},
	{"Boards/Room", testRoom, Settings{MaxMembers: 16}},
	{"Sliding/Slides", testSlides, Settings{}},
	{"Sliding/Room", testSlidingRoom, Settings{MaxMembers: 8}},
	{"Sliding/DropsSlideAway", testDropsSlideAway, Settings{MaxMembers: 8}},
	{"Sliding/ClockGoesBack", testSlidingBack, Settings{}},
	{"Hot/TurnsAndCools", testTurns, Settings{}},
	{"Hot/Hysteresis", testHysteresis, Settings{}},
	{"Hot/NewThreshold", testNewThreshold, Settings{}},
	{"Hot/Room", testHotRoom, Settings{MaxMembers: 16}},
	{"Hot/ManyEvents", testManyEvents, Settings{}},
	{"Hot/Forgotten", testForgotten, Settings{}},
	{"Hot/Once", testOnce, Settings{}},
	{"Hot/Watch", testWatch, Settings{}},
	{"Actions", testActions, Settings{}},
	{"Concurrent", testConcurrent, Settings{}},
	{"ConcurrentSet", testConcurrentSet, Settings{}},
	{"Input/Bad", testBadInput, Settings{}},
	{"Input/Largest", testLargest, Settings{}},
	{"Input/Cancelled", testCancelled, Settings{}},
}

// Run runs the whole suite.
func Run(t *testing.T, open Open) {
	for _, c := range suite {
		t.Run(c.name, func(t *testing.T) {
			b := &table{t: t, Subject: open(t, c.Settings)}
			b.at(noon)
			c.test(b)
		})
	}
}

// noon is when most tests begin: in Shanghai it is 20:00.
var noon = time.Date(2025, 8, 29, 12, 0, 0, 0, time.UTC)

// table is a subject at hand, with its questions shortened.
type table struct {
	t *testing.T
	Subject
	now time.Time
}

func (b *table) at(now time.Time) {
	b.now = now
	b.Set(weir.MicrosOf(now))
}

func (b *table) pass(d time.Duration) { b.at(b.now.Add(d)) }

// add changes one counter and wants an amount, written as people do.
func (b *table) add(k counter.Key, by, want string) {
	b.t.Helper()
	got, err := b.Store.Add(b.t.Context(), counter.Delta{Key: k, By: amount(b.t, by)})
	b.same("Add "+k.Name, got, err, want)
}

// addAll changes counters in one call.
func (b *table) addAll(keys []counter.Key, by counter.Amount) {
	b.t.Helper()
	var deltas []counter.Delta
	for _, k := range keys {
		deltas = append(deltas, counter.Delta{Key: k, By: by})
	}
	testkit.Must(b.Store.Add(b.t.Context(), deltas...))(b.t)
}

func (b *table) get(want []string, keys ...counter.Key) {
	b.t.Helper()
	got, err := b.Store.Get(b.t.Context(), keys...)
	b.same("Get", got, err, want...)
}

func (b *table) reset(want []string, keys ...counter.Key) {
	b.t.Helper()
	got, err := b.Store.Reset(b.t.Context(), keys...)
	b.same("Reset", got, err, want...)
}

func (b *table) history(n int, k counter.Key, want ...string) []counter.Point {
	b.t.Helper()
	got, err := b.Store.History(b.t.Context(), n, k)
	if err != nil || len(got) != 1 {
		b.t.Fatalf("History %s = %v, %v", k.Name, got, err)
	}
	amounts := make([]counter.Amount, len(got[0]))
	for i, p := range got[0] {
		amounts[i] = p.Amount
	}
	b.same("History "+k.Name, amounts, nil, want...)
	return got[0]
}

func (b *table) same(what string, got []counter.Amount, err error, want ...string) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
	texts := make([]string, len(got))
	for i := range got {
		texts[i] = got[i].String()
	}
	b.equal(what, texts, want)
}

func (b *table) equal(what string, got, want any) {
	b.t.Helper()
	if !reflect.DeepEqual(got, want) {
		b.t.Errorf("%s at %v\n got %+v\nwant %+v", what, b.now, got, want)
	}
}

func (b *table) score(board counter.Board, member, by, want string) {
	b.t.Helper()
	got, err := b.Store.Score(b.t.Context(), board, counter.Mark{Member: member, By: amount(b.t, by)})
	b.same("Score "+member, got, err, want)
}

// top wants members and scores by turns.
func (b *table) top(board counter.Board, n int, want ...string) counter.Ranking {
	b.t.Helper()
	got := testkit.Must(b.Store.Top(b.t.Context(), board, n))(b.t)
	texts := []string{}
	for i, p := range got.Places {
		texts = append(texts, p.Member, p.Score.String())
		if p.Rank != i+1 {
			b.t.Errorf("place %d has rank %d", i+1, p.Rank)
		}
	}
	if want == nil {
		want = []string{}
	}
	b.equal("Top "+board.Name, texts, want)
	return got
}

// standing wants where one member stands.
func (b *table) standing(board counter.Board, member string, rank int, score string) {
	b.t.Helper()
	got := testkit.Must(b.Store.Standing(b.t.Context(), board, member))(b.t)
	b.equal("Standing", got, []counter.Standing{{Member: member, Rank: rank, Score: amount(b.t, score)}})
}

// hit hits an item, and returns how it stands.
func (b *table) hit(l counter.HotList, item string) counter.Heat {
	b.t.Helper()
	got, err := b.Store.Hit(b.t.Context(), l, item)
	if err != nil || len(got) != 1 || got[0].Item != item {
		b.t.Fatalf("Hit %s = %+v, %v", item, got, err)
	}
	return got[0]
}

// hot wants the names of the hot items.
func (b *table) hot(l counter.HotList, want ...string) []counter.Heat {
	b.t.Helper()
	got := testkit.Must(b.Store.Hot(b.t.Context(), l, counter.MaxTop))(b.t)
	var items []string
	for _, h := range got {
		items = append(items, h.Item)
		if !h.Hot || h.Since.IsZero() || h.Turned {
			b.t.Errorf("what is hot is %+v", h)
		}
	}
	b.equal("Hot", items, want)
	return got
}

// events wants what happened after an event: "+a" for a that turned hot, "-a" for one
// that cooled.
func (b *table) events(l counter.HotList, after int64, want ...string) counter.Events {
	b.t.Helper()
	got := testkit.Must(b.Store.Events(b.t.Context(), l, after))(b.t)
	var texts []string
	for _, e := range got.Events {
		sign := "-"
		if e.Hot {
			sign = "+"
		}
		texts = append(texts, sign+e.Item)
		if e.ID <= after {
			b.t.Errorf("event %+v is not after %d", e, after)
		}
		after = e.ID
	}
	b.equal("Events", texts, want)
	return got
}

func amount(t *testing.T, s string) counter.Amount {
	t.Helper()
	return testkit.Must(counter.ParseAmount(s))(t)
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	return testkit.Must(time.LoadLocation(name))(t)
}
