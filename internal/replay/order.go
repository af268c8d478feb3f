package replay

import (
	"cmp"
	"container/heap"
)

// Bounds on what is held back until it is clear that nothing earlier comes.
const (
	maxDelayed = 1 << 16 // entries
	maxBatches = 256     // pieces of logs that they are part of
)

// order puts entries into the order of time that are out of it by no more than a
// bound. Servers write a line when a request ends, and many of them the time at
// which it began; so some disorder is usual.
type order struct {
	bound  int64
	newest int64

	// Most entries come in order. They are a queue; the others a heap.
	queue      []held
	first      int
	stragglers stragglerHeap
	came       uint64

	reordered int64 // how many were put back into order
}

type straggler struct {
	held
	came uint64 // of two at the same time, the first comes first
}

// stragglerHeap has the earliest on top.
type stragglerHeap []straggler

func (s stragglerHeap) Len() int      { return len(s) }
func (s stragglerHeap) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *stragglerHeap) Push(x any)   { *s = append(*s, x.(straggler)) }
func (s *stragglerHeap) Pop() any     { return cutLast((*[]straggler)(s)) }

func (s stragglerHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(s[i].entry.At, s[j].entry.At), cmp.Compare(s[i].came, s[j].came)) < 0
}

// cutLast takes the last item off a list, and keeps nothing of it in its place.
func cutLast[T any](list *[]T) T {
	last := len(*list) - 1
	item := (*list)[last]
	clear((*list)[last:])
	*list = (*list)[:last]
	return item
}

func (o *order) len() int { return len(o.queue) - o.first + len(o.stragglers) }

func (o *order) push(h held) {
	at := h.entry.At
	o.newest = max(o.newest, at)
	if o.first == len(o.queue) || at >= o.queue[len(o.queue)-1].entry.At {
		o.shift()
		o.queue = append(o.queue, h)
		return
	}
	o.reordered++
	o.came++
	heap.Push(&o.stragglers, straggler{h, o.came})
}

// shift makes room at the end of the queue when half of it has gone.
func (o *order) shift() {
	if o.first > 0 && 2*o.first >= len(o.queue) && len(o.queue) == cap(o.queue) {
		n := copy(o.queue, o.queue[o.first:])
		clear(o.queue[n:])
		o.queue, o.first = o.queue[:n], 0
	}
}

// pop returns the earliest entry if nothing earlier is to be expected, or at once
// if that is forced.
func (o *order) pop(forced bool) (held, bool) {
	var h held
	late := len(o.stragglers) > 0 && (o.first == len(o.queue) || o.stragglers[0].entry.At < o.queue[o.first].entry.At)
	switch {
	case late:
		h = o.stragglers[0].held
	case o.first < len(o.queue):
		h = o.queue[o.first]
	default:
		return held{}, false
	}
	if !forced && h.entry.At > o.newest-o.bound {
		return held{}, false
	}
	if late {
		heap.Pop(&o.stragglers)
		return h, true
	}
	o.queue[o.first] = held{}
	o.first++
	if o.first == len(o.queue) {
		o.queue, o.first = o.queue[:0], 0
	}
	return h, true
}
