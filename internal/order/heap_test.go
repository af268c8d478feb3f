package order

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type item struct {
	due   int
	place int32
}

func (i *item) Before(other *item) bool { return i.due < other.due }
func (i *item) Index() *int32           { return &i.place }

// TestHeap takes items out from the top and from the middle, after their time has changed.
func TestHeap(t *testing.T) {
	var h Heap[*item]
	var left []*item
	for range 200 {
		x := &item{due: rand.IntN(50)}
		h.Push(x)
		left = append(left, x)
	}
	for len(left) > 0 {
		changed := left[rand.IntN(len(left))]
		changed.due = rand.IntN(50)
		h.Fix(changed)
		for i, x := range h {
			if int(x.place) != i {
				t.Fatalf("the item at %d says that it is at %d", i, x.place)
			}
			if x.Before(h[0]) {
				t.Fatalf("%d is on top of %d", h[0].due, x.due)
			}
		}
		gone := h[rand.IntN(2)*rand.IntN(len(h))]
		h.Remove(gone)
		left = slices.DeleteFunc(left, func(x *item) bool { return x == gone })
		if len(h) != len(left) || slices.Contains(h, gone) {
			t.Fatalf("%d items are left, want %d without the one that has gone", len(h), len(left))
		}
	}
}
