package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// bounds are those of the histogram of decisions. One in memory takes less than a
// microsecond, one in Redis a tenth of a millisecond or the timeout, 50 ms.
var bounds = [...]time.Duration{
	time.Microsecond, 2500 * time.Nanosecond, 5 * time.Microsecond,
	10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond,
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond,
}

// timings is a histogram with two atomic additions an observation, where the one of
// the client library has four and a loop, because it also keeps sum and count in step.
// Here the sum may be ahead of the count by what is being observed.
type timings struct {
	buckets [len(bounds) + 1]atomic.Uint64 // not cumulative; the last one has no bound
	sum     atomic.Int64                   // nanoseconds
}

func (t *timings) observe(took time.Duration) {
	i := 0
	for i < len(bounds) && took > bounds[i] {
		i++
	}
	t.buckets[i].Add(1)
	t.sum.Add(int64(max(took, 0)))
}

// sumOf adds up the stripes, as Prometheus wants it.
func sumOf(desc *prometheus.Desc, all *[stripes]stripe) prometheus.Metric {
	var counts [len(bounds) + 1]uint64
	var sum time.Duration
	for i := range all {
		t := &all[i].decision
		for b := range counts {
			counts[b] += t.buckets[b].Load()
		}
		sum += time.Duration(t.sum.Load())
	}
	cumulative := make(map[float64]uint64, len(bounds))
	total := uint64(0)
	for b, bound := range bounds {
		total += counts[b]
		cumulative[bound.Seconds()] = total
	}
	return prometheus.MustNewConstHistogram(desc, total+counts[len(bounds)], sum.Seconds(), cumulative)
}
