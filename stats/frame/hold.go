package frame

import "math"

// HoldCounts holds what became of the holds of a rule. The units that were reserved and used
// are those of holds that were settled.
type HoldCounts struct {
	Opened    int64 `json:"opened"` // reservations that were allowed
	Settled   int64 `json:"settled"`
	Cancelled int64 `json:"cancelled"`
	Overruns  int64 `json:"overruns"` // settled with more than was reserved
	Charges   int64 `json:"charges"`  // made without a hold

	Reserved int64 `json:"reserved_units"`
	Used     int64 `json:"used_units"`
	Charged  int64 `json:"charged_units"` // by Charges
	Excess   int64 `json:"excess_units"`  // of Used and Charged, what was not charged
}

// Add adds other counts. Sums stay exact numbers, whatever clients say that they have used.
func (c *HoldCounts) Add(other HoldCounts) {
	theirs := other.fields()
	for i, n := range c.fields() {
		*n = min(*n+min(*theirs[i], maxExact), maxExact)
	}
}

func (c *HoldCounts) fields() [9]*int64 {
	return [...]*int64{&c.Opened, &c.Settled, &c.Cancelled, &c.Overruns, &c.Charges, &c.Reserved, &c.Used, &c.Charged, &c.Excess}
}

// Holds holds what became of the holds of a rule, and how good their estimates were.
type Holds struct {
	HoldCounts

	// ratio is what each settled hold used of what it had reserved. A ratio of 1 is the last
	// number of its slot, so that it is exact; so are 1/2, 2 and others.
	ratio Histogram
}

// whole is how many parts of a ratio are 1.
const whole = 1024

// Settle counts a hold that was settled.
func (h *Holds) Settle(reserved, used, excess int64) {
	one := HoldCounts{Settled: 1, Reserved: reserved, Used: used, Excess: excess}
	if used > reserved {
		one.Overruns = 1
	}
	h.Add(one)
	if reserved > 0 {
		parts := math.Ceil(float64(used) / float64(reserved) * whole)
		h.ratio.Put(Slot(uint64(max(parts-1, 0))), 1)
	}
}

// Ratio returns the q-quantile of what each settled hold used of what it had reserved. It
// is never less than the true quantile, and at most an eighth more; less than a thousandth
// is 0.
func (h *Holds) Ratio(q float64) float64 {
	n := h.ratio.Value(q)
	if n == 0 {
		return 0
	}
	return float64(n+1) / whole
}

// Merge adds other holds.
func (h *Holds) Merge(other *Holds) {
	h.Add(other.HoldCounts)
	h.ratio.Merge(&other.ratio)
}

// weight grows with every event.
func (h *Holds) weight() int64 { return h.Opened + h.Settled + h.Cancelled + h.Charges }
