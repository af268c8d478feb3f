package estimate

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// crowd is clients whose answers follow each other by a second.
type crowd struct {
	Fair
	*rand.Rand
	now time.Time
}

func newCrowd() *crowd {
	return &crowd{Rand: rand.New(rand.NewPCG(1, 2)), now: time.Unix(1_800_000_000, 0)}
}

// add adds a value of a client that owns itself.
func (c *crowd) add(client uint32, value uint64) { c.own(client, client, value) }

func (c *crowd) own(owner, client uint32, value uint64) {
	c.Fair.Add(c.now, Source{owner, client}, value)
	c.now = c.now.Add(time.Second)
}

// usual adds answers of some clients, of 100 to 199 each.
func (c *crowd) usual(clients uint32, n int) {
	for range n {
		c.add(c.Uint32N(clients), 100+c.Uint64N(100))
	}
}

// A quantile is known when there are enough values of enough clients, and is at most a slot too large.
func TestFair(t *testing.T) {
	for _, c := range []struct {
		clients uint32
		n       int
		known   [3]bool // p50, p95, p99
	}{
		{1, 5000, [3]bool{}}, {3, 5000, [3]bool{}}, {4, 40, [3]bool{}}, {8, 90, [3]bool{true, false, false}},
		{8, 200, [3]bool{true, true, false}}, {4, 5000, [3]bool{true, true, true}}, {1000, 5000, [3]bool{true, true, true}},
	} {
		f := newCrowd()
		f.usual(c.clients, c.n)
		for i, percent := range []int{50, 95, 99} {
			got, known := f.Quantile(percent)
			if low, high := uint64(85+percent), uint64(110+percent)*17/16; known != c.known[i] || known && (got < low || got > high) {
				t.Errorf("%d clients, %d values: p%d is %d, %v", c.clients, c.n, percent, got, known)
			}
		}
		if len(f.values) > fairValues {
			t.Errorf("%d values", len(f.values))
		}
		if _, enough := f.Len(); enough != c.known[0] {
			t.Errorf("%d clients, %d values: enough is %v", c.clients, c.n, enough)
		}
	}
}

// A client cannot lower a quantile by much, however often it asks, nor can many clients while as many others ask, nor any
// number of clients of one owner.
func TestFairFlood(t *testing.T) {
	for name, c := range map[string]struct {
		hostile uint32
		owned   bool
		least   uint64
	}{"one": {1, false, 180}, "as many as others": {10, false, 165}, "a thousand of one owner": {1000, true, 180}} {
		f := newCrowd()
		f.usual(10, 2000)
		for range 1000 {
			for range 20 {
				client := 1000 + f.Uint32N(c.hostile)
				if owner := client; c.owned {
					f.own(1, client, 1)
				} else {
					f.own(owner, client, 1)
				}
			}
			f.usual(10, 1)
		}
		if got, known := f.Quantile(95); !known || got < c.least {
			t.Errorf("%s: p95 is %d, %v", name, got, known)
		}
	}
}

// How much an owner of many clients can lower a quantile of others: with a part s of the values that count, p95 becomes what
// 1 - 0.05 / (1 - s) of the others' do not exceed, and with 95 % anything. If all places are taken, and others ask often
// enough, it has as many as each of them.
func TestFairOwner(t *testing.T) {
	for _, c := range []struct {
		others, hostile int
		least, most     uint64
	}{{30, 400, 100, 140}, {200, 200, 180, 200}, {20, 400, 1, 2}, {1000, 10_000, 180, 210}} {
		f := newCrowd()
		for n := range c.hostile {
			f.own(1000, 1000+uint32(n%8), 1)
			if n*c.others/c.hostile < (n+1)*c.others/c.hostile {
				f.usual(4, 1)
			}
		}
		for range lately {
			f.own(1000, 1000+f.Uint32N(8), 1) // the last ones of any client do not matter
		}
		if got, known := f.Quantile(95); !known || got < c.least || got > c.most {
			t.Errorf("%d of others, %d of an owner: p95 is %d, %v", c.others, c.hostile, got, known)
		}
	}
}

