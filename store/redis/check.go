package redis

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
)

// check is ops on one slot on their way: what one script call decides together.
type check struct {
	verb verb
	slot uint16
	ops  []weir.Op // whose own keys are not looked at again: they are the caller's
	keys []string  // theirs in Redis

	left atomic.Bool // whoever asked has gone, so it need not be sent
	done chan struct{}

	// What came of it, once done is closed.
	decisions []weir.Decision
	err       error
}

func (c *check) fail(err error) {
	c.err = err
	close(c.done)
}

// admitted reports whether the check is known to have been charged.
func (c *check) admitted() bool {
	select {
	case <-c.done:
		return c.err == nil && weir.Admitted(c.decisions)
	default:
		return false
	}
}

// leave says that nobody waits any more. What is given back is sent all the same.
func (c *check) leave() { c.left.Store(c.verb != refund) }

// await returns when the check is done, or has taken too long, or the caller has
// lost interest. In the latter two cases it may or may not have been charged.
func (s *Store) await(ctx context.Context, c *check, timeout *time.Timer) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		c.leave()
		return ctx.Err()
	case <-timeout.C:
		c.leave()
		timeout.Reset(0) // whoever waits for another check with it is late too
		return fmt.Errorf("redis: there was no answer within %v: %w", s.timeout, context.DeadlineExceeded)
	}
}
