package bench

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/traffic/loadgen"
)

// enough rounds give a median; with fewer, one bad moment decides.
const enough = 3

// Turns say who is measured how often, and in which order: contestants take turns, so that
// whatever else the machine does hits all of them alike.
type Turns struct {
	What     string // is measured
	Names    []string
	Rounds   int       // of each
	Deadline time.Time // after which three rounds must do; zero for never
	Seed     [2]uint64 // for the order, which is another one in each round
}

// Results are the rounds of each contestant.
type Results[T any] struct {
	Names  []string
	Rounds [][]T
}

// Take measures one round after the other. The turn counts the contestants of a round from 0.
func Take[T any](r *Run, t Turns, one func(turn, contestant int) (T, error)) Results[T] {
	out := make([][]T, len(t.Names))
	order := rand.New(rand.NewPCG(t.Seed[0], t.Seed[1]))
	for n := range t.Rounds {
		if n >= enough && !t.Deadline.IsZero() && time.Now().After(t.Deadline) {
			break
		}
		for turn, i := range order.Perm(len(t.Names)) {
			r.Step(n*len(t.Names)+turn, t.Rounds*len(t.Names), t.What)
			measured, err := one(turn, i)
			if err != nil {
				r.Fatalf("%s: %s: %v", t.What, t.Names[i], err)
			}
			out[i] = append(out[i], measured)
		}
	}
	return Results[T]{t.Names, out}
}

// At is the place of a contestant.
func (r Results[T]) At(name string) int { return slices.Index(r.Names, name) }

// Median is that of a contestant's figures.
func (r Results[T]) Median(i int, figure func(T) float64) float64 {
	return figure(Median(r.Rounds[i], figure))
}

// Ratio compares two contestants by one of their figures in the same round, because the
// weather changes from round to round, and returns the median.
func (r Results[T]) Ratio(i, to int, figure func(T) float64) float64 {
	ratios := make([]float64, len(r.Rounds[i]))
	for n := range ratios {
		ratios[n] = figure(r.Rounds[i][n]) / figure(r.Rounds[to][n])
	}
	return Median(ratios, func(f float64) float64 { return f })
}

// Median returns the round in the middle by one of its figures.
func Median[T any](rounds []T, figure func(T) float64) T {
	sorted := slices.SortedFunc(slices.Values(rounds), func(a, b T) int { return cmp.Compare(figure(a), figure(b)) })
	return sorted[len(sorted)/2]
}

// Round is what one contestant did in one turn.
type Round struct {
	Callers  int
	Done     int // requests that were answered
	Wall     time.Duration
	Mallocs  uint64
	P50, P99 time.Duration // of a request; 0 unless it was timed
	CPU      time.Duration // of the processes that were measured; 0 if unknown
}

// What contestants are compared by: requests a second, wall time by requests, the time that one
// request takes its caller, and allocations a request.
func (r Round) Rate() float64        { return float64(r.Done) / r.Wall.Seconds() }
func (r Round) Micros() float64      { return r.Wall.Seconds() * 1e6 / float64(r.Done) }
func (r Round) CallerNanos() float64 { return r.Micros() * 1e3 * float64(r.Callers) }
func (r Round) Allocs() float64      { return float64(r.Mallocs) / float64(r.Done) }
func (r Round) P50Nanos() float64    { return float64(r.P50) }
func (r Round) P99Nanos() float64    { return float64(r.P99) }

// AtOnce does the work in so many goroutines, which all begin at one signal, and
// returns when the last has ended.
func AtOnce(callers int, work func(caller int)) Round {
	start := make(chan struct{})
	var ready, done sync.WaitGroup
	for g := range callers {
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
	return Round{Callers: callers, Wall: wall, Mallocs: after.Mallocs - before.Mallocs}
}

// Load is a closed loop: each caller asks again as soon as it is answered.
type Load struct {
	Callers int
	Count   int           // requests of each caller; 0 for as many as the time allows
	Length  time.Duration // of the round, without a count; each asks once, however late it is
	Timed   bool          // each request is
}

// Run has all callers ask. For each, caller makes what it does for the n-th time, from 0. An
// error ends the round.
func (l Load) Run(caller func(caller int) func(n int) error) (Round, error) {
	asks, done, errs := make([]func(int) error, l.Callers), make([]int, l.Callers), make([]error, l.Callers)
	took := make([]loadgen.Histogram, l.Callers)
	for g := range asks {
		asks[g] = caller(g)
	}
	var over atomic.Bool
	if l.Count == 0 {
		timer := time.AfterFunc(l.Length, func() { over.Store(true) })
		defer timer.Stop()
	}
	round := AtOnce(l.Callers, func(g int) {
		ask, n, err := asks[g], 0, error(nil)
		for err == nil && (l.Count == 0 || n < l.Count) {
			if l.Timed {
				begin := time.Now()
				err = ask(n)
				took[g].Record(time.Since(begin))
			} else {
				err = ask(n)
			}
			if n++; over.Load() {
				break
			}
		}
		done[g], errs[g] = n, err
	})
	for g := range done {
		round.Done += done[g]
		if g > 0 {
			took[0].Merge(&took[g])
		}
	}
	if l.Timed {
		round.P50, round.P99 = took[0].Quantile(0.5), took[0].Quantile(0.99)
	}
	return round, errors.Join(errs...)
}

// Denied is the error of a request that should have been allowed.
func Denied(decision any) error { return fmt.Errorf("denied: %+v", decision) }

// Allowed is an error unless a request was allowed.
func Allowed(d weir.Decision, err error) error {
	if err == nil && !d.Allowed {
		err = Denied(d)
	}
	return err
}
