package redis

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A key with many open holds, or with units on lease, is not for most functions of lua/, which answer that its state is foreign. Then
// anyHolds is asked, with more keys; see lua/many_holds.lua. A store remembers such keys for a moment, so that
// it need not ask twice each time.

const (
	// crowdFor is for how long a key is taken to have many holds.
	crowdFor = time.Second

	// maxCrowds bounds the keys that are remembered.
	maxCrowds = 1024
)

// errMoreDue is that more holds have expired than can end in a call. The next one goes on.
var errMoreDue = errors.New("redis: holds that have expired are about to end")

// crowds are keys with many holds or leases, and until when that is remembered.
type crowds struct {
	count atomic.Int32 // so that a store without any need not lock
	mu    sync.Mutex
	until map[string]time.Time
}

// part separates checks of such keys, and those about leases, from others.
func (c *crowds) part(batch []*check) (many, few []*check) {
	if c.count.Load() == 0 && !slices.ContainsFunc(batch, func(c *check) bool { return c.verb == lease }) {
		return nil, batch
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, check := range batch {
		if check.verb == lease || slices.ContainsFunc(check.keys, func(key string) bool { return c.until[key].After(now) }) {
			many = append(many, check)
		} else {
			few = append(few, check)
		}
	}
	return many, few
}

func (c *crowds) add(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil || len(c.until) >= maxCrowds {
		c.until = make(map[string]time.Time)
	}
	c.until[key] = time.Now().Add(crowdFor)
	c.count.Store(int32(len(c.until)))
}

// ask makes one call, and returns the checks that have to be asked again.
func (s *Store) ask(l *lane, batch []*check, many int64) (again []*check) {
	if len(batch) == 0 {
		return nil
	}
	if s.knows(manyHolds) {
		many += mayHaveMany
	}
	r := newRequest(batch, many)
	err := s.call(r)
	s.report(l, r.keys[0], err)
	for _, c := range batch {
		isMoved := many < hasMany && errors.Is(c.err, errForeign)
		if err == nil && (isMoved || errors.Is(c.err, errMoreDue)) {
			if isMoved {
				for _, key := range c.keys {
					s.crowds.add(key)
				}
			}
			c.err = nil
			again = append(again, c)
			continue
		}
		c.finish(err)
	}
	return again
}
