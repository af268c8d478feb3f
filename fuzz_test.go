package weir_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// Whatever is accepted is valid, and reads back as it was.
func FuzzParseLimit(f *testing.F) {
	for _, s := range []string{"100/1m", "leaky_bucket 7/1s burst 3 shape", "sliding_buckets 5/1h buckets 60 count_denied", "x/y", "1/1w burst", "1/9e9s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := weir.ParseLimit(s)
		if err != nil {
			return
		}
		if err := l.Validate(); err != nil {
			t.Fatalf("ParseLimit(%q) returned an invalid limit: %v", s, err)
		}
		again, err := weir.ParseLimit(l.String())
		if err != nil || again != l {
			t.Fatalf("%q was read as %+v, written as %q, read as %+v, %v", s, l, l.String(), again, err)
		}
	})
}

// Decide survives any state, also one that no limiter ever made, and what it
// says of its own states is true.
func FuzzDecide(f *testing.F) {
	f.Add(uint8(0), int64(100), int64(60_000_000), int64(200), 0, uint8(0), int64(1), int64(5), int64(7), int64(3), int64(100), 4, int64(0))
	f.Add(uint8(4), int64(3), int64(5), int64(0), 0, uint8(2), int64(9), int64(1), int64(2), int64(2), int64(1), 1, int64(1))
	f.Add(uint8(5), int64(3), int64(50), int64(0), 7, uint8(2), int64(60), int64(1), int64(2), int64(20), int64(1), 7, int64(2))
	f.Add(uint8(0), int64(100), int64(60_000_000), int64(200), 0, uint8(0), int64(1), int64(5), int64(7), int64(3), int64(100), 4, int64(40))
	f.Fuzz(func(t *testing.T, algorithm uint8, n, period, burst int64, buckets int, flags uint8, fresh, a, b, now, cost int64, tail int, leave int64) {
		l := weir.Limit{
			Algorithm: weir.Algorithm(algorithm), N: n, Burst: burst, Period: time.Duration(period) * time.Microsecond,
			Buckets: buckets, Shape: flags&1 != 0, CountDenied: flags&2 != 0,
		}
		c, err := l.Compile()
		if err != nil {
			return
		}
		const exact = 1 << 53
		within := func(x int64) int64 { return max(0, x) % exact }
		k := key{limit: c, Record: weir.Record{
			State: weir.State{Fresh: weir.Micros(within(fresh)), A: within(a), B: within(b)},
			Tail:  make([]int64, max(0, tail)%5000),
		}}
		at := weir.Micros(now % (exact / 2)) // also before the epoch
		op := weir.Op{Limit: c, Cost: max(1, cost), Leave: max(0, leave) % (weir.MaxUnits + 1)}
		for i := range k.Tail {
			k.Tail[i] = within(a*int64(i) + b)
		}
		op.Peek(k.State, k.Tail, at)
		next, _ := op.Decide(k.State, k.Tail, at) // of a state from nowhere: anything but a panic
		if c.TailLen(next) < 1<<16 {
			k.Keep(c, next)
			k.take(at+weir.Micros(period), 1)
		}

		k.State, k.Tail = weir.State{}, nil
		k.take(at, max(1, min(cost, c.Capacity())))
		k.leave = op.Leave
		d := k.take(at, op.Cost)
		if d.Remaining < 0 || d.Remaining > d.Limit || d.ResetAfter < 0 || d.RetryAfter < 0 || d.Delay < 0 {
			t.Fatalf("%v: %+v", l, d)
		}
		if !d.Allowed && d.RetryAfter != weir.Never {
			then := at + weir.Micros(d.RetryAfter.Microseconds())
			if !k.peek(then, op.Cost).Allowed || k.peek(then-1, op.Cost).Allowed {
				t.Fatalf("%v: cost %d: %v is not the first instant", l, op.Cost, d.RetryAfter)
			}
		}
	})
}

// What no limiter has written counts as nothing and crashes nothing.
func TestDamagedStateCountsAsNothing(t *testing.T) {
	for _, c := range []struct {
		limit string
		state weir.State
		tail  []int64
	}{
		{"token_bucket 5/1m", weir.State{Fresh: 200, A: 9}, nil},
		{"sliding_log 5/100us", weir.State{Fresh: 200, A: 5, B: 5}, nil},
		{"sliding_log 5/100us", weir.State{Fresh: 200, A: 5, B: 5}, []int64{150}},
		{"sliding_log 5/100us", weir.State{Fresh: 200, A: 1, B: 2}, []int64{150, 150}},
		{"sliding_buckets 5/100us buckets 2", weir.State{Fresh: 200, A: 5, B: 5}, nil},
		{"sliding_buckets 5/100us buckets 2", weir.State{Fresh: 400, A: 5, B: 5}, nil},
		{"sliding_buckets 5/100us buckets 2", weir.State{Fresh: 200, A: 1000, B: 5}, nil},
		{"sliding_buckets 5/400us buckets 2", weir.State{Fresh: 260, A: 5, B: 5}, []int64{1, 1}},
	} {
		k := key{limit: weir.MustCompile(c.limit), Record: weir.Record{State: c.state, Tail: c.tail}}
		if d := k.take(149, 1); !d.Allowed || d.Remaining != 4 {
			t.Errorf("%s in state %+v: %+v, want 4 left", c.limit, c.state, d)
		}
		if d := k.take(149, 4); !d.Allowed || k.peek(149, 1).Allowed {
			t.Errorf("%s in state %+v: %+v, and then more", c.limit, c.state, d)
		}
		for now := weir.Micros(0); now < 500; now += 7 {
			k.take(now, 2) // anything but a panic
		}
	}
}
