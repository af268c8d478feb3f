// Package order keeps things in order: items by a number of theirs, and callers by their arrival.
package order

// Item is something in a heap. It can be a value that has what it is ordered by and a pointer, so that
// comparing does not follow the pointer.
type Item[T any] interface {
	Before(other T) bool // such as that its time comes earlier
	Index() *int32       // where the heap notes where it is
}

// Heap has the first on top, at 0. The others are in no order. The zero value is empty.
type Heap[T Item[T]] []T

// Push adds an item.
func (h *Heap[T]) Push(x T) {
	*h = append(*h, x)
	h.settle(len(*h)-1, x)
}

// Fix is called when the order of an item has changed.
func (h *Heap[T]) Fix(x T) { h.settle(int(*x.Index()), x) }

// Remove takes an item out.
func (h *Heap[T]) Remove(x T) {
	last := len(*h) - 1
	moved := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	if at := int(*x.Index()); at < last {
		h.settle(at, moved)
	}
}

// settle moves an item from a place, whatever was there, up or down to where it belongs.
func (h *Heap[T]) settle(at int, x T) {
	items := *h
	for at > 0 && x.Before(items[(at-1)/2]) {
		items.put(at, items[(at-1)/2])
		at = (at - 1) / 2
	}
	for {
		next := 2*at + 1
		if next+1 < len(items) && items[next+1].Before(items[next]) {
			next++
		}
		if next >= len(items) || !items[next].Before(x) {
			break
		}
		items.put(at, items[next])
		at = next
	}
	items.put(at, x)
}

func (h Heap[T]) put(at int, x T) {
	h[at] = x
	*x.Index() = int32(at)
}