// How much clients can lower a quantile that others have for free: with m times as many clients as the others, p95
// becomes what (1 - 0.05 (m + 1)) of the others' answers do not exceed, and with nineteen times as many anything. Rates do not matter.
func TestFairInvented(t *testing.T) {
	for times, least := range map[uint32]uint64{1: 180, 4: 160, 9: 130} {
		f := newCrowd()
		for range 20_000 {
			for range 5 {
				f.add(1000+f.Uint32N(10*times), 1)
			}
			f.usual(10, 1)
		}
		if got, _ := f.Quantile(95); got < least {
			t.Errorf("%d times as many: p95 is %d", times, got)
		}
	}
}

// The values of who is quiet for a day are forgotten, if there are others.
func TestFairQuiet(t *testing.T) {
	f := newCrowd()
	f.usual(8, 2000)
	f.now = f.now.Add(fairAge)
	for range 600 {
		f.add(100+f.Uint32N(5), 10)
	}
	if got, _ := f.Quantile(95); got > 11 {
		t.Errorf("p95 is %d", got)
	}
	f.add(1, 1<<63)
}

// A change upwards counts at once, and one downwards when it has lasted.
func TestFairChange(t *testing.T) {
	f := newCrowd()
	f.usual(10, 1000)
	for n := range 5 {
		if got, _ := f.Quantile(95); (got > 500) != (n >= 4) {
			t.Errorf("after %d long ones, p95 is %d", n, got)
		}
		f.add(uint32(n), 800)
	}
	f.usual(10, 100)
	if got, _ := f.Quantile(95); got > 210 {
		t.Errorf("p95 is still %d", got)
	}
}

// Values come back as they were written, and nothing else is taken for values.
func TestFairBinary(t *testing.T) {
	f := newCrowd()
	for n := range uint64(2000) {
		f.own(1<<32-1, 1<<32-1-uint32(n), 1<<50)
		f.now = f.now.Add(30 * time.Minute)
	}
	text, err := f.AppendBinary(nil)
	var got Fair
	if err != nil || len(text) > 8<<10 || got.UnmarshalBinary(text) != nil || !got.Equal(&f.Fair) || len(got.values) != fairValues {
		t.Fatalf("%d bytes, %d values, %v", len(text), len(got.values), err)
	}
	for n := range len(text) {
		if got.UnmarshalBinary(text[:n]) == nil && got.Equal(&f.Fair) {
			t.Errorf("the first %d bytes are taken for all", n)
		}
	}
	for _, wrong := range [][]byte{nil, {2}, {1, 1}, append(slices.Clone(text), text[1:]...), append([]byte{1, 1, 1, 1, 1, 1, 2, 2, 2, 2}, 0xff, 0xff)} {
		if err := got.UnmarshalBinary(wrong); err == nil {
			t.Errorf("%.20x is taken for values", wrong)
		}
	}
}

// Whoever merges what others have has the same in the end, whatever the order, and once is enough.
func TestFairMerge(t *testing.T) {
	for seed := range uint64(20) {
		all := [3]*crowd{}
		for i := range all {
			all[i] = newCrowd()
			all[i].Rand = rand.New(rand.NewPCG(seed, uint64(i)))
			for range 900 {
				client := all[i].Uint32N(30)
				all[i].own(client%4, client, all[i].Uint64N(1000))
			}
		}
		now := all[0].now
		var sum, again Fair
		for _, i := range all[0].Perm(3) {
			sum.Merge(now, &all[i].Fair)
		}
		for _, i := range []int{2, 0, 1} {
			again.Merge(now, &all[i].Fair)
		}
		if !sum.Equal(&again) || len(sum.values) != fairValues {
			t.Errorf("seed %d: the order matters", seed)
		}
		for range 3 {
			for _, f := range all {
				if sum.Merge(now, &f.Fair); !sum.Equal(&again) {
					t.Fatalf("seed %d: values count twice", seed)
				}
			}
		}
		var none Fair
		if none.Merge(now.Add(-time.Hour), &sum) || len(none.values) > 0 {
			t.Error("values of the future are taken")
		}
	}
}
