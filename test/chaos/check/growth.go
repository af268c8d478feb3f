package check

import (
	"fmt"
	"slices"
	"time"
)

// Sample is the size of an instance without traffic.
type Sample struct {
	At         time.Duration
	Instance   int
	Life       int
	Goroutines int
	Resident   int64 // bytes
	Local      int64 // requests that it allowed by leased units
}

const (
	// moreGoroutines is how many more than in the first sample there may be in the last. A
	// leak of one a fault is more than that.
	moreGoroutines = 20

	// moreResident is how many more bytes there may be in the second half of the samples than
	// in the first, by their medians. One sample tells nothing: connections that are lost and
	// made again leave some tens of megabytes for a while, which the runtime gives back late.
	// The first one is before the heap has its usual size, so it does not count, and a life
	// with less than telling others tells nothing.
	moreResident = 24 << 20
	telling      = 4
)

// Grown checks the samples of a run, separately for each process of an instance.
func Grown(samples []Sample) (violations []Violation) {
	type life struct{ instance, number int }
	lives := map[life][]Sample{}
	var order []life
	for _, s := range samples {
		l := life{s.Instance, s.Life}
		if lives[l] == nil {
			order = append(order, l)
		}
		lives[l] = append(lives[l], s)
	}
	for _, l := range order {
		first, last := lives[l][0], lives[l][len(lives[l])-1]
		blame := func(what string, from, to int64) {
			violations = append(violations, Violation{Promise: NoGrowth, Span: Span{first.At, last.At},
				What: fmt.Sprintf("instance %d grew from %d to %d %s", l.instance, from, to, what)})
		}
		if last.Goroutines > first.Goroutines+moreGoroutines {
			blame("goroutines", int64(first.Goroutines), int64(last.Goroutines))
		}
		others := lives[l][1:]
		half := len(others) / 2
		if early, late := resident(others[:half]), resident(others[half:]); len(others) >= telling && late > early+moreResident {
			blame("MB", early>>20, late>>20)
		}
	}
	return violations
}

// resident is the median, or 0 if there are none. The sample before the middle is taken.
func resident(samples []Sample) int64 {
	var all []int64
	for _, s := range samples {
		all = append(all, s.Resident)
	}
	if slices.Sort(all); len(all) == 0 {
		return 0
	}
	return all[(len(all)-1)/2]
}
