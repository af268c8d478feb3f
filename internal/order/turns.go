package order

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
)

// Turns has a line for each key that somebody wants just now, and nothing for any other.
// The zero value is ready to use. It is safe for concurrent use.
type Turns[K comparable] struct {
	callers atomic.Int64 // in all lines; changed with mu

	mu       sync.Mutex
	lines    map[K]*line
	arrivals uint64
}

// line holds the callers of a key. It is the turn of the one in front.
type line struct {
	order list.List     // of *Turn
	woken chan struct{} // of who is in front
}

// Lock lets one caller at a time proceed. The zero value is ready to use.
type Lock struct{ turns Turns[struct{}] }

// Take waits until all who came before have called unlock, as [Turns.Join] does.
func (l *Lock) Take(ctx context.Context) (unlock func(), err error) {
	turn, err := l.turns.Join(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	return turn.End, nil
}

// Turn is a position in a line, until it ends. One goroutine at a time can use it.
type Turn[K comparable] struct {
	turns   *Turns[K]
	arrival uint64

	key     K
	line    *line
	element *list.Element
	due     chan struct{} // closed when it is in front; nil if it was at once
}

// Callers returns how many are in line.
func (t *Turns[K]) Callers() int { return int(t.callers.Load()) }

// Taken reports whether somebody is in line for a key.
func (t *Turns[K]) Taken(key K) bool {
	if t.callers.Load() == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lines[key] != nil
}

// Join waits until all who came before have had their turn. If the context ends before,
// that is the error, and the caller has left the line.
func (t *Turns[K]) Join(ctx context.Context, key K) (*Turn[K], error) {
	n := t.Enter(key, 0)
	if err := n.Await(ctx); err != nil {
		n.End()
		return nil, err
	}
	return n, nil
}

// Enter stands at the end of a line. It returns nil if there are already as many callers as
// may be; 0 is any number.
func (t *Turns[K]) Enter(key K, most int) *Turn[K] {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arrivals++
	n := &Turn[K]{turns: t, arrival: t.arrivals}
	if !n.standLocked(key, most) {
		return nil
	}
	return n
}

// standLocked stands in a line behind those who came before, and behind the one in front, who
// may be proceeding already.
func (n *Turn[K]) standLocked(key K, most int) bool {
	t := n.turns
	l := t.lines[key]
	if l == nil {
		l = &line{woken: make(chan struct{}, 1)}
		if t.lines == nil {
			t.lines = map[K]*line{}
		}
		t.lines[key] = l
	} else if most > 0 && l.order.Len() >= most {
		return false
	}
	t.callers.Add(1)
	n.key, n.line, n.due = key, l, nil
	before := l.order.Back()
	if before == nil {
		n.element = l.order.PushBack(n)
		return true
	}
	for before != l.order.Front() && before.Value.(*Turn[K]).arrival > n.arrival {
		before = before.Prev()
	}
	n.element, n.due = l.order.InsertAfter(n, before), make(chan struct{})
	return true
}

// Await waits until all who stand before have had their turn, or returns the context's error.
func (n *Turn[K]) Await(ctx context.Context) error {
	if n.due == nil {
		return nil
	}
	select {
	case <-n.due:
		return nil
	default:
	}
	select {
	case <-n.due:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Key returns the key of the line.
func (n *Turn[K]) Key() K { return n.key }

// IsAhead reports whether somebody who came before stands in the line of another key.
func (n *Turn[K]) IsAhead(key K) bool {
	n.turns.mu.Lock()
	defer n.turns.mu.Unlock()
	l := n.turns.lines[key]
	if l == nil {
		return false
	}
	// The first may have come later than others, who then stand in the order of their arrival.
	first := l.order.Front()
	for _, e := range [...]*list.Element{first, first.Next()} {
		if e != nil && e.Value.(*Turn[K]).arrival < n.arrival {
			return true
		}
	}
	return false
}

// Move leaves the line for that of another key, and stands there before those who came later.
// It reports false, and leaves the line, too, if there are already as many callers as may be.
func (n *Turn[K]) Move(key K, most int) bool {
	n.turns.mu.Lock()
	defer n.turns.mu.Unlock()
	n.endLocked()
	return n.standLocked(key, most)
}

// End leaves the line. If it was in front, the next one can go. A second call does nothing.
func (n *Turn[K]) End() {
	n.turns.mu.Lock()
	defer n.turns.mu.Unlock()
	n.endLocked()
}

func (n *Turn[K]) endLocked() {
	l := n.line
	if l == nil {
		return
	}
	wasFront := l.order.Front() == n.element
	l.order.Remove(n.element)
	n.line, n.element = nil, nil
	n.turns.callers.Add(-1)
	next := l.order.Front()
	switch {
	case next == nil:
		delete(n.turns.lines, n.key)
	case wasFront:
		close(next.Value.(*Turn[K]).due)
	}
}

// Woken tells the caller in front that something has changed.
func (n *Turn[K]) Woken() <-chan struct{} { return n.line.woken }

// Wake tells who is in front, if somebody is.
func (t *Turns[K]) Wake(key K) {
	if t.callers.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.lines[key]; l != nil {
		select {
		case l.woken <- struct{}{}:
		default: // it has been told, and will look
		}
	}
}
