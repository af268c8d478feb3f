package redis

import (
	"errors"
	"sync"
)

// maxOps bounds a script call, and so for how long Redis does nothing else.
const maxOps = 512

var errClosed = errors.New("redis: the store is closed")

// lane is the way to one slot of a cluster, or to all of a Redis that is none. It
// gathers the checks that arrive while a call is under way; they travel together
// in the next one. Entering Lua costs Redis more than a check does, so sharing the
// way in is most of the speed. A check that comes alone leaves at once: nothing
// ever waits for a timer.
type lane struct {
	slot    uint16
	waiting []*check
	busy    bool // somebody is sending
	breaker
}

// lanes are those in use or in trouble; the others need not be remembered.
type lanes struct {
	mu      sync.Mutex
	bySlot  map[uint16]*lane
	down    map[uint16]*lane
	probing bool // somebody asks for those that are down
	closed  bool

	workers sync.WaitGroup
}

// submit puts a check on its lane. One that cannot go is done at once.
func (s *Store) submit(c *check) {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	l := s.lanes.bySlot[c.slot]
	if l == nil {
		l = &lane{slot: c.slot}
		s.lanes.bySlot[c.slot] = l
	}
	switch {
	case s.lanes.closed:
		c.fail(errClosed)
	case l.down != nil:
		c.fail(l.down)
	default:
		l.waiting = append(l.waiting, c)
		if !l.busy {
			l.busy = true
			s.lanes.workers.Go(func() { s.send(l) })
		}
	}
}

// send makes one call after another until nobody waits.
func (s *Store) send(l *lane) {
	for batch := s.next(l); len(batch) > 0; batch = s.next(l) {
		r := newRequest(batch)
		err := s.call(r)
		s.report(l, r.keys[0], err)
		for _, c := range batch {
			if c.err == nil {
				c.err = err
			}
			close(c.done)
		}
	}
}

// next takes what fits into a call, oldest first, without those who have left.
// When there is nobody, the sender's work is over.
func (s *Store) next(l *lane) []*check {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	batch := l.takeLocked()
	if len(batch) == 0 {
		l.busy = false
		if l.healthy() {
			delete(s.lanes.bySlot, l.slot)
		}
	}
	return batch
}

func (l *lane) takeLocked() []*check {
	var batch []*check
	ops, taken := 0, 0
	for _, c := range l.waiting {
		if !c.left.Load() {
			if ops += len(c.ops); ops > maxOps && len(batch) > 0 {
				break
			}
			batch = append(batch, c)
		}
		taken++
	}
	rest := copy(l.waiting, l.waiting[taken:])
	clear(l.waiting[rest:])
	l.waiting = l.waiting[:rest]
	return batch
}
