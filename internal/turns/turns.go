// Package turns lets callers that need the same thing proceed one at a time, in the order
// of their arrival.
package turns

import (
	"container/list"
	"context"
	"sync"
)

// Turns has a line for each key that somebody wants just now, and nothing for any other.
// The zero value is ready to use. It is safe for concurrent use.
type Turns struct {
	mu    sync.Mutex
	lines map[string]*line // guarded by mu
}

// line holds the callers of a key: the one whose turn it is, and those behind it.
type line struct {
	woken chan struct{} // of who is in front
	rest  list.List     // of chan struct{}, closed when their turn has come
}

// Turn is the right to go, until it ends.
type Turn struct {
	turns *Turns
	key   string
	line  *line
}

// Taken reports whether somebody is in line for a key.
func (t *Turns) Taken(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lines[key] != nil
}

// Join waits until all who came before have had their turn. If the context ends before,
// that is the error, and the place is free.
func (t *Turns) Join(ctx context.Context, key string) (*Turn, error) {
	t.mu.Lock()
	l := t.lines[key]
	if l == nil {
		if t.lines == nil {
			t.lines = map[string]*line{}
		}
		l = &line{woken: make(chan struct{}, 1)}
		t.lines[key] = l
		t.mu.Unlock()
		return &Turn{t, key, l}, nil
	}
	mine := make(chan struct{})
	place := l.rest.PushBack(mine)
	t.mu.Unlock()
	turn := &Turn{t, key, l}
	select {
	case <-mine:
		return turn, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	select {
	case <-mine: // it came at the same moment, and is somebody else's now
		t.mu.Unlock()
		turn.End()
	default:
		l.rest.Remove(place)
		t.mu.Unlock()
	}
	return nil, ctx.Err()
}

// End lets the next one go. It is to be called once.
func (n *Turn) End() {
	n.turns.mu.Lock()
	defer n.turns.mu.Unlock()
	next := n.line.rest.Front()
	if next == nil {
		delete(n.turns.lines, n.key)
		return
	}
	close(n.line.rest.Remove(next).(chan struct{}))
}

// Woken tells the caller in front that something has changed.
func (n *Turn) Woken() <-chan struct{} { return n.line.woken }

// Wake tells who is in front, if somebody is.
func (t *Turns) Wake(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.lines[key]; l != nil {
		select {
		case l.woken <- struct{}{}:
		default: // it has been told, and will look
		}
	}
}
