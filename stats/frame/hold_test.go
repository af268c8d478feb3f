package frame

import (
	"fmt"
	"math"
	"testing"
)

// Ratios are those of whole holds, and those that matter most are exact.
func TestHoldRatio(t *testing.T) {
	for _, c := range []struct {
		reserved, used int64
		least, most    float64
	}{
		{100, 100, 1, 1}, {100, 50, 0.5, 0.5}, {100, 200, 2, 2}, {100, 0, 0, 0}, {10_000, 1, 0, 0},
		{100, 31, 0.31, 0.31 * 9 / 8}, {3, 100, 33.3, 33.4 * 9 / 8}, {1, 1 << 53, 1 << 20, 1 << 62},
	} {
		var h Holds
		h.Settle(c.reserved, c.used, 0)
		if got := h.Ratio(0.5); got < c.least || got > c.most {
			t.Errorf("%d of %d is %v, want %v to %v", c.used, c.reserved, got, c.least, c.most)
		}
	}
	var h Holds
	h.Settle(0, 5, 0) // nothing was reserved: no ratio
	for i := range int64(100) {
		h.Settle(100, i+1, 0)
	}
	for q, most := range map[float64]float64{0.5: 0.5 * 9 / 8, 0.9: 0.9 * 9 / 8, 0.99: 1} {
		if got := h.Ratio(q); got < q || got > most {
			t.Errorf("%v: %v", q, got)
		}
	}
	if h.Settled != 101 || h.Reserved != 10_000 || h.Used != 5055 || h.Overruns != 1 {
		t.Errorf("%+v", h)
	}
}

// Whatever clients say that they have used, a frame can be read again.
func TestHoldUnitsAreBounded(t *testing.T) {
	var f, sum Frame
	for range 3 {
		f.Hold("a").Settle(1<<53, math.MaxInt64>>1, 1<<53)
		sum.Merge(&f)
	}
	got, err := Decode(sum.Append(nil))
	if err != nil || got.Hold("a").Used != maxExact || got.Hold("a").Settled != 6 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Beyond the bound, the rules with the fewest holds count together.
func TestTrimHolds(t *testing.T) {
	var f Frame
	for i := range MaxHolds + 10 {
		f.Hold(fmt.Sprint("rule", i)).Opened = int64(i + 1)
	}
	f.Trim()
	if len(f.Holds) > MaxHolds || f.Hold(Other).Opened != 66 || f.Hold("rule11").Opened != 12 {
		t.Errorf("%d, %+v", len(f.Holds), f.Hold(Other))
	}
	before := f.Weight()
	f.Hold("x").Settle(1, 1, 0)
	if f.Weight() <= before || (&Frame{Holds: f.Holds}).Empty() {
		t.Error("a settled hold weighs nothing")
	}
}
