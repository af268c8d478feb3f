package weir_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// release is units that left at an instant.
type release struct {
	at    weir.Micros
	units int64
}

// worst is the most units in any (t−period, t]. Releases come in order.
func worst(releases []release, period weir.Micros) int64 {
	var most, sum int64
	first := 0
	for _, r := range releases {
		sum += r.units
		for releases[first].at <= r.at-period {
			sum -= releases[first].units
			first++
		}
		most = max(most, sum)
	}
	return most
}

// No algorithm allows more than its bound in any window, whatever the traffic
// and whatever the clock. When that steps back, time stands still at the last
// allowance, which is all that a key can know.
func TestNeverMoreThanTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := key{limit: drawLimit(t)}
		var releases []release
		var latest weir.Micros
		var maxCost int64
		for _, s := range drawHistory(t, k.limit, true) {
			if d := k.take(s.now, s.cost); d.Allowed {
				latest = max(latest, s.now)
				at := latest + weir.Micros(d.Delay.Microseconds())
				if n := len(releases); n > 0 {
					at = max(at, releases[n-1].at)
				}
				releases = append(releases, release{at, s.cost})
				maxCost = max(maxCost, s.cost)
			}
		}
		got := worst(releases, weir.Micros(k.limit.Limit().Period.Microseconds()))
		if most := k.limit.Bound(max(1, maxCost)); got > most {
			t.Fatalf("%v let %d units go in one period, its bound is %d", k.limit.Limit(), got, most)
		}
	})
}

// The bounds are not idle: greedy traffic reaches them.
func TestBoundsAreReached(t *testing.T) {
	for limit, want := range map[string]int64{
		"fixed_window 100/1ms":         200,
		"sliding_window 100/1ms":       200,
		"sliding_buckets 100/1ms":      100,
		"sliding_log 100/1ms":          100,
		"token_bucket 100/1ms":         199,
		"leaky_bucket 100/1ms":         199,
		"leaky_bucket 100/1ms shape":   100,
		"token_bucket 100/1ms burst 5": 104,
	} {
		k := key{limit: weir.MustCompile(limit)}
		var releases []release
		// From the last instant of a window on, whatever is to be had.
		for now := weir.Micros(999); now < 4000; now++ {
			for {
				d := k.take(now, 1)
				if !d.Allowed {
					break
				}
				releases = append(releases, release{now + weir.Micros(d.Delay.Microseconds()), 1})
			}
		}
		if got, most := worst(releases, 1000), k.limit.Bound(1); got != want || most != want {
			t.Errorf("%s: the worst window has %d and the bound is %d, want %d", limit, got, most, want)
		}
	}
}

// The long run is exact: no drift, and nothing minted by asking often.
func TestLongRunIsExact(t *testing.T) {
	const start = 1_767_225_600_000_000
	for _, c := range []struct {
		limit  string
		stride weir.Micros // between requests
		length weir.Micros // from the first to the last
		want   int64
	}{
		{"token_bucket 7/1s", 1, 1_000_000, 7 + 7},
		{"leaky_bucket 13/1s burst 2", 1, 1_000_000, 2 + 13},
		{"fixed_window 7/1s", 1, 1_000_000, 7 + 1},
		{"sliding_log 7/1s", 1, 1_000_000, 7 + 1},
		{"sliding_window 7/1s", 1, 1_000_000, 7},
		{"token_bucket 999983/1s burst 2", 1, 1_000_000, 2 + 999983},
		{"token_bucket 7/1s", 50_021, 86_400_000_000, 7 + 7*86_400 - 1},
		{"fixed_window 7/1s", 50_021, 86_400_000_000, 7 * 86_400},
		// A full bucket spills what comes in until the next whole microsecond.
		{"token_bucket 7/1s burst 1", 1, 1_000_000, 1 + 6},
	} {
		if c.limit != "sliding_log 7/1s" && testkit.Race {
			continue
		}
		k := key{limit: weir.MustCompile(c.limit)}
		var allowed int64
		for now := weir.Micros(start); now <= start+c.length; now += c.stride {
			if k.take(now, 1).Allowed {
				allowed++
			}
		}
		if allowed != c.want {
			t.Errorf("%s asked every %d us allowed %d, want %d", c.limit, c.stride, allowed, c.want)
		}
	}
}

// A clock that steps back mints nothing: a key has no more left at any earlier
// time than at the time of its last charge.
func TestClockBackMintsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := key{limit: drawLimit(t)}
		var last weir.Micros
		for i, s := range drawHistory(t, k.limit, true) {
			d := k.peek(s.now, s.cost)
			still := k.peek(max(s.now, last), s.cost)
			if d.Remaining > still.Remaining || d.Allowed && !still.Allowed {
				t.Fatalf("step %d: %v at %d: %+v, but at its last charge at %d: %+v", i, k.limit.Limit(), s.now, d, last, still)
			}
			if next, _ := k.ask(s.now, s.cost); next != k.State {
				k.Keep(k.limit, next)
				last = max(last, s.now)
			}
		}
	})
}

// The bounds at the shortest periods, and of requests larger than the burst.
func TestBoundAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		limit         string
		largest, want int64
	}{
		{"fixed_window 5/1us", 1, 5}, {"fixed_window 5/2us", 1, 10},
		{"sliding_window 5/1us", 1, 5}, {"sliding_window 5/2us", 1, 5}, {"sliding_window 5/3us", 1, 7},
		{"leaky_bucket 10/1s burst 3 shape", 5, 12},
	} {
		if got := weir.MustCompile(c.limit).Bound(c.largest); got != c.want {
			t.Errorf("%s: Bound(%d) = %d, want %d", c.limit, c.largest, got, c.want)
		}
	}
}
