// Package budget shares a limited amount of a resource, such as memory, among concurrent
// callers.
package budget

import (
	"container/list"
	"context"
	"sync"
)

// Room is an amount that is shared. It is safe for concurrent use.
type Room struct {
	size int64

	mu      sync.Mutex
	free    int64
	waiting list.List // of *claim, the first who came in front
}

type claim struct {
	n     int64
	taken chan struct{} // closed when it is
}

// New returns a room of this size.
func New(size int64) *Room { return &Room{size: size, free: size} }

// Try takes n if that much is free and no other caller waits.
func (r *Room) Try(n int64) bool {
	n = min(n, r.size)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.free < n || r.waiting.Len() > 0 {
		return false
	}
	r.free -= n
	return true
}

// Take takes n, and waits until that much is free: first come, first served. If n is
// more than the whole room, it takes the whole room. It fails if the context ends
// first. The caller gives back n.
func (r *Room) Take(ctx context.Context, n int64) error {
	if r.Try(n) {
		return nil
	}
	n = min(n, r.size)
	r.mu.Lock()
	c := &claim{n, make(chan struct{})}
	place := r.waiting.PushBack(c)
	r.serveLocked() // if there is room by now
	r.mu.Unlock()
	select {
	case <-c.taken:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-c.taken: // in the meantime
		r.free += n
	default:
		r.waiting.Remove(place)
	}
	r.serveLocked() // who was behind it may want less
	return ctx.Err()
}

// Give gives back what was taken.
func (r *Room) Give(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.free += min(n, r.size); r.free > r.size {
		panic("room: more was given back than was taken")
	}
	r.serveLocked()
}

func (r *Room) serveLocked() {
	for first := r.waiting.Front(); first != nil; first = r.waiting.Front() {
		c := first.Value.(*claim)
		if c.n > r.free {
			return
		}
		r.free -= c.n
		r.waiting.Remove(first)
		close(c.taken)
	}
}
