// Package order keeps things in order: items by a number of theirs, and callers by their arrival.
package order

import "container/heap"

// Item is something in a heap.
type Item[T any] interface {
	Before(other T) bool // such as that its time comes earlier
	Index() *int         // where the heap notes where it is
}

// Heap has the first on top, at 0. The others are in no order. The zero value is empty.
type Heap[T Item[T]] []T

// Push adds an item.
func (h *Heap[T]) Push(x T) { heap.Push((*order[T])(h), x) }

// Fix is called when the order of an item has changed.
func (h *Heap[T]) Fix(x T) { heap.Fix((*order[T])(h), *x.Index()) }

// Remove takes an item out.
func (h *Heap[T]) Remove(x T) { heap.Remove((*order[T])(h), *x.Index()) }

// order is a heap as package heap wants it.
type order[T Item[T]] []T

func (o order[T]) Len() int           { return len(o) }
func (o order[T]) Less(i, j int) bool { return o[i].Before(o[j]) }

func (o order[T]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	*o[i].Index(), *o[j].Index() = i, j
}

func (o *order[T]) Push(x any) {
	*x.(T).Index() = len(*o)
	*o = append(*o, x.(T))
}

func (o *order[T]) Pop() any {
	last := len(*o) - 1
	x := (*o)[last]
	clear((*o)[last:])
	*o = (*o)[:last]
	return x
}
