package client

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/clock"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

const (
	// maxFailures is how many calls in a row must fail before the breaker opens.
	maxFailures = 3

	// between is how long to wait between two tries to reach the service again, more or
	// less: many clients shall not come at once.
	between = 500 * time.Millisecond
)

// breaker keeps calls from a service that is unavailable, so that none of them waits.
type breaker struct {
	client   *Client
	failures atomic.Int64          // in a row
	away     atomic.Pointer[error] // why; nil while the service is asked

	ctx        context.Context // ends with the client
	cancel     context.CancelFunc
	background sync.WaitGroup

	mu sync.Mutex // nothing begins in the background once the client has ended
}

func (b *breaker) init(c *Client) {
	b.client = c
	b.ctx, b.cancel = context.WithCancel(context.Background())
}

// close ends the tries.
func (b *breaker) close() {
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.background.Wait()
}

// state is why the service is not asked just now, or ErrClosed.
func (b *breaker) state() (away, err error) {
	if b.ctx.Err() != nil {
		return nil, ErrClosed
	}
	if why := b.away.Load(); why != nil {
		return *why, nil
	}
	return nil, nil
}

func (b *breaker) succeeded() {
	if b.failures.Load() != 0 {
		b.failures.Store(0)
	}
}

// failed takes note of a call that came to nothing. After several in a row, the service
// is tried in the background only.
func (b *breaker) failed(cause error) (away, err error) {
	if b.ctx.Err() != nil {
		return nil, ErrClosed
	}
	away = awayBecause(cause)
	if b.failures.Add(1) < maxFailures || b.away.Load() != nil {
		return away, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() == nil && b.away.CompareAndSwap(nil, &away) {
		b.client.options.Logger.Warn("weir is unavailable; requests are answered without it", "address", b.client.options.Address, "error", cause)
		b.background.Go(b.recover)
	}
	return away, nil
}

// recover tries to reach the service until it answers, with a call that charges nothing.
func (b *breaker) recover() {
	for {
		if clock.Sleep(b.ctx, between*3/4+rand.N(between/2)) != nil {
			return
		}
		b.client.conn.ResetConnectBackoff()
		if b.answers() {
			b.client.options.Logger.Info("weir is available again", "address", b.client.options.Address)
			b.failures.Store(0)
			b.away.Store(nil)
			return
		}
	}
}

// answers is whether the service does.
func (b *breaker) answers() bool {
	o := &b.client.options
	ctx, cancel := context.WithTimeout(o.sign(b.ctx), o.Timeout)
	defer cancel()
	_, err := b.client.limiter.Peek(ctx, new(pb.CheckRequest))
	return err == nil || isMistake(err)
}
