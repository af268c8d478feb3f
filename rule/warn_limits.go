package rule

import (
	"cmp"
	"math/bits"

	"github.com/weirhq/weir"
)

// stricter finds a rate of the quota by which the i-th is never reached. Of two that
// are equally strict, the second is superfluous.
func stricter(a weir.Algorithm, q Quota, i int) (Rate, bool) {
	for j, other := range q.Rates {
		if j != i && covers(a, q.Burst, other, q.Rates[i]) && (j < i || !covers(a, q.Burst, q.Rates[i], other)) {
			return other, true
		}
	}
	return Rate{}, false
}

// covers is whether whoever keeps one rate keeps the other as well. It errs on the
// side of no.
func covers(a weir.Algorithm, burst int64, one, other Rate) bool {
	if leaks(a) {
		// A bucket is kept by what fits into a smaller one that refills no faster.
		smaller := burst != 0 || one.N <= other.N
		return smaller && compareProducts(one.N, int64(other.Period), other.N, int64(one.Period)) <= 0
	}
	return compareProducts(touched(a, one, other), one.N, other.N, 1) <= 0
}

// touched is how many periods of the one a period of the other can reach into.
func touched(a weir.Algorithm, one, other Rate) int64 {
	whole, rest := int64(other.Period/one.Period), other.Period%one.Period
	switch {
	case a == weir.SlidingWindow: // an estimate can be one period's worth too high
		return whole + 2
	case rest == 0:
		return whole
	case a != weir.FixedWindow: // its periods may lie anywhere, and so in a row
		return whole + 1
	case one.Period%other.Period == 0: // aligned, one window is within the other
		return 1
	}
	return whole + 2
}

// compareProducts compares a×b with c×d, all positive, whatever their size.
func compareProducts(a, b, c, d int64) int {
	high1, low1 := bits.Mul64(uint64(a), uint64(b))
	high2, low2 := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(high1, high2), cmp.Compare(low1, low2))
}
