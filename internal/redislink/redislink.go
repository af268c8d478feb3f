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
	failed  atomic.Pointer[error] // why there is none

	mu     sync.Mutex
	tried  time.Time
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
	l := &Link{connect: connect}
	l.failed.Store(&errNone)
	return l
}

// Current returns the client, or why there is none at the moment.
func (l *Link) Current() (rueidis.Client, error) {
	if c := l.current.Load(); c != nil {
		return *c, nil
	}
	return nil, *l.failed.Load()
}

// Client returns the client, and connects if there is none. While one call connects,
// the others do not wait but get the last error.
func (l *Link) Client() (rueidis.Client, error) {
	if c, err := l.Current(); err == nil || !l.mu.TryLock() {
		return c, err
	}
	defer l.mu.Unlock()
	if _, err := l.Current(); err != nil && time.Since(l.tried) >= retry {
		_ = l.renewLocked()
		l.tried = time.Now() // a try may take long itself
	}
	return l.Current()
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
		err = fmt.Errorf("no connection to redis: %w", err)
		l.failed.Store(&err)
		return err
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
	if c, err := l.Current(); err == nil && l.connect != nil && !l.closed {
		c.Close()
	}
	l.closed = true
	l.failed.Store(&errClosed)
}

// Follow calls look at once, after messages on a channel, and about every poll, until the context ends, which is its
// error. Messages that come while it looks are one.
func Follow(ctx context.Context, client func() (rueidis.Client, error), channel string, poll time.Duration, look func()) error {
	wake := make(chan struct{}, 1)
	var listener sync.WaitGroup
	listener.Go(func() {
		Listen(ctx, client, channel, poll, func() {
			select {
			case wake <- struct{}{}:
			default: // once is enough
			}
		})
	})
	defer listener.Wait()
	for ctx.Err() == nil {
		look()
		select {
		case <-ctx.Done():
		case <-wake:
		case <-time.After(clock.Jitter(poll)):
		}
	}
	return ctx.Err()
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
