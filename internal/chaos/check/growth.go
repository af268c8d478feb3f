package check

import (
	"fmt"
	"slices"
	"time"
)

// Sample is how large an instance is while nobody asks it anything.
type Sample struct {
	At         time.Duration
	Instance   int
	Life       int
	Goroutines int
	Resident   int64 // bytes
}

const (
	// moreGoroutines is how many more than in the first sample there may be in the last. A
	// leak of one a fault is more than that.
	moreGoroutines = 20

	// moreResident is how many more bytes there may be in the last sample than in any of the
	// first half. The runtime takes memory in large pieces and gives it back late, so a life
	// that is shorter than this many samples tells nothing.
	moreResident = 24 << 20
	telling      = 4
)

// Grown judges the samples of a run, each life of an instance by itself.
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
		early := slices.MaxFunc(lives[l][:(len(lives[l])+1)/2], func(a, b Sample) int { return int(a.Resident - b.Resident) })
		if len(lives[l]) >= telling && last.Resident > early.Resident+moreResident {
			blame("MB", early.Resident>>20, last.Resident>>20)
		}
	}
	return violations
}
