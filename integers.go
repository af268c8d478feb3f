package weir

import (
	"math"
	"math/bits"
)

// exact is the first whole number that a float64, and so a Redis script, may
// confuse with its neighbour.
const exact = 1 << 53

// mulDiv returns a×b/c rounded down, without losing the product's high bits.
// The quotient must fit; all arguments are at least 0, c at least 1.
func mulDiv(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high == 0 {
		return int64(low / uint64(c))
	}
	q, _ := bits.Div64(high, low, uint64(c))
	return int64(q)
}

// mulDivUp returns a×b/c rounded up.
func mulDivUp(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	low, carry := bits.Add64(low, uint64(c-1), 0)
	q, _ := bits.Div64(high+carry, low, uint64(c))
	return int64(q)
}

// mulCap returns a×b, or the greatest number where that is too much.
func mulCap(a, b int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high != 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

// divUp returns a/b rounded up, for a ≥ 0.
func divUp(a, b int64) int64 {
	if b == 1 { // most rates, such as 100/1m, reduce to 1 unit in so many microseconds
		return a
	}
	return (a + b - 1) / b
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
