package frame

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Few are counted exactly, many within three times the usual error, and merging is as
// if one had seen all.
func TestDistinct(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 3, 10, 100, 1000, 30_000, 1_000_000} {
		var one, other, both Distinct
		for i := range n {
			hash := random.Uint64()
			for range 2 {
				both.Add(hash)
			}
			if one.Add(hash); i%3 == 0 {
				other.Add(hash)
			}
		}
		other.Merge(&one)
		got := both.Count()
		if off := math.Abs(float64(got) - float64(n)); off > 0.28*float64(n) || n <= 3 && off > 0 {
			t.Errorf("%d were counted as %d", n, got)
		}
		if other.Count() != got || other != both {
			t.Errorf("of %d, merged: %d, want %d", n, other.Count(), got)
		}
	}
}

func TestDistinctExtremes(t *testing.T) {
	var d Distinct
	d.Add(0)
	d.Add(math.MaxUint64)
	if d.Count() != 2 {
		t.Errorf("two are %d", d.Count())
	}
}

// Frames that were written before clients were counted are still read; those have
// clients, and come back the same.
func TestClientsAreKept(t *testing.T) {
	f := &Frame{Requests: Counts{Allowed: 3}}
	old := f.Append(nil)
	old = old[:len(old)-2] // two empty lists
	old[0] = 1
	if got, err := Decode(old); err != nil || got.Requests != f.Requests || got.Clients != (Clients{}) {
		t.Errorf("%+v, %v", got, err)
	}
	for i := range uint64(1000) {
		f.Clients.Add(i*0x9E3779B97F4A7C15, i%10 == 0)
	}
	kept := f.Append(nil)
	got, err := Decode(kept)
	if err != nil || got.Clients != f.Clients {
		t.Errorf("%v: %d clients, want %d", err, got.Clients.All.Count(), f.Clients.All.Count())
	}
	if len(kept) > 2*2*registers+16 {
		t.Errorf("two sets take %d bytes", len(kept))
	}
}
