package bench

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"
)

// Contest has contestants take turns, in another order in each round, so that whatever else the
// machine does hits all of them alike.
type Contest struct {
	What        string        // is measured
	Rounds      int           // of each contestant
	WarmUp      time.Duration // for how long each asks before its first round; 0 for no time
	Load                      // of the contestants that ask
	Contestants []Contestant
}

// Contestant is one of those that are compared. It asks in a closed loop, or plays otherwise.
type Contestant struct {
	Name   string
	Ask    func(caller int) func(n int) error // makes what a caller does for the n-th time, from 0
	Asking int                                // callers; 0 for as many as the contest has
	Play   func(n int) (Round, error)         // its n-th round; nil if it asks
	Before func() error                       // each round, and not measured; nil for nothing
	Busy   func() time.Duration               // for how long what is measured has run; nil if nobody wants to know
}

// Scores are the rounds of each contestant.
type Scores struct {
	What   string
	Names  []string
	Rounds [][]Round
}

// Run measures one round after the other. An error fails the run.
func (c Contest) Run(r *Run) Scores {
	out := Scores{What: c.What, Rounds: make([][]Round, len(c.Contestants))}
	for _, one := range c.Contestants {
		out.Names = append(out.Names, one.Name)
		if c.WarmUp > 0 {
			_, err := Load{Callers: c.Callers, Length: c.WarmUp}.Run(one.Ask)
			out.require(r, one, err)
		}
	}
	if c.Counted {
		c.calibrate(r, out)
	}
	seed := fnv.New64()
	seed.Write([]byte(c.What))
	order := rand.New(rand.NewPCG(seed.Sum64(), 0))
	for n := range c.Rounds {
		for turn, i := range order.Perm(len(c.Contestants)) {
			r.Step(n*len(c.Contestants)+turn, c.Rounds*len(c.Contestants), c.What)
			measured, err := c.round(c.Contestants[i], n, turn == 0)
			out.require(r, c.Contestants[i], err)
			out.Rounds[i] = append(out.Rounds[i], measured)
		}
	}
	return out
}

func (s Scores) require(run *Run, who Contestant, err error) {
	if err != nil {
		run.Fatalf("%s: %s: %v", s.What, who.Name, err)
	}
}

// trial is how many requests of each caller tell how many there are to be.
const trial = 10_000

// calibrate makes rounds of as many requests for all, so that one takes its time on average.
func (c *Contest) calibrate(r *Run, out Scores) {
	sum := 0.0
	for _, one := range c.Contestants {
		measured, err := Load{Callers: c.Callers, Count: trial}.Run(one.Ask)
		out.require(r, one, err)
		sum += measured.CallerNanos()
	}
	c.Count = max(trial, int(float64(c.Length)*float64(len(c.Contestants))/sum))
}

// collect collects garbage before a round. A large heap takes longer than a round, and is only
// collected before all have a turn.
func collect(first bool) {
	const large = 256 << 20
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); first || m.HeapAlloc < large {
		runtime.GC()
	}
}

// round is the n-th of a contestant, and perhaps the first of all in it.
func (c Contest) round(one Contestant, n int, first bool) (out Round, err error) {
	if one.Before != nil {
		if err := one.Before(); err != nil {
			return out, err
		}
	}
	collect(first)
	var busy time.Duration
	if one.Busy != nil {
		busy = one.Busy()
	}
	if one.Play != nil {
		out, err = one.Play(n)
	} else {
		load := c.Load
		load.Callers = cmp.Or(one.Asking, load.Callers)
		out, err = load.Run(one.Ask)
	}
	if one.Busy != nil {
		out.CPU = one.Busy() - busy
	}
	return out, err
}

// At is the place of a contestant.
func (s Scores) At(name string) int { return slices.Index(s.Names, name) }

// Median is that of a contestant's figures.
func (s Scores) Median(i int, figure func(Round) float64) float64 {
	return figure(Median(s.Rounds[i], figure))
}

// Ratio compares two contestants by one of their figures in the same round, because the
// weather changes from round to round, and returns the median.
func (s Scores) Ratio(i, to int, figure func(Round) float64) float64 {
	ratios := make([]float64, len(s.Rounds[i]))
	for n := range ratios {
		ratios[n] = figure(s.Rounds[i][n]) / figure(s.Rounds[to][n])
	}
	return Median(ratios, func(f float64) float64 { return f })
}

// MedianOf and RatioOf are those of contestants by their names.
func (s Scores) MedianOf(name string, figure func(Round) float64) float64 {
	return s.Median(s.At(name), figure)
}

func (s Scores) RatioOf(name, to string, figure func(Round) float64) float64 {
	return s.Ratio(s.At(name), s.At(to), figure)
}

// Sum is that of all rounds of a contestant, for figures that one round is too short for.
func (s Scores) Sum(i int) (sum Round) {
	for _, one := range s.Rounds[i] {
		sum.Done, sum.Unsent, sum.CPU = sum.Done+one.Done, sum.Unsent+one.Unsent, sum.CPU+one.CPU
	}
	return sum
}

// Median returns what is in the middle by a figure.
func Median[T any](all []T, figure func(T) float64) T {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(figure(a), figure(b)) })
	return sorted[len(sorted)/2]
}
