// Package rounds lets contestants take turns, so that whatever else the machine
// does hits all of them alike, and sums up what came of it.
package rounds

import (
	"cmp"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"
)

// enough rounds give a median; with fewer, one bad moment decides.
const enough = 3

// Turns say who is measured how often, and in which order.
type Turns struct {
	Contestants int
	Rounds      int       // of each
	Deadline    time.Time // after which three rounds must do; zero for never
	Seed        [2]uint64 // for the order, which is another one in each round
}

// Take measures one round after the other, and returns those of each contestant.
// The turn counts the contestants of a round from 0.
func Take[T any](t Turns, one func(turn, contestant int) (T, error)) ([][]T, error) {
	out := make([][]T, t.Contestants)
	order := rand.New(rand.NewPCG(t.Seed[0], t.Seed[1]))
	for r := range t.Rounds {
		if r >= enough && !t.Deadline.IsZero() && time.Now().After(t.Deadline) {
			break
		}
		for turn, i := range order.Perm(t.Contestants) {
			measured, err := one(turn, i)
			if err != nil {
				return nil, err
			}
			out[i] = append(out[i], measured)
		}
	}
	return out, nil
}

// Median returns the round in the middle by one of its figures.
func Median[T any](rounds []T, figure func(T) float64) T {
	sorted := slices.SortedFunc(slices.Values(rounds), func(a, b T) int { return cmp.Compare(figure(a), figure(b)) })
	return sorted[len(sorted)/2]
}

// Ratio compares two contestants by one of their figures in the same round, because the
// weather changes from round to round, and returns the median.
func Ratio[T any](a, b []T, figure func(T) float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = figure(a[i]) / figure(b[i])
	}
	return Median(ratios, func(f float64) float64 { return f })
}

// Cost is what a round took in all.
type Cost struct {
	Wall    time.Duration
	Mallocs uint64
}

// AtOnce does the work in so many goroutines, which all begin at one signal, and
// returns when the last has ended.
func AtOnce(goroutines int, work func(goroutine int)) Cost {
	start := make(chan struct{})
	var ready, done sync.WaitGroup
	for g := range goroutines {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			work(g)
		})
	}
	ready.Wait()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	close(start)
	done.Wait()
	wall := time.Since(begin)
	runtime.ReadMemStats(&after)
	return Cost{wall, after.Mallocs - before.Mallocs}
}
