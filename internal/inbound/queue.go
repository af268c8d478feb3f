package inbound

import (
	"context"
	"sync"
)

// queue holds the calls whose messages are being received, in order of arrival. A
// message that fits into a Window arrives almost immediately. So if there are too many
// calls, the first is the slowest, and is ended: a client that begins many messages and
// completes none cannot block others.
type queue struct {
	mu    sync.Mutex
	n     int
	first *call
	last  *call
}

// add adds a call, and returns the one that has to go, if any.
func (q *queue) add(c *call) (slowest *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == maxReceiving {
		slowest = q.first
		q.removeLocked(slowest)
	}
	c.before, c.waits = q.last, true
	if q.last != nil {
		q.last.after = c
	} else {
		q.first = c
	}
	q.last = c
	q.n++
	return slowest
}

// remove removes a call, if it is still there.
func (q *queue) remove(c *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.waits {
		q.removeLocked(c)
	}
}

func (q *queue) removeLocked(c *call) {
	if c.before != nil {
		c.before.after = c.after
	} else {
		q.first = c.after
	}
	if c.after != nil {
		c.after.before = c.before
	} else {
		q.last = c.before
	}
	c.before, c.after, c.waits = nil, nil, false
	q.n--
}

// endable is a context that can be ended from where the message is received.
type endable struct {
	context.Context
	end context.CancelFunc
}

type endKey struct{}

// Value implements context.Context.
func (e *endable) Value(key any) any {
	if key == (endKey{}) {
		return e.end
	}
	return e.Context.Value(key)
}

// Endable is for a grpc.InTapHandle. The context that it returns there lets the guard give
// up a call, by a function that ends the context.
func Endable(ctx context.Context, end context.CancelFunc) context.Context { return &endable{ctx, end} }

// giveUp ends a call whose message does not come to its end.
func (c *call) giveUp() {
	if end, ok := c.ctx.Value(endKey{}).(context.CancelFunc); ok {
		end()
	}
}
