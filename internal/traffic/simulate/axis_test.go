package simulate

import (
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir"
)

func TestAxis(t *testing.T) {
	const second, minute = 1_000_000, 60_000_000
	for _, c := range []struct {
		first, last, period weir.Micros
		columns             int
		want                axis
	}{
		{45 * second, 134 * second, minute, 60, axis{Begin: 0, Slice: 3 * second, Count: 45}},
		{45 * second, 150 * second, minute, 60, axis{Begin: 0, Slice: 3 * second, Count: 60}},
		{0, 0, minute, 60, axis{Begin: 0, Slice: second, Count: 60}},
		{54_000_000_000, 54_000_000_001, minute, 60, axis{Begin: 54_000_000_000, Slice: 1, Count: 2}},
		{0, 1, 1, 60, axis{Begin: 0, Slice: 1, Count: 2}},
		{7, 8, 100, 1, axis{Begin: 5, Slice: 5, Count: 1}},
		{0, maxAt, minute, 60, axis{Begin: 0, Slice: 1024 * day, Count: 36}},
	} {
		if got := newAxis(c.first, c.last, periods{length: c.period}, c.columns); got.Begin != c.want.Begin || got.Slice != c.want.Slice || got.Count != c.want.Count {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestAxisCoversItsTime(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	any := func(most int64) weir.Micros { return weir.Micros(random.Int64N(1 + random.Int64N(most))) }
	for range 20_000 {
		first, columns := any(int64(maxAt)), 1+random.IntN(500)
		last, period := first+any(int64(maxAt)), 1+any(10*365*day)
		a := newAxis(first, last, periods{length: period}, columns)
		if a.Count < 1 || a.Count > columns || a.Begin > first || a.end() <= last {
			t.Fatalf("newAxis(%d, %d, %d, %d) = %+v", first, last, period, columns, a)
		}
		for _, at := range a.Ticks {
			if at.At < a.Begin || at.At >= a.end() {
				t.Fatalf("newAxis(%d, %d, %d, %d) has a tick at %d", first, last, period, columns, at.At)
			}
		}
	}
}

func TestClock(t *testing.T) {
	for m, want := range map[weir.Micros]string{
		0: "0s", 1: "1us", 1_500_000: "1.5s", 60_000_000: "1m", 90_000_000: "1m30s",
		3_600_000_000: "1h", 53_985_000_000: "14h59m45s", 36_000_000_000: "10h",
		3 * day: "3d", maxAt + 1: "2069-12-07", 100_000_000: "1m40s", 6_000_000_000: "1h40m",
	} {
		if got := clock(m); got != want {
			t.Errorf("clock(%d) = %q, want %q", m, got, want)
		}
	}
}
