package countertest

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit"
)

// include adds members and wants how many there are.
func (b *table) include(k counter.Key, want string, members ...string) {
	b.t.Helper()
	got, err := b.Store.Add(b.t.Context(), counter.Delta{Key: k, Members: members})
	b.same("Add to "+k.Name, got, err, want)
}

// Each member counts once, in each counter.
func testDistinctOnce(b *table) {
	k := counter.Key{Name: "d", Distinct: true}
	b.get([]string{"0"}, k)
	b.include(k, "2", "a", "b", "a")
	b.include(k, "2", "b")
	b.include(k, "5", "\xff\x00", " ", "热搜")
	b.include(k, "5", "热搜", "a")
	grouped, plain := counter.Key{Name: "d", Group: "g", Distinct: true}, counter.Key{Name: "d"}
	b.include(grouped, "1", "a")
	b.add(plain, "7", "7")
	b.get([]string{"5", "1", "7"}, k, grouped, plain)
	if points := b.history(1, k, "5"); !points[0].Start.IsZero() {
		b.t.Errorf("ever begins at %v", points[0].Start)
	}
	b.reset([]string{"5", "7"}, k, plain)
	b.reset([]string{"0"}, k)
	b.include(k, "1", "a")
	b.get([]string{"1", "1", "0"}, k, grouped, plain)
}

// A user of a day and of a month, of whom some come again.
func testDistinctWindows(b *table) {
	shanghai := zone(b.t, "Asia/Shanghai")
	day, month := counter.Key{Name: "users", Window: counter.Day, Zone: shanghai, Distinct: true}, counter.Key{Name: "users", Window: counter.Month, Zone: shanghai, Distinct: true}
	visit := func(want string, users ...string) {
		b.t.Helper()
		got, err := b.Store.Add(b.t.Context(), counter.Delta{Key: day, Members: users}, counter.Delta{Key: month, Members: users})
		if err != nil {
			b.t.Fatal(err)
		}
		b.equal("Add", fmt.Sprint(got[0], got[1]), want)
	}
	visit("2 2", "a", "b")
	b.pass(24 * time.Hour)
	visit("2 3", "b", "c")
	b.pass(24 * time.Hour)
	visit("1 4", "d")
	b.history(4, day, "0", "2", "2", "1")
	b.pass(24 * time.Hour) // it is September there
	visit("1 1", "a")
	b.history(2, month, "4", "1")

	// A clock that goes back a little finds who was there; one that goes back further does not
	// forget how many.
	b.pass(-24 * time.Hour)
	b.include(day, "1", "d")
	b.include(day, "2", "e")
	b.pass(-24 * time.Hour)
	b.include(day, "2", "x")
	b.include(day, "3", "x", "y", "z")
	b.pass(24 * time.Hour)
	b.reset([]string{"2"}, day)
	b.history(3, day, "2", "3", "0")
	b.include(day, "1", "d")
}

// Up to ExactMembers it is exact. Beyond, the stated error holds: six times the standard
// error does not occur. What was added is not counted again.
func testDistinctError(b *table) {
	k := counter.Key{Name: "many", Window: counter.Day, Distinct: true}
	add := func(from, to int) int64 {
		b.t.Helper()
		n := int64(0)
		for ; from < to; from += counter.MaxBatch {
			var members []string
			for i := from; i < min(from+counter.MaxBatch, to); i++ {
				members = append(members, fmt.Sprint("member", i))
			}
			n = testkit.Must(b.Store.Add(b.t.Context(), counter.Delta{Key: k, Members: members}))(b.t)[0].Round()
		}
		return n
	}
	b.equal("Exact", add(0, counter.ExactMembers), int64(counter.ExactMembers))
	for _, n := range []int{counter.ExactMembers + 1, 2000, 20_000} {
		got := add(0, n)
		if off := math.Abs(float64(got)/float64(n) - 1); off > 6*0.0081 {
			b.t.Errorf("%d members are estimated as %d", n, got)
		}
		b.equal("Again", add(0, min(n, 2000)), got)
	}
	many := testkit.Must(b.Store.Get(b.t.Context(), k))(b.t)[0]
	b.pass(24 * time.Hour)
	b.include(k, "1", "member0")
	b.history(2, k, many.String(), "1")
	b.reset([]string{"1"}, k)
	b.pass(-24 * time.Hour)
	b.reset([]string{many.String()}, k)
	b.include(k, "1", "member0")
}

// What is counted beside a sum that leaves its range is not counted.
func testDistinctAllOrNone(b *table) {
	k, sum := counter.Key{Group: "g", Name: "d", Distinct: true}, counter.Key{Group: "g", Name: "sum"}
	b.add(sum, "8999999999999", "8999999999999")
	_, err := b.Store.Add(b.t.Context(), counter.Delta{Key: k, Members: []string{"a"}}, counter.Delta{Key: sum, By: counter.Whole(2)})
	if !errors.Is(err, counter.ErrRange) {
		b.t.Errorf("%v, want ErrRange", err)
	}
	b.get([]string{"0"}, k)
	got, err := b.Store.Add(b.t.Context(), counter.Delta{Key: k, Members: []string{"a"}}, counter.Delta{Key: sum, By: counter.One}, counter.Delta{Key: k, Members: []string{"a", "b"}})
	b.same("Add", got, err, "1", "9000000000000", "2")
}

// Many at once count each member once.
func testDistinctConcurrent(b *table) {
	k := counter.Key{Name: "d", Window: counter.Hour, Distinct: true}
	b.begin(6, 20, func(user, round int) error {
		return testkit.Err(b.Store.Add(b.t.Context(), counter.Delta{Key: k, Members: []string{fmt.Sprint(round), fmt.Sprint(user, "-", round)}}))
	})()
	b.get([]string{"140"}, k)
}
