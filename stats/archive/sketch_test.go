package archive

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// honest checks that a sketch tells the truth about what really came.
func honest(t interface{ Fatalf(string, ...any) }, s Sketch, truth map[string]int64) {
	total := int64(0)
	for _, n := range truth {
		total += n
	}
	if s.Total != total {
		t.Fatalf("%d in all, want %d", s.Total, total)
	}
	seen := map[string]bool{}
	for i, e := range s.Entries {
		seen[e.Key] = true
		if n := truth[e.Key]; n > e.Count || n < e.Count-e.Error {
			t.Fatalf("%q came %d times, not %d to %d", e.Key, n, e.Count-e.Error, e.Count)
		}
		if i > 0 && e.Count > s.Entries[i-1].Count {
			t.Fatalf("%q is in the wrong place", e.Key)
		}
	}
	for key, n := range truth {
		if !seen[key] && n > s.Floor {
			t.Fatalf("%q came %d times, and the floor is %d", key, n, s.Floor)
		}
	}
}

// Whatever is counted, merged and cut, the true numbers are within what is said.
func TestSketchesAreHonest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth := map[string]int64{}
		var merged Sketch
		for range rapid.IntRange(1, 5).Draw(t, "sketches") {
			c, own := NewCounter(rapid.IntRange(1, 6).Draw(t, "size")), map[string]int64{}
			for range rapid.IntRange(0, 60).Draw(t, "arrivals") {
				key := fmt.Sprint("k", rapid.IntRange(0, 12).Draw(t, "key"))
				n := rapid.Int64Range(1, 5).Draw(t, "n")
				c.Add([]byte(key), n)
				own[key] += n
				truth[key] += n
			}
			s := c.Sketch()
			honest(t, s, own)
			if len(s.Entries) > 0 && s.Floor > s.Total/int64(len(s.Entries)) {
				t.Fatalf("the floor is %d of %d with %d places", s.Floor, s.Total, len(s.Entries))
			}
			merged.Merge(&s)
			merged.Trim(rapid.IntRange(1, 9).Draw(t, "trim"))
		}
		honest(t, merged, truth)
	})
}

// A sum of sketches is what merging them says.
func TestSumIsMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*Sketch
		var merged Sketch
		for _, s := range rapid.SliceOfN(sketches, 0, 5).Draw(t, "sketches") {
			all = append(all, &s)
			merged.Merge(&s)
		}
		sum := SumSketches(all)
		if fmt.Sprint(sum) != fmt.Sprint(merged) {
			t.Fatalf("%+v, want %+v", sum, merged)
		}
		for _, e := range sum.Entries {
			if sum.Of(e.Key) != e.Count {
				t.Fatalf("%q is not found in %+v", e.Key, sum)
			}
		}
		if sum.Of("never") != 0 {
			t.Fatal("a key that never came is found")
		}
	})
}

// A key that comes often is found among a million that do not.
func TestCounterFindsHeavyKeys(t *testing.T) {
	c := NewCounter(100)
	for i := range 1_000_000 {
		c.Add(fmt.Appendf(nil, "once%d", i), 1)
		if i%20 == 0 {
			c.Add([]byte("often"), 1)
		}
	}
	s := c.Sketch()
	if len(s.Entries) != 100 || s.Entries[0].Key != "often" {
		t.Fatalf("%d entries, first %+v", len(s.Entries), s.Entries[0])
	}
	if e := s.Entries[0]; e.Count < 50_000 || e.Count-e.Error > 50_000 || s.Floor > s.Total/100 {
		t.Errorf("%+v, floor %d of %d", e, s.Floor, s.Total)
	}
}

func TestSumOfBothHalves(t *testing.T) {
	r := Ranking{
		Allowed: Sketch{Entries: []Entry{{"a", 10, 0}, {"b", 4, 1}}, Floor: 2, Total: 20},
		Denied:  Sketch{Entries: []Entry{{"b", 9, 0}}, Floor: 1, Total: 9},
	}
	s := SumSketches([]*Sketch{&r.Allowed, &r.Denied})
	want := []Entry{{"b", 13, 1}, {"a", 11, 1}}
	if fmt.Sprint(s.Entries) != fmt.Sprint(want) || s.Floor != 3 || s.Total != 29 {
		t.Errorf("%+v, want %v", s, want)
	}
	if r.Allowed.Entries[0].Count != 10 {
		t.Error("the halves have changed")
	}
}

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
