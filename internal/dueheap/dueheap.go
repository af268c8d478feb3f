// Package dueheap keeps items in the order of their due time. Each item stores its place, so
// that any item can be removed.
package dueheap

import "container/heap"

// Item is something in a heap.
type Item[T any] interface {
	Before(other T) bool // its time comes earlier
	Place() *int         // where the heap notes where it is
}

// Heap has the first on top, at 0. The others are in no order. The zero value is empty.
type Heap[T Item[T]] []T

// Push adds an item.
func (h *Heap[T]) Push(x T) { heap.Push((*order[T])(h), x) }

// Fix is called when the time of an item has changed.
func (h *Heap[T]) Fix(x T) { heap.Fix((*order[T])(h), *x.Place()) }

// Remove takes an item out.
func (h *Heap[T]) Remove(x T) { heap.Remove((*order[T])(h), *x.Place()) }

// order is a heap as package heap wants it.
type order[T Item[T]] []T

func (o order[T]) Len() int           { return len(o) }
func (o order[T]) Less(i, j int) bool { return o[i].Before(o[j]) }

func (o order[T]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	*o[i].Place(), *o[j].Place() = i, j
}

func (o *order[T]) Push(x any) {
	*x.(T).Place() = len(*o)
	*o = append(*o, x.(T))
}

func (o *order[T]) Pop() any {
	last := len(*o) - 1
	x := (*o)[last]
	clear((*o)[last:])
	*o = (*o)[:last]
	return x
}
