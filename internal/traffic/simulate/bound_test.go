package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/traffic/scenario"
)

var limits = []string{
	"100/1m", "7/1s", "1/1s", "1/1us", "5/1us", "1/2us", "10/7us", "3/100us",
	"100/1m burst 20", "10/1s burst 35", "sliding_buckets 10/1s buckets 3",
	"sliding_window 20/1m count_denied",
}

func TestBoundIsNeverExceeded(t *testing.T) {
	for _, limit := range limits {
		for _, p := range Patterns() {
			for _, l := range runAll(t, limit, p.Name).Lanes {
				if l.Worst > l.Bound {
					t.Errorf("%s, %s: %d units within a period, the bound is %d", l.Limit, p.Name, l.Worst, l.Bound)
				}
			}
		}
	}
}

// TestBoundIsNeverExceededAtRandom has limits and traffic so small that all
// corners are met.
func TestBoundIsNeverExceededAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		limit := mustLimit(t, fmt.Sprintf("%d/%dus burst %d", 1+random.IntN(6), 1+random.IntN(12), 1+random.IntN(9)))
		requests := randomRequests(random)
		lanes, _ := AllLanes(limit)
		for _, lane := range lanes {
			o := play(lane.Limit, requests)
			if got := measure(lane.Limit, requests, &o); got.Worst > got.Bound {
				t.Fatalf("%s: %d units within a period, the bound is %d, for %+v", lane.Limit.Limit(), got.Worst, got.Bound, requests)
			}
		}
	}
}

func randomRequests(random *rand.Rand) []Request {
	var c collector
	for range 40 {
		c.addRequest(Request{
			At:   weir.Micros(random.Int64N(40)),
			Key:  []string{"a", "b"}[random.IntN(2)],
			Cost: 1 + random.Int64N(1+random.Int64N(4)),
		})
	}
	return c.sorted()
}

// TestBoundIsReached shows that no bound is higher than it need be.
func TestBoundIsReached(t *testing.T) {
	for _, c := range []struct {
		limit, lane, traffic string
		want                 int64
	}{
		{"10/1ms", "fixed_window", "10@999us,10@1ms", 20},
		{"10/1ms", "sliding_window", "10@999us,10@1998us", 20},
		{"10/5us", "sliding_window", "10@4us,10/1us@8us..9us", 16},
		{"10/1ms", "sliding_buckets", "30@0s..1ms", 10},
		{"10/1ms", "sliding_log", "30@0s..1ms", 10},
		{"10/1ms burst 25", "token_bucket", "25@0s,1/1us@0s..1ms", 34},
		{"10/1ms burst 25", "leaky_bucket", "25@0s,1/1us@0s..1ms", 34},
		{"10/1ms burst 25", shaping, "25@0s", 10},
		{"5/1us", "fixed_window", "50@0s", 5},
		{"5/1us", "token_bucket", "50@0s,50@1us", 5},
	} {
		limit := mustLimit(t, c.limit)
		lanes, err := Lanes(limit, c.lane)
		if err != nil {
			t.Fatal(err)
		}
		got := Run(limit, lanes, mustTraffic(t, c.traffic, limit), 10).Lanes[0]
		if got.Worst != c.want || got.Bound != c.want {
			t.Errorf("%s %s: worst %d, bound %d, want %d for both", c.lane, c.limit, got.Worst, got.Bound, c.want)
		}
	}
}

// TestPlayIsTheModel compares with the store that all others are compared with.
func TestPlayIsTheModel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		limit := mustLimit(t, fmt.Sprintf("%d/%dus", 1+random.IntN(6), 1+random.IntN(12)))
		requests := randomRequests(random)
		lanes, _ := AllLanes(limit)
		for _, lane := range lanes {
			o := play(lane.Limit, requests)
			model := scenario.NewModel()
			for i, r := range requests {
				model.Now = r.At
				d, err := model.Take(context.Background(), nil, weir.Op{Key: r.Key, Limit: lane.Limit, Cost: r.Cost})
				if err != nil {
					t.Fatal(err)
				}
				released := r.At + weir.Micros(d[0].Delay.Microseconds())
				if d[0].Allowed != o.allowed[i] || o.allowed[i] && released != o.released(i, requests) {
					t.Fatalf("%s: request %d of %+v: the model says %+v", lane.Limit.Limit(), i, requests, d[0])
				}
			}
		}
	}
}
