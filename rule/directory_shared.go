package rule

import (
	"fmt"
	"strings"
	"sync"
)

// sharedValues are what many clients have, by numbers. The versions of a directory share them: they only grow.
type sharedValues struct {
	mu                    sync.Mutex
	tiers, notes, authors texts
	dates                 values[dates, dates]
	limits                values[string, []OwnLimit] // by a text that equal ones have in common
	atLast                int                        // how many there were when they were gathered
}

func newSharedValues() *sharedValues {
	return &sharedValues{
		tiers: newTexts(), notes: newTexts(), authors: newTexts(),
		dates: newValues[dates, dates](), limits: newValues[string, []OwnLimit](),
	}
}

func (s *sharedValues) size() int {
	return len(s.tiers.all) + len(s.notes.all) + len(s.authors.all) + len(s.dates.all) + len(s.limits.all)
}

// isWasteful reports whether more than half of the values may be of no client any more.
func (s *sharedValues) isWasteful() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size() > 2*s.atLast+10_000
}

func (s *sharedValues) limitSet(own []OwnLimit) uint32 {
	if len(own) == 0 {
		return 0
	}
	return s.limits.number(fmt.Sprintf("%+v", own), own)
}

// values have numbers. That of the zero value is 0.
type values[K comparable, V any] struct {
	numbers map[K]uint32
	all     []V
}

func newValues[K comparable, V any]() values[K, V] {
	var none K
	return values[K, V]{map[K]uint32{none: 0}, make([]V, 1)}
}

func (v *values[K, V]) number(key K, value V) uint32 {
	n, known := v.numbers[key]
	if !known {
		n = uint32(len(v.all))
		v.numbers[key], v.all = n, append(v.all, value)
	}
	return n
}

// texts are values that are their own keys.
type texts struct{ values[string, string] }

func newTexts() texts { return texts{newValues[string, string]()} }

// text is the number of a text, which may be a part of a longer one.
func (v *texts) text(text string) uint32 {
	if n, known := v.numbers[text]; known {
		return n
	}
	text = strings.Clone(text)
	return v.number(text, text)
}

// kindOrder counts which kinds of clients belong to which. As long as they are in an order, as keys, users and
// organizations are, no line can have a cycle, two clients of a kind, or too many, even if one gets another parent.
type kindOrder struct {
	edges  map[[2]uint16]int // below and above
	sorted bool
}

func newKindOrder() kindOrder { return kindOrder{map[[2]uint16]int{}, true} }

// count counts a client more or less of one kind that belongs to one of another.
func (o *kindOrder) count(below, above uint16, n int) {
	edge := [2]uint16{below, above}
	was := o.edges[edge]
	o.edges[edge] = was + n
	if was+n == 0 {
		delete(o.edges, edge)
	}
	if was == 0 || was+n == 0 {
		o.sorted = o.isSorted()
	}
}

// allows reports whether clients of one kind may all belong to any of another.
func (o *kindOrder) allows(below, above uint16) bool {
	if o.edges[[2]uint16{below, above}] > 0 {
		return o.sorted
	}
	o.count(below, above, +1)
	defer o.count(below, above, -1)
	return o.sorted
}

// isSorted is false if there is a cycle, or a line of more than MaxLine kinds.
func (o *kindOrder) isSorted() bool {
	levels := map[uint16]int{} // above each kind
	for range MaxLine {
		for edge := range o.edges {
			if levels[edge[0]] = max(levels[edge[0]], levels[edge[1]]+1); levels[edge[0]] >= MaxLine {
				return false
			}
		}
	}
	return true
}
