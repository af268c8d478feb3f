package counter

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Amount is a number in millionths: One is 1. Sums of amounts are exact.
type Amount int64

const (
	One Amount = 1_000_000

	// MaxAmount bounds a counter in either direction: 9 × 10^12.
	MaxAmount Amount = 9_000_000_000_000_000_000

	// MaxScore bounds a score on a leaderboard: 9007 million. Redis sorts by float64,
	// which is exact up to there.
	MaxScore Amount = 1<<53 - 1
)

// Whole returns the amount of n units. If n is too large, it returns more than
// MaxAmount, which every store rejects.
func Whole(n int64) Amount {
	switch {
	case n > math.MaxInt64/int64(One):
		return math.MaxInt64
	case n < math.MinInt64/int64(One):
		return math.MinInt64
	}
	return Amount(n) * One
}

// FromFloat returns the amount nearest to f, or an error if f is out of range or not a
// number.
func FromFloat(f float64) (Amount, error) {
	scaled := math.Round(f * float64(One))
	if !(math.Abs(scaled) <= float64(MaxAmount)) { // NaN is not, either
		return 0, invalid("by", "%v is not an amount; write a number of at most 9e12", f)
	}
	return Amount(scaled), nil
}

// decimals is how many an amount has.
const decimals = 6

// ParseAmount parses a decimal number such as "-1.5", with at most six decimals and
// without an exponent. It never rounds.
func ParseAmount(s string) (Amount, error) {
	whole, fraction, dot := strings.Cut(s, ".")
	if len(fraction) > decimals {
		return 0, invalid("by", "%.40q has more than six decimals; round it first", s)
	}
	digits := strings.TrimPrefix(whole, "-")
	if digits == "" || dot && fraction == "" || strings.Trim(digits+fraction, "0123456789") != "" {
		return 0, invalid("by", "%.40q is not an amount; write a decimal number such as 1.5", s)
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	if err != nil || !Amount(n).within(MaxAmount) {
		return 0, invalid("by", "%.40q is too large; write a number of at most 9e12", s)
	}
	return Amount(n), nil
}

func (a Amount) within(most Amount) bool { return a >= -most && a <= most }

// Float64 returns the nearest float64.
func (a Amount) Float64() float64 { return float64(a) / float64(One) }

// Round returns the nearest whole number of units; halves round away from zero.
func (a Amount) Round() int64 {
	half := One / 2
	if a < 0 {
		half = -half
	}
	whole, rest := a/One, a%One
	return int64(whole + (rest+half)/One)
}

// String returns a text that ParseAmount accepts, without trailing zeros.
func (a Amount) String() string {
	sign, n := "", uint64(a)
	if a < 0 {
		sign, n = "-", -n
	}
	text := fmt.Sprintf("%s%d.%06d", sign, n/uint64(One), n%uint64(One))
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalJSON returns the amount as a JSON number.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON parses a number as ParseAmount does. It also takes an exponent, because many
// languages write 0.00001 as 1e-05.
func (a *Amount) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	n, err := ParseAmount(withoutExponent(string(text)))
	if err == nil {
		*a = n
	}
	return err
}

// withoutExponent writes a number without its exponent. If it has one that no amount needs, the
// number stays as it is, and is not an amount.
func withoutExponent(number string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	shift, err := strconv.Atoi(exponent)
	if err != nil || shift < -decimals || shift > 12 {
		return number
	}
	digits, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if shift < 0 {
		whole = strings.Repeat("0", -shift) + whole
		point := len(whole) + shift
		whole, fraction = whole[:point], whole[point:]+fraction
	} else {
		fraction += strings.Repeat("0", shift)
		whole, fraction = whole+fraction[:shift], fraction[shift:]
	}
	if negative {
		whole = "-" + whole
	}
	return strings.TrimSuffix(whole+"."+strings.TrimRight(fraction, "0"), ".")
}
