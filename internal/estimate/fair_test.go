package estimate

import (
	"math/rand/v2"
	"testing"
)

// usual adds answers of some sources, of 100 to 199 each.
func usual(f *Fair, random *rand.Rand, sources uint32, n int) {
	for range n {
		f.Add(random.Uint32N(sources), 100+random.Uint64N(100))
	}
}

// A quantile is known when there are enough values of enough sources, and is at most a slot too large.
func TestFair(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		sources uint32
		n       int
		known   [3]bool // p50, p95, p99
	}{
		{1, 5000, [3]bool{}}, {3, 5000, [3]bool{}}, {4, 40, [3]bool{}}, {8, 90, [3]bool{true, false, false}},
		{8, 200, [3]bool{true, true, false}}, {4, 5000, [3]bool{true, true, true}}, {1000, 5000, [3]bool{true, true, true}},
	} {
		var f Fair
		usual(&f, random, c.sources, c.n)
		for i, percent := range []int{50, 95, 99} {
			got, known := f.Quantile(percent)
			if low, high := uint64(85+percent), uint64(110+percent)*17/16; known != c.known[i] || known && (got < low || got > high) {
				t.Errorf("%d sources, %d values: p%d is %d, %v", c.sources, c.n, percent, got, known)
			}
		}
		if len(f.values) > fairValues {
			t.Errorf("%d values", len(f.values))
		}
	}
}

// A source cannot lower a quantile by much, however often it asks, nor can many while others ask, too.
func TestFairFlood(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		hostile uint32
		least   uint64
	}{"one": {1, 180}, "as many as others": {10, 165}} {
		var f Fair
		usual(&f, random, 10, 2000)
		for range 1000 {
			for range 20 {
				f.Add(1000+random.Uint32N(c.hostile), 1)
			}
			usual(&f, random, 10, 1)
		}
		if got, known := f.Quantile(95); !known || got < c.least {
			t.Errorf("%s: p95 is %d, %v", name, got, known)
		}
	}
	// The values of who is quiet for long are forgotten.
	var f Fair
	usual(&f, random, 8, 2000)
	for range 30_000 {
		f.Add(100+random.Uint32N(5), 10)
	}
	if got, _ := f.Quantile(95); got > 11 {
		t.Errorf("p95 is %d", got)
	}
	f.Add(1, 1<<63)
}

// A change upwards counts at once, and one downwards when it has lasted.
func TestFairChange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var f Fair
	usual(&f, random, 10, 1000)
	for n := range 5 {
		if got, _ := f.Quantile(95); (got > 500) != (n >= 4) {
			t.Errorf("after %d long ones, p95 is %d", n, got)
		}
		f.Add(uint32(n), 800)
	}
	usual(&f, random, 10, 100)
	if got, _ := f.Quantile(95); got > 210 {
		t.Errorf("p95 is still %d", got)
	}
}
