package archive

import (
	"iter"
	"math"
	"time"

	"github.com/weirhq/weir/internal/estimate"
)

// HistogramSlots of a histogram. Each power of two is divided into 8 slots, so that the width of
// a slot is at most an eighth of the values in it. Values below 16 have a slot each.
// Values above the last slot count in the last slot.
const (
	fine           = 3
	HistogramSlots = 256 // so that the number of a slot is a byte
)

// Tick is the unit in which durations are counted. So the slots cover nanoseconds to
// more than four minutes.
const Tick = 16 * time.Nanosecond

// Histogram counts whole numbers from 0. The zero value is empty. It is not safe for
// concurrent use.
type Histogram struct {
	Count int64
	Sum   int64 // exact sum of the numbers; for durations in nanoseconds

	counts []int64 // nil, or one for each slot
}

// Slot returns the slot of a number.
func HistogramSlot(n uint64) uint8 { return uint8(min(estimate.Slot(n, fine), HistogramSlots-1)) }

// SlotOf returns the slot of a duration. A negative duration, after a step of the
// clock, counts as 0.
func DurationSlot(d time.Duration) uint8 { return HistogramSlot(uint64(max(d, 0)) / uint64(Tick)) }

// Top returns the largest number in a slot.
func SlotTop(slot uint8) int64 {
	bottom, width := estimate.Bottom(uint(slot), fine)
	return int64(bottom + width - 1)
}

// Bottom returns the smallest number in a slot.
func SlotBottom(slot uint8) int64 {
	bottom, _ := estimate.Bottom(uint(slot), fine)
	return int64(bottom)
}

// Put adds n to the count of a slot. It does not change Sum.
func (h *Histogram) Put(slot uint8, n int64) {
	if n <= 0 {
		return
	}
	if h.counts == nil {
		h.counts = make([]int64, HistogramSlots)
	}
	h.counts[slot] += n
	h.Count += n
}

// Record counts a duration.
func (h *Histogram) Record(d time.Duration) {
	h.Put(DurationSlot(d), 1)
	h.Sum += int64(max(d, 0))
}

// Merge adds another histogram.
func (h *Histogram) Merge(other *Histogram) {
	h.Sum += other.Sum
	if other.counts == nil {
		return
	}
	if h.counts == nil {
		h.counts = make([]int64, HistogramSlots)
	}
	h.Count += other.Count
	for i, n := range other.counts {
		h.counts[i] += n
	}
}

// Value returns the q-quantile of the numbers, for q from 0 to 1. It is never less than
// the true quantile, and at most an eighth more. It is 0 if the histogram is empty.
func (h *Histogram) Value(q float64) int64 {
	return h.Rank(max(int64(math.Ceil(q*float64(h.Count))), 1))
}

// Rank returns the n-th smallest number, with the precision of Value.
func (h *Histogram) Rank(n int64) int64 {
	for i, in := range h.counts {
		if n -= in; in > 0 && n <= 0 {
			return SlotTop(uint8(i))
		}
	}
	return 0
}

// All returns the largest number of each slot that has something, and how many it has.
func (h *Histogram) All() iter.Seq2[int64, int64] {
	return func(yield func(top, n int64) bool) {
		for i, n := range h.counts {
			if n > 0 && !yield(SlotTop(uint8(i)), n) {
				return
			}
		}
	}
}

// Floor returns a lower bound of the largest number; 0 if the histogram is empty.
func (h *Histogram) Floor() int64 {
	for i := len(h.counts) - 1; i > 0; i-- {
		if h.counts[i] > 0 {
			return SlotBottom(uint8(i))
		}
	}
	return 0
}

// Quantile returns the same as Value for durations.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.Count == 0 {
		return 0
	}
	return time.Duration(h.Value(q)+1)*Tick - 1
}

// Mean returns the exact average of durations; 0 if the histogram is empty.
func (h *Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return time.Duration(h.Sum / h.Count)
}
