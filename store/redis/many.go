package redis

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The state of a key with many open holds, or with units on lease, is in a key of its own, and most functions of lua/ answer that it is
// foreign. Then one is asked that has more keys: the singles of lua/singles.lua, if it is for those, or anyHolds. A store
// remembers such keys for a moment, so that it need not ask twice each time.

const (
	// crowdFor is for how long a key is taken to have many holds.
	crowdFor = time.Second

	// maxCrowds bounds the keys that are remembered.
	maxCrowds = 1024
)

// errMoreDue is that more holds have expired than can end in a call, or that something is due for anyHolds. The next one goes on.
var errMoreDue = errors.New("redis: holds that have expired are about to end")

// crowds are keys with many holds or leases, and until when that is remembered.
type crowds struct {
	count atomic.Int32 // so that a store without any need not lock
	mu    sync.Mutex
	until map[string]time.Time
}

// part separates checks of such keys, and those about leases, from others.
func (c *crowds) part(batch []*check) (few []*check, apart parts) {
	if c.count.Load() == 0 && !slices.ContainsFunc(batch, func(c *check) bool { return c.verb == lease }) {
		return batch, apart
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, check := range batch {
		if check.verb == lease || slices.ContainsFunc(check.keys, func(key string) bool { return c.until[key].After(now) }) {
			apart.addCheck(check)
		} else {
			few = append(few, check)
		}
	}
	return few, apart
}

// parts are checks on keys whose states may be in keys of their own: singles by their algorithms, and others.
type parts struct {
	singles map[entry][]*check
	others  []*check
}

func (p *parts) addCheck(c *check) {
	if !c.isSingle() {
		p.others = append(p.others, c)
		return
	}
	if p.singles == nil {
		p.singles = map[entry][]*check{}
	}
	e := algorithms[c.ops[0].Limit.Algorithm()].moved
	p.singles[e] = append(p.singles[e], c)
}

func (c *crowds) addKey(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil || len(c.until) >= maxCrowds {
		c.until = make(map[string]time.Time)
	}
	c.until[key] = time.Now().Add(crowdFor)
	c.count.Store(int32(len(c.until)))
}

// dispatch has the checks of a batch answered.
func (s *Store) dispatch(l *lane, batch []*check) {
	few, apart := s.crowds.part(batch)
	due := time.Now().Add(s.timeout)
	for _, c := range s.ask(l, few, 0) {
		apart.addCheck(c)
	}
	others := apart.others
	for _, singles := range apart.singles {
		others = append(others, s.askParts(l, singles, isMoved, due)...)
	}
	for len(others) > 0 {
		others = s.askParts(l, others, hasMany, due)
	}
}

// askParts makes as many calls as it takes, unless it is late.
func (s *Store) askParts(l *lane, batch []*check, many int64, due time.Time) (again []*check) {
	for part := range slices.Chunk(batch, maxManyChecks) {
		if time.Now().After(due) {
			for _, c := range part {
				c.finish(s.late()) // many holds have expired, and there is no time left to end all
			}
			continue
		}
		again = append(again, s.ask(l, part, many)...)
	}
	return again
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
		mayBeMoved := many <= mayHaveMany && errors.Is(c.err, errForeign)
		if err == nil && (mayBeMoved || errors.Is(c.err, errMoreDue)) {
			if mayBeMoved {
				for _, key := range c.keys {
					s.crowds.addKey(key)
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
