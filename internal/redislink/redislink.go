// Package redislink connects to a Redis that may be unavailable, so that a program can
// start without it and use it when it is available.
package redislink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// unavailable are the codes of the replies with which Redis tells that it cannot execute
// a command now: it starts, a failover is in progress, the cluster moves a slot, its
// memory or its disk is full, or a script blocks it.
var unavailable = []string{
	"LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "READONLY", "NOREPLICAS", "MISCONF", "OOM", "BUSY",
}

// Unavailable reports whether err is a reply of a Redis that is unavailable. Redis has
// not executed the command.
func Unavailable(err error) bool {
	reply, ok := errors.AsType[*rueidis.RedisError](err)
	if !ok {
		return false
	}
	code, _, _ := strings.Cut(reply.Error(), " ")
	return slices.Contains(unavailable, code)
}

// Explain adds a remedy to errors of Redis that do not explain themselves. The error
// begins with the name of the caller. keys names the keys that another program may use;
// "" if that would be another error.
func Explain(who, keys string, err error) error {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		if _, moved := reply.IsMoved(); moved {
			return fmt.Errorf("%s: this is one node of a cluster; use a cluster's client: %w", who, err)
		}
		if keys != "" && strings.Contains(reply.Error(), "WRONGTYPE") {
			return fmt.Errorf("%s: something else uses %s; choose another prefix, or remove it: %w", who, keys, err)
		}
	}
	return fmt.Errorf("%s: %w", who, err)
}
