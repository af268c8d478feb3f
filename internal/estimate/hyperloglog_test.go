package estimate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The mean error is that of the theory, from few values to many.
func TestError(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, power := range []int{7, 10} {
		usual := 1.04 / math.Sqrt(float64(int(1)<<power))
		for _, n := range []int{1, 10, 100, 1000, 3000, 20_000} {
			const times = 60
			squares, sum := 0.0, 0.0
			for range times {
				registers, counts := make([]uint8, 1<<power), make([]int32, Ranks(power))
				for range n {
					at, rank := Register(random.Uint64(), power)
					registers[at] = max(registers[at], rank)
				}
				for _, rank := range registers {
					counts[rank]++
				}
				off := Distinct(counts)/float64(n) - 1
				squares, sum = squares+off*off, sum+off
			}
			if deviation := math.Sqrt(squares / times); deviation > 1.3*usual {
				t.Errorf("2^%d registers, %d values: %.3f, want %.3f", power, n, deviation, usual)
			}
			if bias := math.Abs(sum / times); bias > 4*usual/math.Sqrt(times) {
				t.Errorf("2^%d registers, %d values: the mean is off by %.4f", power, n, bias)
			}
		}
	}
}

func TestExtremes(t *testing.T) {
	counts := make([]int32, Ranks(7))
	counts[0] = 128
	if got := Distinct(counts); got != 0 {
		t.Errorf("nothing is estimated as %v", got)
	}
	counts[0], counts[len(counts)-1] = 0, 128
	if got := Distinct(counts); got < 1<<60 {
		t.Errorf("full registers are estimated as %v", got)
	}
	for hash, want := range map[uint64][2]int{0: {0, 58}, math.MaxUint64: {127, 1}, 1: {0, 57 - 1 + 1}, 1 << 56: {0, 1}, 1 << 57: {1, 58}} {
		if at, rank := Register(hash, 7); at != want[0] || int(rank) != want[1] || int(rank) >= Ranks(7) {
			t.Errorf("%#x is %d in %d, want %v", hash, rank, at, want)
		}
	}
}
