package loadgen

import (
	"math"
	"time"

	"github.com/weirhq/weir/internal/estimate"
)

// A histogram has slots as wide as their value is large: each power of two is divided
// into 128, so that a slot is less than 1 % of what is in it. Nanoseconds below 128
// have a slot each, and what is above the last one, 18 minutes, counts as that.
const (
	fine  = 7
	slots = (40 - fine + 1) << fine
)

// Histogram counts lengths of time, in 34 KiB however many there are. A quantile is
// less than 1 % off, the maximum is exact. The zero value is empty; it is not safe
// for concurrent use.
type Histogram struct {
	counts [slots]int64
	count  int64
	sum    time.Duration
	max    time.Duration
}

// slot returns where a length of time is counted.
func slot(d time.Duration) int {
	return int(min(estimate.Slot(uint64(max(d, 0)), fine), slots-1))
}

// top returns the longest time that is counted in a slot.
func top(slot int) time.Duration {
	bottom, width := estimate.Bottom(uint(slot), fine)
	return time.Duration(bottom + width - 1)
}

// Record counts a length of time.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.counts[slot(d)]++
	h.count++
	h.sum += d
	h.max = max(h.max, d)
}

// Merge adds what another histogram has counted.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.count += other.count
	h.sum += other.sum
	h.max = max(h.max, other.max)
}

// Count is how many there are.
func (h *Histogram) Count() int64 { return h.count }

// Max is the longest, 0 if there is none.
func (h *Histogram) Max() time.Duration { return h.max }

// Mean is the average, 0 if there is none.
func (h *Histogram) Mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return h.sum / time.Duration(h.count)
}

// Quantile returns the time within which the fraction q of them lies, of 0 to 1: it is
// never shorter than the true one, and less than 1 % longer. It is 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := max(int64(math.Ceil(q*float64(h.count))), 1)
	for i, n := range h.counts {
		if rank -= n; rank <= 0 && n > 0 {
			return min(top(i), h.max)
		}
	}
	return h.max
}

// Within returns how many took no longer than d, give or take those in its own slot.
func (h *Histogram) Within(d time.Duration) int64 {
	if d >= h.max {
		return h.count
	}
	total := int64(0)
	for i := range slot(d) + 1 {
		total += h.counts[i]
	}
	return total
}
