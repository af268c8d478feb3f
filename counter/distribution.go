package counter

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/estimate"
)

const (
	// MaxValues is the maximum number of values in one call of Observe, for all its keys
	// together.
	MaxValues = 1000

	// MaxDistributions is the maximum number of windows of a distribution that are kept,
	// and that one call reads, for all its keys together.
	MaxDistributions = 366

	// MaxBuckets is the maximum number of buckets of a distribution.
	MaxBuckets = 1888

	// fine is the logarithm of how many buckets each power of two has.
	fine = 5
)

// Sample is values that are added to a distribution, such as the response times of a few
// requests, in milliseconds.
type Sample struct {
	// Key is like that of a counter. A distribution and a counter may have the same key.
	Key Key

	Values []Amount // not negative
}

// Distribution tells how values are distributed. It has the numbers of values in buckets
// whose width is 1/32 of the values in them. So a quantile is at most 1.6 % off, however
// many values there are. Count, Sum, Min and Max are exact.
type Distribution struct {
	Count    int64
	Sum      Amount
	Min, Max Amount // 0 if there are no values
	Buckets  []Bucket
}

// Bucket is a part of a distribution, for stores. Buckets have ascending numbers, and none
// is empty.
type Bucket struct {
	Number int // below MaxBuckets
	Count  int64
}

// DistributionPoint is a distribution in one window.
type DistributionPoint struct {
	Start time.Time // start of the window; zero for Ever
	Distribution
}

// Distribution returns the distribution of the values, which must be valid. The error is
// ErrRange if their sum leaves the range.
func (s *Sample) Distribution() (d Distribution, err error) {
	for i, v := range s.Values {
		if v > MaxAmount-d.Sum {
			return d, ErrRange
		}
		if i == 0 {
			d.Min, d.Max = v, v
		}
		d.Count++
		d.Sum += v
		d.Min, d.Max = min(d.Min, v), max(d.Max, v)
		d.put(Bucket{Number: int(estimate.Slot(uint64(v), fine)), Count: 1})
	}
	return d, nil
}

func (d *Distribution) put(b Bucket) {
	i, found := slices.BinarySearchFunc(d.Buckets, b, func(a, b Bucket) int { return cmp.Compare(a.Number, b.Number) })
	if !found {
		d.Buckets = slices.Insert(d.Buckets, i, Bucket{Number: b.Number})
	}
	d.Buckets[i].Count += b.Count
}

// Merge adds the values of another distribution: of another window, for example.
func (d *Distribution) Merge(other *Distribution) {
	if other.Count == 0 {
		return
	}
	if d.Count == 0 {
		d.Min, d.Max = other.Min, other.Max
	}
	d.Count += other.Count
	d.Sum += other.Sum
	d.Min, d.Max = min(d.Min, other.Min), max(d.Max, other.Max)
	for _, b := range other.Buckets {
		d.put(b)
	}
}

// Quantile returns the q-quantile, for q from 0 to 1: 0.95 is the 95th percentile, the
// value that 95 % of the values do not exceed. It is 0 if there are no values.
func (d *Distribution) Quantile(q float64) Amount {
	rank := max(int64(math.Ceil(q*float64(d.Count))), 1)
	for _, b := range d.Buckets {
		if rank -= b.Count; rank <= 0 {
			bottom, width := estimate.Bottom(uint(b.Number), fine)
			return min(max(Amount(bottom+width/2), d.Min), d.Max)
		}
	}
	return d.Max
}

// Mean returns the average, rounded down; 0 if there are no values.
func (d *Distribution) Mean() Amount {
	if d.Count == 0 {
		return 0
	}
	return d.Sum / Amount(d.Count)
}

// Summary is a distribution in figures. The percentiles P50, P95 and P99 are quantiles.
type Summary struct {
	Start time.Time // start of the window; zero for Ever and for several windows together
	Count int64

	Sum, Mean, Min, Max, P50, P95, P99 Amount // 0 if there are no values
}

// Summarize returns the figures of each window, and of all windows together.
func Summarize(points []DistributionPoint) (each []Summary, merged Summary) {
	var all Distribution
	for i := range points {
		each = append(each, points[i].summary())
		each[i].Start = points[i].Start
		all.Merge(&points[i].Distribution)
	}
	return each, all.summary()
}

func (d *Distribution) summary() Summary {
	return Summary{
		Count: d.Count, Sum: d.Sum, Mean: d.Mean(), Min: d.Min, Max: d.Max,
		P50: d.Quantile(0.5), P95: d.Quantile(0.95), P99: d.Quantile(0.99),
	}
}

// ValidateObserve checks the samples of a call, for stores.
func ValidateObserve(samples []Sample) error {
	if err := checkBatch("samples", len(samples), MaxBatch); err != nil {
		return err
	}
	values := 0
	for i := range samples {
		s := &samples[i]
		if err := cmp.Or(s.Key.validate(), s.Key.checkPlain(), checkBatch("values", len(s.Values), MaxValues)); err != nil {
			return err
		}
		for _, v := range s.Values {
			if v < 0 || v > MaxAmount {
				return invalid("values", "%v is out of range; send values from 0 to %v", v, MaxAmount)
			}
		}
		values += len(s.Values)
	}
	if values > MaxValues {
		return invalid("values", "there are %d; send at most %d at once", values, MaxValues)
	}
	return nil
}

func (k *Key) checkPlain() error {
	if k.Distinct {
		return invalid("distinct", "a distribution has values, not members; leave it out")
	}
	return nil
}

// ValidateDistributions checks the arguments of Distributions, for stores.
func ValidateDistributions(n int, keys []Key, kept Retention) error {
	if err := ValidateKeys(keys); err != nil {
		return err
	}
	for i := range keys {
		if err := keys[i].checkPlain(); err != nil {
			return err
		}
		if most := kept.Distributions(keys[i].Window); n < 1 || n > most {
			return invalid("n", "%d windows of a distribution by %v cannot be read; request 1 to %d", n, keys[i].Window, most)
		}
	}
	if n*len(keys) > MaxDistributions {
		return invalid("n", "%d windows of %d distributions are too many at once; request at most %d together", n, len(keys), MaxDistributions)
	}
	return nil
}

// Distributions returns how many windows of a distribution are kept: as many as of a
// counter, but at most MaxDistributions.
func (r Retention) Distributions(w Window) int { return min(r.Windows(w), MaxDistributions) }

// DistributionAfter returns how long after its last change a window of a distribution may
// be dropped.
func (r Retention) DistributionAfter(w Window) time.Duration { return r.after(r.Distributions(w), w) }
