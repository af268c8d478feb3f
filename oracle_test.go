package weir_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
)

// An oracle decides by the definition alone: it keeps every unit with its time and adds
// all up for each request, in unbounded integers and fractions. It is slow and
// obviously correct.
type oracle struct {
	limit *weir.Compiled
	units []weir.Micros // recorded, in order
	last  weir.Micros   // of the last recorded unit

	level *big.Rat // of a bucket at last
}

func (o *oracle) allows(now weir.Micros, cost int64) bool {
	l := o.limit.Limit()
	period := weir.Micros(l.Period.Microseconds())
	var used int64
	switch l.Algorithm {
	case weir.FixedWindow:
		now = max(now, o.last-o.last%period)
		used = o.between(now-now%period, now-now%period+period)
	case weir.SlidingWindow:
		now = max(now, o.last-o.last%period)
		start := now - now%period
		previous := o.between(start-period, start)
		share := new(big.Int).Mul(big.NewInt(previous), big.NewInt(int64(period-(now-start))))
		used = share.Div(share, big.NewInt(int64(period))).Int64() + o.between(start, start+period)
	case weir.SlidingLog, weir.InFlight:
		now = max(now, o.last)
		used = o.between(now-period+1, now+1)
	case weir.SlidingBuckets:
		width := o.width()
		now = max(now, o.last-o.last%width)
		oldest := max(0, now-period+1)
		used = o.between(oldest-oldest%width, now-now%width+width)
	default:
		return o.levelAt(now).Cmp(big.NewRat(o.limit.Capacity()-cost, 1)) <= 0
	}
	return used+cost <= l.N
}

// width is the length of a sub-window.
func (o *oracle) width() weir.Micros {
	period := weir.Micros(o.limit.Limit().Period.Microseconds())
	buckets := weir.Micros(o.limit.Limit().Buckets)
	if buckets == 0 {
		buckets = min(60, period)
	}
	return (period + buckets - 1) / buckets
}

// between counts the units in [from, to).
func (o *oracle) between(from, to weir.Micros) (n int64) {
	for _, u := range o.units {
		if from <= u && u < to {
			n++
		}
	}
	return n
}

// levelAt is the bucket's level, which drains at N/Period.
func (o *oracle) levelAt(now weir.Micros) *big.Rat {
	if o.level == nil {
		return new(big.Rat)
	}
	rate := big.NewRat(o.limit.Limit().N, o.limit.Limit().Period.Microseconds())
	drained := rate.Mul(rate, big.NewRat(int64(max(0, now-o.last)), 1))
	level := new(big.Rat).Sub(o.level, drained)
	if level.Sign() < 0 {
		return new(big.Rat)
	}
	return level
}

// delay is how long the level takes to drain, in whole microseconds rounded up.
func (o *oracle) delay(now weir.Micros) int64 {
	l := o.limit.Limit()
	t := new(big.Rat).Mul(o.levelAt(now), big.NewRat(l.Period.Microseconds(), l.N))
	up := new(big.Int).Add(t.Num(), new(big.Int).Sub(t.Denom(), big.NewInt(1)))
	return up.Div(up, t.Denom()).Int64()
}

func (o *oracle) record(now weir.Micros, cost int64) {
	if cost == 0 {
		return // and last stays where it was
	}
	if a := o.limit.Limit().Algorithm; a == weir.TokenBucket || a == weir.LeakyBucket {
		o.level = new(big.Rat).Add(o.levelAt(now), big.NewRat(cost, 1))
		o.last = max(o.last, now)
		return
	}
	// Time stands still when the clock steps back; see allows.
	period := weir.Micros(o.limit.Limit().Period.Microseconds())
	switch o.limit.Limit().Algorithm {
	case weir.FixedWindow, weir.SlidingWindow:
		now = max(now, o.last-o.last%period)
	case weir.SlidingBuckets:
		now = max(now, o.last-o.last%o.width())
	case weir.SlidingLog, weir.InFlight:
		now = max(now, o.last)
	}
	for range cost {
		o.units = append(o.units, now)
	}
	o.last = max(o.last, now)
}

// Every verdict and every delay is the oracle's, over whole histories.
func TestAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t)
		checkOracle(t, limit, drawLeaves(t, limit, drawHistory(t, limit, true)))
	})
}

func checkOracle(t rapid.TB, limit *weir.Compiled, steps []step) {
	t.Helper()
	k, o := key{limit: limit}, oracle{limit: limit}
	for i, s := range steps {
		want := s.cost+s.leave <= limit.Capacity() && o.allows(s.now, s.cost+s.leave)
		delay := o.delay(max(s.now, o.last))
		ask := k.take
		if s.debt {
			ask, delay = k.charge, 0
		}
		k.leave = s.leave
		d := ask(s.now, s.cost)
		if d.Allowed != want {
			t.Fatalf("step %d: %v, cost %d at %d: got %v, want %v\n%+v", i, limit.Limit(), s.cost, s.now, d.Allowed, want, d)
		}
		if limit.Limit().Shape && d.Allowed && d.Delay.Microseconds() != delay {
			t.Fatalf("step %d: %v, cost %d at %d: delay %v, want %dus", i, limit.Limit(), s.cost, s.now, d.Delay, delay)
		}
		switch {
		case s.debt:
			k.checkDebt(t, s, d)
			o.record(s.now, s.cost-d.Excess)
		case d.Allowed:
			o.record(s.now, s.cost)
		case limit.Limit().CountDenied:
			o.record(s.now, min(s.cost, limit.Capacity()))
		}
	}
}
