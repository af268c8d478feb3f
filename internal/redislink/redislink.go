// Package redislink connects to a Redis that may be unavailable, so that a program can
// start without it and use it when it is available. Its [Conn] is how the stores beside that
// of limits call Redis: within a timeout, and with errors that have a remedy.
package redislink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/clock"
)

// retry is the pause after a failure. Calls in between get the error immediately.
const retry = 500 * time.Millisecond

var (
	errNone   = errors.New("redis: there is no connection yet")
	errClosed = errors.New("the connection to redis is closed")
)

// Link holds a client that can be created later, and replaced. The client itself
// reconnects. A Link is safe for concurrent use.
type Link struct {
	connect func() (rueidis.Client, error) // nil if the caller owns the client
	current atomic.Pointer[rueidis.Client]

	mu     sync.Mutex
	tried  time.Time
	failed error
	closed bool
}

// Of returns a link to an existing client, which the caller closes.
func Of(client rueidis.Client) *Link {
	l := &Link{}
	l.current.Store(&client)
	return l
}

// Late returns a link whose client connect creates when it is needed first.
func Late(connect func() (rueidis.Client, error)) *Link {
	return &Link{connect: connect, failed: errNone}
}

// Current returns the client, or nil if there is none at the moment.
func (l *Link) Current() rueidis.Client {
	if c := l.current.Load(); c != nil {
		return *c
	}
	return nil
}

// Client returns the client, and connects if there is none. While one call connects,
// the others do not wait but get an error.
func (l *Link) Client() (rueidis.Client, error) {
	if c := l.Current(); c != nil {
		return c, nil
	}
	if !l.mu.TryLock() {
		return nil, errors.New("redis: the connection is not open yet")
	}
	defer l.mu.Unlock()
	if c := l.Current(); c != nil {
		return c, nil
	}
	if time.Since(l.tried) >= retry {
		l.failed = l.renewLocked()
		l.tried = time.Now() // a try may take long itself
	}
	if l.failed != nil {
		return nil, l.failed
	}
	return l.Current(), nil
}

// Renew replaces the client, if the link created it: the old one may lead to a machine
// that disappeared silently, or to a server that is no longer the master.
func (l *Link) Renew() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewLocked()
}

func (l *Link) renewLocked() error {
	if l.closed || l.connect == nil {
		return errClosed
	}
	client, err := l.connect()
	if err != nil {
		if client != nil { // one that could connect later
			client.Close()
		}
		return fmt.Errorf("redis cannot be reached: %w", err)
	}
	if old := l.current.Swap(&client); old != nil {
		go (*old).Close() // it may wait for answers that never come
	}
	return nil
}

// Close closes the client, unless the caller owns it. The link creates no other.
func (l *Link) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.Current(); c != nil && l.connect != nil && !l.closed {
		c.Close()
	}
	l.closed, l.failed = true, errClosed
}

// Listen calls wake for every message on a channel, and when it starts to listen,
// because it may have missed messages before. If the subscription ends, Listen
// subscribes again after about the pause, until the context ends.
func Listen(ctx context.Context, client func() (rueidis.Client, error), channel string, pause time.Duration, wake func()) {
	subscribed := rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { wake() })
	for ctx.Err() == nil {
		// The error is ignored here: calls to Redis report it.
		if c, err := client(); err == nil {
			_ = c.Receive(subscribed, c.B().Subscribe().Channel(channel).Build(), func(rueidis.PubSubMessage) { wake() })
		}
		_ = clock.Sleep(ctx, clock.Jitter(pause))
	}
}
