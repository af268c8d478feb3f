package rule

import (
	"context"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/traffic/scenario"
	"pgregory.net/rapid"
)

// A limit that is called superfluous never denies what the other allows, whatever
// the traffic: the warning must not tell anybody to remove what is needed.
func TestCoveredLimitsNeverDeny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom(weir.Algorithms()).Draw(t, "algorithm")
		rate := rapid.Custom(func(t *rapid.T) Rate {
			return Rate{N: rapid.Int64Range(1, 12).Draw(t, "n"), Period: time.Duration(rapid.IntRange(1, 12).Draw(t, "period")) * 100 * time.Microsecond}
		})
		one, other := rate.Draw(t, "one"), rate.Draw(t, "other")
		var burst int64
		if leaks(a) {
			burst = rapid.Int64Range(0, 8).Draw(t, "burst")
		}
		if !covers(a, burst, one, burst, other) || one.Period == other.Period {
			t.Skip("both are needed")
		}
		compile := func(r Rate) *weir.Compiled {
			c, err := weir.Limit{Algorithm: a, N: r.N, Period: r.Period, Burst: burst}.Compile()
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		ops := []weir.Op{{Key: "k", Limit: compile(one), Cost: 1}, {Key: "k", Limit: compile(other), Cost: 1}}
		model := scenario.NewModel()
		for i, gap := range rapid.SliceOfN(rapid.IntRange(0, 120), 1, 200).Draw(t, "gaps") {
			model.Now += weir.Micros(gap)
			d, err := model.Take(context.Background(), nil, ops...)
			if err != nil {
				t.Fatal(err)
			}
			if d[0].Allowed && !d[1].Allowed {
				t.Fatalf("%s: request %d at %d is allowed by %s and denied by %s", a, i, model.Now, one, other)
			}
		}
	})
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		algorithm  weir.Algorithm
		burst      int64
		one, other string
		want       bool
	}{
		{weir.TokenBucket, 0, "100/1m", "10000/1h", true},
		{weir.TokenBucket, 0, "100/1m", "5000/1h", false},
		{weir.TokenBucket, 0, "3/1m", "20/1h", false},
		{weir.TokenBucket, 0, "100/1h", "10/1m", false},
		{weir.TokenBucket, 5, "60/1m", "1/1s", true},
		{weir.LeakyBucket, 0, "1125899906842624/3650d", "1125899906842623/3650d", false},
		{weir.SlidingLog, 0, "3/1m", "180/1h", true},
		{weir.SlidingLog, 0, "3/1m", "179/1h", false},
		{weir.SlidingLog, 0, "10/1h", "10/1m", true},
		{weir.FixedWindow, 0, "10/1h", "10/1m", true},
		{weir.FixedWindow, 0, "10/7s", "10/5s", false},
		{weir.FixedWindow, 0, "10/7s", "20/5s", true},
		{weir.FixedWindow, 0, "3/1m", "180/1h", true},
		{weir.SlidingWindow, 0, "3/1m", "180/1h", false},
		{weir.SlidingWindow, 0, "3/1m", "186/1h", true},
	} {
		one, err := ParseRate(c.one)
		if err != nil {
			t.Fatal(err)
		}
		other, err := ParseRate(c.other)
		if err != nil {
			t.Fatal(err)
		}
		if got := covers(c.algorithm, c.burst, one, c.burst, other); got != c.want {
			t.Errorf("%s burst %d: %s covers %s: %v", c.algorithm, c.burst, one, other, got)
		}
	}
}
