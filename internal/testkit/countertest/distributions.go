package countertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit"
)

func (b *table) observe(k counter.Key, values ...string) {
	b.t.Helper()
	s := counter.Sample{Key: k}
	for _, v := range values {
		s.Values = append(s.Values, amount(b.t, v))
	}
	if err := b.Store.Observe(b.t.Context(), s); err != nil {
		b.t.Fatal(err)
	}
}

// counts wants how many values each window has.
func (b *table) counts(k counter.Key, want ...int64) []counter.DistributionPoint {
	b.t.Helper()
	got := testkit.Must(b.Store.Distributions(b.t.Context(), len(want), k))(b.t)[0]
	counts := make([]int64, len(got))
	for i := range got {
		counts[i] = got[i].Count
		n := int64(0)
		for _, bucket := range got[i].Buckets {
			n += bucket.Count
		}
		b.equal("Buckets", n, got[i].Count)
	}
	b.equal("Distributions of "+k.Name, counts, want)
	return got
}

// What is exact is exact, and a quantile is within its error.
func testValues(b *table) {
	k, other := counter.Key{Name: "ms"}, counter.Key{Group: "g", Name: "ms"}
	b.equal("Nothing", b.counts(k, 0)[0], counter.DistributionPoint{})
	for i := range 100 {
		b.observe(k, fmt.Sprint(100-i)+".5", fmt.Sprint(i+101))
	}
	b.observe(other, "0", "9000000000000")
	b.observe(other, "0")
	d := b.counts(k, 200)[0]
	b.equal("Sum, Min and Max", fmt.Sprint(d.Sum, d.Min, d.Max, d.Mean()), "20150 1.5 200 100.75")
	for q, want := range map[float64]float64{0: 1.5, 0.5: 100.5, 0.95: 190, 0.99: 198, 1: 200} {
		if got := d.Quantile(q).Float64(); got < want*(1-1.0/64) || got > want*(1+1.0/64) {
			b.t.Errorf("the %v-quantile is %v, want %v", q, got, want)
		}
	}
	d = b.counts(other, 3)[0]
	b.equal("Sum, Min and Max", fmt.Sprint(d.Sum, d.Min, d.Max, len(d.Buckets)), "9000000000000 0 9000000000000 2")
	_, err := b.Store.Get(b.t.Context(), k)
	if err != nil {
		b.t.Error(err)
	}

	// A sum that leaves its range changes nothing, beside it neither.
	for _, bad := range [][]counter.Sample{
		{{Key: counter.Key{Group: "g", Name: "new"}, Values: []counter.Amount{1}}, {Key: other, Values: []counter.Amount{counter.One}}},
		{{Key: k, Values: []counter.Amount{counter.MaxAmount, counter.MaxAmount}}},
		{{Key: k, Values: []counter.Amount{counter.MaxAmount / 2}}, {Key: k, Values: []counter.Amount{counter.MaxAmount / 2}}},
	} {
		if err := b.Store.Observe(b.t.Context(), bad...); !errors.Is(err, counter.ErrRange) {
			b.t.Errorf("%v, want ErrRange", err)
		}
	}
	b.counts(k, 200)
	b.counts(other, 3)
	b.counts(counter.Key{Group: "g", Name: "new"}, 0)
}

// Windows follow the calendar, the past stays as it was, and can be merged.
func testDistributionWindows(b *table) {
	shanghai := zone(b.t, "Asia/Shanghai")
	for _, w := range counter.Windows()[1:] {
		k := counter.Key{Name: "w", Window: w, Zone: shanghai}
		b.observe(k, "1", "2")
		first := b.counts(k, 0, 2)[1].Start
		next := w.Start(w.Index(weir.MicrosOf(b.now), shanghai)+1, shanghai)
		b.at(next.Add(-time.Microsecond))
		b.observe(k, "3")
		b.at(next)
		points := b.counts(k, 0, 3, 0)
		if !points[1].Start.Equal(first) || !points[2].Start.Equal(next) {
			b.t.Errorf("%v: they begin at %v and %v", w, points[1].Start, points[2].Start)
		}
		b.observe(k, "10")
		b.pass(-time.Microsecond) // a clock may go back
		b.observe(k, "4")
		b.pass(time.Microsecond)
		points = b.counts(k, 4, 1)
		merged := points[0].Distribution
		merged.Merge(&points[1].Distribution)
		b.equal("Merged", fmt.Sprint(merged.Count, merged.Sum, merged.Min, merged.Max), "5 20 1 10")
	}
	both := testkit.Must(b.Store.Distributions(b.t.Context(), 2, counter.Key{Name: "none", Window: counter.Day}, counter.Key{Name: "w", Window: counter.Year, Zone: shanghai}))(b.t)
	b.equal("Counts", fmt.Sprint(both[0][1].Count, both[1][0].Count, both[1][1].Count), "0 4 1")
}

// What is older than is kept cannot be read.
func testDistributionRetention(b *table) {
	k := counter.Key{Name: "k", Window: counter.Minute}
	for range 10 {
		b.observe(k, "2")
		b.pass(time.Minute)
	}
	b.counts(k, 1, 1, 0)
	if _, err := b.Store.Distributions(b.t.Context(), 4, k); err == nil {
		b.t.Error("more can be read than is kept")
	}
}

// Many at once lose nothing.
func testObserveConcurrent(b *table) {
	k := counter.Key{Name: "d", Window: counter.Hour}
	b.begin(6, 20, func(user, _ int) error {
		return b.Store.Observe(b.t.Context(), counter.Sample{Key: k, Values: []counter.Amount{counter.Whole(int64(user + 1)), counter.One}})
	})()
	d := b.counts(k, 240)[0]
	b.equal("Sum, Min and Max", fmt.Sprint(d.Sum, d.Min, d.Max), "540 1 6")
}
