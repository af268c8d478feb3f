package weir

import (
	"math/rand/v2"
	"testing"
)

// The short way to decide what fits agrees with the general one: on states of another N, on those
// that no limiter writes, and near the end of exact time.
func TestDecideInFewSteps(t *testing.T) {
	short := 0
	for _, text := range []string{"10/1s", "7/1m", "1000000/1h", "leaky_bucket 3/1s", "token_bucket 5/1m burst 50", "fixed_window 10/1s", "fixed_window 1000000/1d"} {
		c := MustCompile(text)
		for range 20_000 {
			now := Micros(rand.Int64N(1 << 51))
			if rand.IntN(4) == 0 {
				now = exact - Micros(rand.Int64N(1<<rand.IntN(40)))
			}
			s := State{Fresh: now + Micros(rand.Int64N(2*c.period)-c.period/2), A: rand.Int64N(1 << rand.IntN(53)), B: c.limit.N + rand.Int64N(3) - 1}
			if rand.IntN(3) == 0 {
				s = State{}
			}
			op := Op{Limit: c, Cost: 1 + rand.Int64N(c.capacity+c.capacity/2+1), Leave: rand.Int64N(2) * rand.Int64N(c.capacity), Always: rand.IntN(2) == 0}
			var got, want Decision
			gotNext, wantNext := op.decide(s, nil, now, &got), op.decideAny(s, nil, now, 0, &want)
			if gotNext != wantNext || got != want {
				t.Fatalf("%s at %d: %+v of %+v is %+v, %+v; want %+v, %+v", text, now, op, s, got, gotNext, want, wantNext)
			}
			if op.Always && got.Allowed {
				short++
			}
		}
	}
	if short == 0 {
		t.Error("nothing fitted")
	}
}
