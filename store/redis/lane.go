package redis

import (
	"errors"
	"runtime"
	"sync"
	"time"
)

const (
	// maxWeight bounds a script call, and so for how long Redis does nothing else.
	maxWeight = 512

	// maxManyChecks bounds a call for keys with many holds, where a check takes several times as long.
	maxManyChecks = 64

	// maxSending is how many calls of a lane are under way at most. With two, Redis has
	// work while we read an answer; with more, fewer checks would share a call.
	maxSending = 2
)

var errClosed = errors.New("redis: the store is closed")

// lane is the way to one slot of a cluster, or to all of a Redis that is none. It
// gathers the checks that arrive while two calls are under way; they travel together
// in the next one. Entering Lua costs Redis more than a check does, so sharing the
// way in is most of the speed. Other checks leave at once: nothing ever waits for a
// timer.
type lane struct {
	slot    uint16
	waiting []*check
	sending int  // how many are
	crowded bool // the last call was for several
	breaker
}

// lanes are those in use or in trouble; the others need not be remembered.
type lanes struct {
	mu      sync.Mutex
	bySlot  map[uint16]*lane
	doubted map[uint16]*lane // of which nobody knows whether they work, or which are down
	probing bool             // somebody asks for those
	heard   bool             // an answer to a check came since the last look
	closed  bool

	workers sync.WaitGroup
}

// submit puts a check on its lane. A check that cannot be sent ends immediately. If
// another call may be under way, this caller becomes its leader: it must call lead or
// send.
func (s *Store) submit(c *check) (leads *lane) {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	if s.lanes.closed {
		c.finish(errClosed)
		return nil
	}
	l := s.laneLocked(c.slot)
	if l.down != nil {
		c.finish(l.down)
		return nil
	}
	l.waiting = append(l.waiting, c)
	if l.sending == maxSending {
		return nil
	}
	l.sending++
	s.lanes.workers.Add(1)
	return l
}

func (s *Store) laneLocked(slot uint16) *lane {
	l := s.lanes.bySlot[slot]
	if l == nil {
		l = &lane{slot: slot}
		s.lanes.bySlot[slot] = l
	}
	return l
}

// lead makes one call, and leaves later checks to a new goroutine. So a single caller
// needs no goroutine.
func (s *Store) lead(l *lane) {
	if s.isCrowded(l) {
		runtime.Gosched() // others are about to come; to who is alone it costs as much as half a call
	}
	if batch := s.next(l); len(batch) > 0 {
		s.dispatch(l, batch)
		if s.hasMore(l) {
			go s.send(l)
		}
	}
}

func (s *Store) isCrowded(l *lane) bool {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	return l.crowded
}

// send makes one call after another until no check waits.
func (s *Store) send(l *lane) {
	for batch := s.next(l); len(batch) > 0; batch = s.next(l) {
		s.dispatch(l, batch)
		runtime.Gosched()
	}
}

// aside does something for which Close waits; false if the store is closed already.
func (s *Store) aside(work func()) bool {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	if !s.lanes.closed {
		s.lanes.workers.Go(work)
	}
	return !s.lanes.closed
}

// hasMore reports whether anybody waits. If not, the leader's work is over.
func (s *Store) hasMore(l *lane) bool {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	if len(l.waiting) == 0 {
		s.idleLocked(l)
		return false
	}
	return true
}

// next takes the checks that fit into a call, oldest first, without those whose callers
// have left. If there are none, the sender ends.
func (s *Store) next(l *lane) []*check {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	batch := l.takeLocked()
	if len(batch) == 0 {
		s.idleLocked(l)
	}
	return batch
}

func (s *Store) idleLocked(l *lane) {
	l.sending--
	if l.sending == 0 && !l.doubted && s.link.cluster { // a single lane stays, with its memory
		delete(s.lanes.bySlot, l.slot)
	}
	s.lanes.workers.Done()
}

func (l *lane) takeLocked() []*check {
	var batch []*check
	weight, taken, now := 0, 0, time.Now()
	for _, c := range l.waiting {
		if weight+c.weight > maxWeight && len(batch) > 0 && c.way.Load() != left {
			break
		}
		if c.send(now) {
			weight += c.weight
			batch = append(batch, c)
		}
		taken++
	}
	rest := copy(l.waiting, l.waiting[taken:])
	clear(l.waiting[rest:])
	l.waiting = l.waiting[:rest]
	if len(batch) > 0 {
		l.crowded = len(batch) > 1
	}
	return batch
}
