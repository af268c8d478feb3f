package redis

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/memory"
)

// Whatever travels together is decided as if each request had come by itself, in order,
// although singles are put in order by key.
func TestBatchIsASequence(t *testing.T) {
	now := weir.Micros(1_790_000_000_000_000)
	clock := func() weir.Micros { return now }
	s := storeOn(t, connect(t), Options{Clock: clock})
	reference := memory.New(memory.Options{Clock: clock})
	groups := [][]*weir.Compiled{
		{weir.MustCompile("token_bucket 9/1m"), weir.MustCompile("token_bucket 5/1h"), weir.MustCompile("leaky_bucket 7/1m burst 5 shape")},
		{weir.MustCompile("fixed_window 9/1m"), weir.MustCompile("fixed_window 5/1s count_denied")},
		{weir.MustCompile("sliding_window 9/1m"), weir.MustCompile("sliding_window 30/1h")},
		{weir.MustCompile("token_bucket 9/1m"), weir.MustCompile("fixed_window 9/1m")},
		{weir.MustCompile("token_bucket 9/1m"), weir.MustCompile("token_bucket 4/1m")}, // of one key
		{weir.MustCompile("sliding_log 9/1m"), weir.MustCompile("token_bucket 9/1m")},
	}
	random := rand.New(rand.NewPCG(1, 2))
	forms := map[form]int{}
	for step := range 600 {
		limits := groups[random.IntN(len(groups))]
		var batch []*check
		var want []weir.Decision
		for range 1 + random.IntN(20) {
			op := weir.Op{Key: fmt.Sprintf("%d:%d", len(limits), random.IntN(5)), Limit: limits[random.IntN(len(limits))], Cost: 1}
			if random.IntN(4) == 0 {
				op.Cost, op.MaxDelay = random.Int64N(4)+1, time.Duration(random.Int64N(60))*time.Second
			}
			c := newCheck(take, 0)
			c.add(op, s.keyOf(&op))
			batch = append(batch, c)
			d, err := reference.Take(t.Context(), nil, op)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, d[0])
		}
		r := newRequest(batch)
		forms[r.form]++
		if err := s.call(r); err != nil {
			t.Fatal(err)
		}
		for i, c := range batch {
			if c.err != nil || c.decisions[0] != want[i] {
				t.Fatalf("step %d, request %d of %d, %v: %+v %v, want %+v", step, i, len(batch), c.ops[0].Limit.Limit(), c.decisions[0], c.err, want[i])
			}
		}
		now += weir.Micros(random.Int64N(20_000_000))
	}
	if forms[singles] < 100 || forms[columns] < 100 {
		t.Errorf("not both forms were tried: %v", forms)
	}
}
