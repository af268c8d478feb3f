// Package redislink connects to a Redis that need not be there yet, so that a program
// can start without it and go on when it is back.
package redislink

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Source returns a client, or why there is none at the moment.
type Source func() (rueidis.Client, error)

// Of is the source of a client that is there.
func Of(client rueidis.Client) Source {
	return func() (rueidis.Client, error) { return client, nil }
}

// retry is how long after a failure the next try may be: whoever asks in between is
// told at once.
const retry = 500 * time.Millisecond

var errClosed = errors.New("the connection to redis is closed")

// Late is a client that is made when it is first asked for, and again if that failed.
// Afterwards the client itself looks after its connections. It is safe for concurrent
// use.
type Late struct {
	option rueidis.ClientOption
	made   atomic.Pointer[rueidis.Client]

	mu     sync.Mutex
	tried  time.Time
	failed error
	closed bool
}

// NewLate returns a client to be. Nothing is asked of Redis yet.
func NewLate(option rueidis.ClientOption) *Late {
	return &Late{option: option, failed: errors.New("redis: there is no connection yet")}
}

// Client is a Source. While somebody tries to connect, the others do not wait.
func (l *Late) Client() (rueidis.Client, error) {
	if c := l.made.Load(); c != nil {
		return *c, nil
	}
	if !l.mu.TryLock() {
		return nil, errors.New("redis: it is being connected to")
	}
	defer l.mu.Unlock()
	if c := l.made.Load(); c != nil {
		return *c, nil
	}
	if l.closed {
		return nil, errClosed
	}
	if now := time.Now(); now.Sub(l.tried) >= retry {
		l.connectLocked()
		l.tried = time.Now() // a try may take long itself
	}
	if c := l.made.Load(); c != nil {
		return *c, nil
	}
	return nil, l.failed
}

func (l *Late) connectLocked() {
	client, err := rueidis.NewClient(l.option)
	if err == nil {
		l.made.Store(&client)
		return
	}
	if client != nil { // one that could connect later
		client.Close()
	}
	l.failed = fmt.Errorf("redis cannot be reached: %w", err)
}

// Close closes the client, and makes no other.
func (l *Late) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.made.Load(); c != nil && !l.closed {
		(*c).Close()
	}
	l.closed = true
}
