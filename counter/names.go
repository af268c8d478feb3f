package counter

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Kind is what a name stands for.
type Kind string

const (
	KindCounter      Kind = "counter"
	KindDistinct     Kind = "distinct" // a counter of distinct members
	KindDistribution Kind = "distribution"
	KindBoard        Kind = "board"
	KindHot          Kind = "hot"
)

// Named is something that a store keeps, with what a call needs to read it.
type Named struct {
	Kind   Kind
	Name   string
	Group  string        // of a counter or distribution
	Window Window        // of a counter, distribution or calendar board
	Zone   string        // likewise
	Span   time.Duration // of a sliding board: Board.Sliding; of a hot list: HotList.Window

	Threshold, Cool int64 // of a hot list, as in the last call that changed it
}

// Names lists what a store keeps, by kind and name.
type Names struct {
	All  []Named
	More bool // there are more, or the store did not look at everything in time
}

// ValidateNames checks the arguments of Names, for stores.
func ValidateNames(n int) error {
	if n < 1 || n > MaxBatch {
		return invalid("n", "%d is out of range; request 1 to %d", n, MaxBatch)
	}
	return nil
}

// NewNames returns what was found, in order and without what is more than n, for stores.
func NewNames(found []Named, n int, more bool) Names {
	slices.SortFunc(found, func(a, b Named) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name), strings.Compare(a.Group, b.Group),
			cmp.Compare(a.Window, b.Window), strings.Compare(a.Zone, b.Zone), cmp.Compare(a.Span, b.Span))
	})
	return Names{All: append([]Named{}, found[:min(n, len(found))]...), More: more || len(found) > n}
}
