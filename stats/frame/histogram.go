package frame

import (
	"math"
	"math/bits"
	"time"
)

// A histogram has slots as wide as their value is large: each power of two is divided
// into 8, so that a slot is at most an eighth of what is in it. Values below 16 have a
// slot each, and what is above the last one counts as that.
const (
	fine  = 3
	Slots = 256 // so that the number of a slot is a byte

	maxPower = Slots>>fine - 2 // by which what is in the last slots is coarser than their numbers
)

// Tick is the unit in which lengths of time are counted. With it, slots reach from
// nanoseconds to more than four minutes.
const Tick = 16 * time.Nanosecond

// Histogram counts whole numbers, from 0 on. The zero value is empty. It is not safe
// for concurrent use.
type Histogram struct {
	Count int64
	Sum   int64 // of what was counted, exactly; of times in nanoseconds

	counts []int64 // Slots of them, or none
}

// Slot returns where a number is counted.
func Slot(n uint64) uint8 {
	if n < 1<<(fine+1) {
		return uint8(n)
	}
	power := uint(bits.Len64(n) - 1 - fine)
	if power > maxPower {
		return Slots - 1
	}
	return uint8(power<<fine + uint(n>>(power&63)))
}

// SlotOf returns where a length of time is counted. One below 0, after a step of the
// clock, counts as none.
func SlotOf(d time.Duration) uint8 { return Slot(uint64(max(d, 0)) / uint64(Tick)) }

// Top returns the largest number that is counted in a slot.
func Top(slot uint8) int64 {
	power := max(int(slot)>>fine-1, 0)
	return int64(int(slot)-power<<fine+1)<<power - 1
}

// Put counts something n times in a slot. The sum is the caller's to keep.
func (h *Histogram) Put(slot uint8, n int64) {
	if n <= 0 {
		return
	}
	if h.counts == nil {
		h.counts = make([]int64, Slots)
	}
	h.counts[slot] += n
	h.Count += n
}

// Record counts a length of time.
func (h *Histogram) Record(d time.Duration) {
	h.Put(SlotOf(d), 1)
	h.Sum += int64(max(d, 0))
}

// Merge adds what another histogram has counted.
func (h *Histogram) Merge(other *Histogram) {
	h.Sum += other.Sum
	if other.counts == nil {
		return
	}
	if h.counts == nil {
		h.counts = make([]int64, Slots)
	}
	h.Count += other.Count
	for i, n := range other.counts {
		h.counts[i] += n
	}
}

// Value returns the number that the fraction q of them does not exceed, of 0 to 1. It
// is never less than the true one, and at most an eighth more. It is 0 if there are
// none.
func (h *Histogram) Value(q float64) int64 {
	return h.Rank(max(int64(math.Ceil(q*float64(h.Count))), 1))
}

// Rank returns the number that so many of them do not exceed, as Value does.
func (h *Histogram) Rank(n int64) int64 {
	for i, in := range h.counts {
		if n -= in; in > 0 && n <= 0 {
			return Top(uint8(i))
		}
	}
	return 0
}

// Floor returns what the largest of them is at least; 0 if there are none.
func (h *Histogram) Floor() int64 {
	for i := len(h.counts) - 1; i > 0; i-- {
		if h.counts[i] > 0 {
			return Top(uint8(i-1)) + 1
		}
	}
	return 0
}

// Quantile is Value of lengths of time.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.Count == 0 {
		return 0
	}
	return time.Duration(h.Value(q)+1)*Tick - 1
}

// Mean is the average of lengths of time, exactly; 0 if there are none.
func (h *Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return time.Duration(h.Sum / h.Count)
}

// Above returns how many are in slots that lie wholly above a number.
func (h *Histogram) Above(n int64) int64 {
	total := int64(0)
	if h.counts != nil {
		for i := int(Slot(uint64(max(n, 0)))) + 1; i < Slots; i++ {
			total += h.counts[i]
		}
	}
	return total
}
