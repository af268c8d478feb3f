package counter_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/counter"
)

// A quantile is at most 1.6 % off the value of its rank, and a merged distribution is that of
// all values.
func TestQuantiles(t *testing.T) {
	values := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) counter.Amount { return counter.Amount(rapid.Int64Range(0, 200).Draw(t, "few")) }),
		rapid.Custom(func(t *rapid.T) counter.Amount {
			return counter.Whole(rapid.Int64Range(0, 60_000).Draw(t, "ms"))
		}),
		rapid.Custom(func(t *rapid.T) counter.Amount {
			return counter.Amount(math.Exp(rapid.Float64Range(0, 40).Draw(t, "log")))
		}),
	)
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.SliceOfN(values, 0, 50), 1, 4).Draw(rt, "values")
		var merged counter.Distribution
		for _, part := range parts {
			d, err := (&counter.Sample{Values: part}).Distribution()
			if err != nil {
				rt.Fatal(err)
			}
			merged.Merge(&d)
		}
		all := slices.Concat(parts...)
		whole, err := (&counter.Sample{Values: all}).Distribution()
		if err != nil || whole.Count != merged.Count || whole.Sum != merged.Sum || whole.Min != merged.Min || whole.Max != merged.Max || !slices.Equal(whole.Buckets, merged.Buckets) {
			rt.Fatalf("%v: merged %+v\nwant %+v", err, merged, whole)
		}
		if len(all) == 0 {
			if merged.Quantile(0.5) != 0 || merged.Mean() != 0 {
				rt.Fatalf("nothing has the median %v", merged.Quantile(0.5))
			}
			return
		}
		slices.Sort(all)
		for _, q := range []float64{0, 0.5, 0.95, 0.99, 1} {
			want := all[max(int(math.Ceil(q*float64(len(all)))), 1)-1]
			got := merged.Quantile(q)
			if off := math.Abs(got.Float64() - want.Float64()); off > want.Float64()/64 {
				rt.Fatalf("the %v-quantile is %v, want %v, of %v", q, got, want, all)
			}
		}
		for i, b := range merged.Buckets {
			if b.Number < 0 || b.Number >= counter.MaxBuckets || b.Count < 1 || i > 0 && b.Number <= merged.Buckets[i-1].Number {
				rt.Fatalf("%+v", merged.Buckets)
			}
		}
	})
	if d, err := (&counter.Sample{Values: []counter.Amount{counter.MaxAmount}}).Distribution(); err != nil || d.Buckets[0].Number >= counter.MaxBuckets || d.Quantile(0.5) != counter.MaxAmount {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := (&counter.Sample{Values: []counter.Amount{counter.MaxAmount, 1}}).Distribution(); err != counter.ErrRange {
		t.Errorf("beyond the range: %v", err)
	}
}
