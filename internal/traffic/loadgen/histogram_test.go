package loadgen

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// durations draws from nanoseconds to minutes, small and large ones alike.
var durations = rapid.Custom(func(t *rapid.T) time.Duration {
	bits := rapid.IntRange(0, 39).Draw(t, "bits")
	return time.Duration(rapid.Int64Range(0, 1<<bits).Draw(t, "duration"))
})

func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(durations, 1, 200).Draw(t, "all")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		var h, other Histogram
		for i, d := range all { // in two halves, to be merged
			if i%2 == 0 {
				h.Record(d)
			} else {
				other.Record(d)
			}
		}
		h.Merge(&other)
		slices.Sort(all)
		want := all[max(int(math.Ceil(q*float64(len(all)))), 1)-1]
		if got := h.Quantile(q); got < want || float64(got) > 1.01*float64(want) {
			t.Fatalf("Quantile(%v) = %d, want %d", q, got, want)
		}
		if h.Quantile(q) > h.Max() || h.Quantile(1) != h.Max() {
			t.Fatalf("Quantile(%v) = %d, Quantile(1) = %d, the longest is %d", q, h.Quantile(q), h.Quantile(1), h.Max())
		}
		sum := time.Duration(0)
		for _, d := range all {
			sum += d
		}
		if h.Count() != int64(len(all)) || h.Max() != all[len(all)-1] || h.Mean() != sum/time.Duration(len(all)) {
			t.Fatalf("%d of at most %v, on average %v", h.Count(), h.Max(), h.Mean())
		}
	})
}

// Slots are without gaps, each less than 1 % of what is in it.
func TestSlots(t *testing.T) {
	bottom := time.Duration(0)
	for i := range slots {
		if slot(bottom) != i || slot(top(i)) != i {
			t.Fatalf("slot %d: %d is in %d, %d in %d", i, bottom, slot(bottom), top(i), slot(top(i)))
		}
		if width := top(i) - bottom; float64(width) > 0.01*float64(bottom) {
			t.Fatalf("slot %d is %d wide at %d", i, width, bottom)
		}
		bottom = top(i) + 1
	}
	if bottom != 1<<40 {
		t.Errorf("the slots end at %d", bottom)
	}
	for _, far := range []time.Duration{1 << 40, math.MaxInt64} {
		if slot(far) != slots-1 {
			t.Errorf("%v is in slot %d", far, slot(far))
		}
	}
}

func TestExtremes(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Max() != 0 || h.Mean() != 0 || h.Within(time.Hour) != 0 {
		t.Error("an empty histogram has something")
	}
	h.Record(-time.Second) // a clock that was set back
	h.Record(24 * time.Hour)
	if h.Quantile(0) != 0 || h.Max() != 24*time.Hour || h.Within(24*time.Hour) != 2 {
		t.Errorf("least %v, most %v, %d within a day", h.Quantile(0), h.Max(), h.Within(24*time.Hour))
	}
}

func TestWithin(t *testing.T) {
	var h Histogram
	for i := range 1000 {
		h.Record(time.Duration(i+1) * time.Millisecond)
	}
	for _, c := range []struct {
		d    time.Duration
		want int64
	}{{0, 0}, {time.Second, 1000}, {time.Hour, 1000}, {500 * time.Millisecond, 500}, {100 * time.Millisecond, 100}} {
		if got := h.Within(c.d); math.Abs(float64(got-c.want)) > 0.01*float64(c.want) {
			t.Errorf("Within(%v) = %d, want %d", c.d, got, c.want)
		}
	}
}
