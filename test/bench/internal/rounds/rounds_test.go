package rounds

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestTakeInterleaves(t *testing.T) {
	var order []int
	got, err := Take(Turns{Contestants: 4, Rounds: 5}, func(turn, i int) (string, error) {
		if turn != len(order)%4 {
			t.Errorf("turn %d after %d rounds", turn, len(order))
		}
		order = append(order, i)
		return fmt.Sprint(i), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, rounds := range got {
		if want := slices.Repeat([]string{fmt.Sprint(i)}, 5); !slices.Equal(rounds, want) {
			t.Errorf("contestant %d has the rounds %v", i, rounds)
		}
	}
	orders := map[string]bool{}
	for r := range slices.Chunk(order, 4) {
		orders[fmt.Sprint(r)] = true
		if slices.Sort(r); !slices.Equal(r, []int{0, 1, 2, 3}) {
			t.Errorf("a round of %v", r)
		}
	}
	if len(orders) < 2 {
		t.Errorf("all rounds have the same order, %v", orders)
	}
}

func TestTakeStopsAtTheDeadlineAfterThreeRounds(t *testing.T) {
	got, err := Take(Turns{Contestants: 1, Rounds: 9, Deadline: time.Now()}, func(_, _ int) (int, error) { return 0, nil })
	if err != nil || len(got[0]) != 3 {
		t.Errorf("%d rounds, %v", len(got[0]), err)
	}
}

func TestTakeStopsAtAnError(t *testing.T) {
	broken, turns := errors.New("broken"), 0
	if _, err := Take(Turns{Contestants: 2, Rounds: 2}, func(_, _ int) (int, error) { turns++; return 0, broken }); err != broken || turns != 1 {
		t.Errorf("%v after %d turns", err, turns)
	}
}

func TestMedian(t *testing.T) {
	for want, rounds := range map[float64][]float64{7: {7}, 2: {900, 1, 2}, 5: {5, 5, 1, 9, 3}} {
		if got := Median(rounds, func(x float64) float64 { return x }); got != want {
			t.Errorf("the median of %v is %v, not %v", rounds, got, want)
		}
	}
}

// A round in which both are slow does not change how they compare.
func TestRatio(t *testing.T) {
	a, b := []float64{20, 2, 60, 8}, []float64{10, 1, 20, 4}
	if got := Ratio(a, b, func(x float64) float64 { return x }); got != 2 {
		t.Errorf("the ratio is %v", got)
	}
}

func TestAtOnceWaitsForAll(t *testing.T) {
	var sum atomic.Int64
	cost := AtOnce(10, func(g int) { sum.Add(int64(g)) })
	if sum.Load() != 45 || cost.Wall <= 0 {
		t.Errorf("the sum is %d after %v", sum.Load(), cost.Wall)
	}
}
