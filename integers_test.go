package weir

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestMulDiv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.Int64Range(1, math.MaxInt64).Draw(t, "c")
		b := rapid.Int64Range(0, c).Draw(t, "b") // so that the quotient fits
		a := rapid.Int64Range(0, math.MaxInt64).Draw(t, "a")
		product := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		down, rest := new(big.Int).QuoRem(product, big.NewInt(c), new(big.Int))
		up := new(big.Int).Set(down)
		if rest.Sign() > 0 {
			up.Add(up, big.NewInt(1))
		}
		if got := mulDiv(a, b, c); got != down.Int64() {
			t.Fatalf("mulDiv(%d, %d, %d) = %d, want %d", a, b, c, got, down)
		}
		if got := mulDivUp(a, b, c); got != up.Int64() {
			t.Fatalf("mulDivUp(%d, %d, %d) = %d, want %d", a, b, c, got, up)
		}
		if a > math.MaxInt64-c {
			return
		}
		if got, want := divUp(a, c), (a+c-1)/c; got != want {
			t.Fatalf("divUp(%d, %d) = %d, want %d", a, c, got, want)
		}
	})
}

func TestMulCap(t *testing.T) {
	for _, c := range [][3]int64{
		{0, 5, 0}, {1 << 31, 1 << 31, 1 << 62}, {math.MaxInt64, 1, math.MaxInt64},
		{1 << 32, 1 << 31, math.MaxInt64}, {1 << 32, 1 << 32, math.MaxInt64}, {math.MaxInt64, math.MaxInt64, math.MaxInt64},
	} {
		if got := mulCap(c[0], c[1]); got != c[2] {
			t.Errorf("mulCap(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
