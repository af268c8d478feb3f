// Package estimate has the arithmetic of estimates that need little memory: how many different values
// there were (HyperLogLog), and how large they were (slots of about equal relative width).
package estimate

import (
	"math"
	"math/bits"
)

// Ranks is how many ranks a register can have, 0 for an empty one, if 2^power registers
// are used.
func Ranks(power int) int { return 64 - power + 2 }

// Register returns the register for a value, among 2^power, and its rank there; a register
// keeps the largest. The bits of the hash must be evenly distributed.
func Register(hash uint64, power int) (register int, rank uint8) {
	rest := 64 - power
	return int(hash >> rest), uint8(min(bits.LeadingZeros64(hash<<power), rest) + 1)
}

// Distinct returns how many different values there were, from how many registers have
// each rank. It is the improved raw estimator of O. Ertl, "New cardinality estimation
// algorithms for HyperLogLog sketches" (2017), which needs no corrections for few or many
// values. Redis uses it, too.
func Distinct(counts []int32) float64 {
	m := 0.0
	for _, n := range counts {
		m += float64(n)
	}
	last := len(counts) - 1
	z := m * tau(1-float64(counts[last])/m)
	for rank := last - 1; rank >= 1; rank-- {
		z = (z + float64(counts[rank])) / 2
	}
	z += m * sigma(float64(counts[0])/m)
	return m * m / (2 * math.Ln2 * z) // 0 if z is infinite
}

func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	y, z := 1.0, x
	for before := 0.0; z != before; y += y {
		x *= x
		before = z
		z += x * y
	}
	return z
}

func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for before := 0.0; z != before; {
		x = math.Sqrt(x)
		before = z
		y /= 2
		z -= (1 - x) * (1 - x) * y
	}
	return z / 3
}

// Slot returns the slot of a number.
func Slot(n uint64, fine uint) uint {
	if n < 2<<fine {
		return uint(n)
	}
	power := uint(bits.Len64(n)) - 1 - fine
	return power<<fine + uint(n>>(power&63))
}

// Bottom returns the smallest number in a slot, and how many numbers there are.
func Bottom(slot, fine uint) (n, width uint64) {
	power := slot >> fine
	if power > 0 {
		power--
	}
	return uint64(slot-power<<fine) << (power & 63), 1 << (power & 63)
}
