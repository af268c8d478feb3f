package redis

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/weirhq/weir"
)

const (
	// tripAfter is how many calls in a row have to go unanswered before a lane
	// is down. One may be a fork or a hiccup.
	tripAfter = 3

	// probeEvery is how often lanes in doubt are asked for.
	probeEvery = 100 * time.Millisecond

	// lookEvery is the mean time between two looks at a Redis of which nothing bad is known. Without
	// them, an outage would be news only to the next caller.
	lookEvery = 2 * time.Second
)

// breaker spares callers from waiting for a Redis that does not answer. It knows
// no half-open: no caller is the one who finds out whether Redis is back, a probe
// in the background is. The probe also asks when one call was not answered, and when there
// were no calls: what it finds out counts as a call does.
type breaker struct {
	failures int       // calls in a row that were not answered
	failing  time.Time // when the first of them was not
	doubted  bool      // a probe asks for it
	down     error     // what callers are told at once; nil while the lane works
	key      string    // what a probe asks for

	downSince time.Time
	cause     error // of being down: how the last call has ended
}

// answered reports whether a call was, be it with an error: a key of the wrong type
// is no reason to stop asking for others.
func answered(err error) bool {
	_, replied := replyOf(err)
	return err == nil || replied || errors.Is(err, errAnswer)
}

// report tells the lane how a call has ended.
func (s *Store) report(l *lane, key string, err error) {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	switch {
	case answered(err):
		l.failures, s.lanes.heard = 0, true
	case errors.Is(err, weir.ErrBusy): // nobody knows what the store has done
	default:
		s.failLocked(l, key, err)
	}
}

// failLocked counts a call that was not answered.
func (s *Store) failLocked(l *lane, key string, err error) {
	if l.failures++; l.failures == 1 {
		l.failing = time.Now()
	}
	s.doubtLocked(l, key)
	if l.failures >= tripAfter {
		s.tripLocked(l, err)
	}
}

// doubtLocked has a probe ask for a lane.
func (s *Store) doubtLocked(l *lane, key string) {
	l.key, l.doubted = key, true
	s.lanes.doubted[l.slot] = l
	if !s.lanes.probing && !s.lanes.closed {
		s.lanes.probing = true
		s.lanes.workers.Go(s.probe)
	}
}

// tripLocked closes a lane, for those too who are waiting for it.
func (s *Store) tripLocked(l *lane, err error) {
	if l.down == nil {
		l.downSince = l.failing
	}
	l.cause = err
	l.down = fmt.Errorf("redis: %w; the last call ended with: %v", weir.ErrUnavailable, err)
	for _, c := range l.waiting {
		c.finish(l.down)
	}
	l.waiting = nil
}

// look has a probe ask, if nobody else did since the last look. In a cluster it asks anyway: an answer is that of one
// master.
func (s *Store) look() {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	if s.lanes.heard && !s.link.cluster {
		s.lanes.heard = false
		return
	}
	for _, key := range s.lookKeys() {
		if l := s.laneLocked(s.slot(key)); !l.doubted {
			s.doubtLocked(l, key)
		}
	}
}

// lookKeys are keys of which each master of a cluster has one: there are as many regions of slots as
// a large cluster has masters, and a key in each. With a hash tag for a prefix there is only one.
func (s *Store) lookKeys() (keys []string) {
	if !s.link.cluster {
		return []string{s.prefix + "probe"}
	}
	const regions = 16
	var found [regions]bool
	for i := 0; i < 16*regions && len(keys) < regions; i++ {
		key := s.prefix + "probe" + strconv.Itoa(i)
		if region := slotOf(key) / (slots / regions); !found[region] {
			found[region] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// probe asks for all lanes in doubt, again and again, until none is.
func (s *Store) probe() {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		lanes, keys, down := s.lanesInDoubt()
		if !s.learn(lanes, s.link.probe(keys, down)) {
			return
		}
		select {
		case <-tick.C:
		case <-s.closing:
			return
		}
	}
}

// lanesInDoubt returns what to ask for, and whether all of it is down.
func (s *Store) lanesInDoubt() (doubted []*lane, keys []string, down bool) {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	down = true
	for _, l := range s.lanes.doubted {
		doubted = append(doubted, l)
		keys = append(keys, l.key)
		down = down && l.down != nil
	}
	return doubted, keys, down
}

// learn opens the lanes that have answered, and reports whether others are in doubt.
func (s *Store) learn(lanes []*lane, errs []error) bool {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	for i, l := range lanes {
		switch err := errs[i]; {
		case ready(err):
			l.failures, l.down, l.doubted = 0, nil, false
			delete(s.lanes.doubted, l.slot)
			if l.sending == 0 && s.link.cluster {
				delete(s.lanes.bySlot, l.slot)
			}
		case !errors.Is(err, weir.ErrBusy):
			s.failLocked(l, l.key, explain(err))
		}
	}
	s.lanes.probing = len(s.lanes.doubted) > 0
	return s.lanes.probing
}

// Available reports whether Redis answers. It is false while the circuit breaker of any part of
// Redis is open, and after Close. It sends nothing: the store calls Redis every two seconds by itself.
func (s *Store) Available() bool {
	select {
	case <-s.closing:
		return false
	default:
		since, _ := s.Outage()
		return since.IsZero()
	}
}

// Outage returns since when Redis, or a part of it, has been unavailable, and the error
// of the last request to it. The time is that of the first request without an answer. It is zero while all of Redis is available.
func (s *Store) Outage() (since time.Time, cause error) {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	for _, l := range s.lanes.doubted {
		if l.down != nil && (since.IsZero() || l.downSince.Before(since)) {
			since, cause = l.downSince, l.cause
		}
	}
	return since, cause
}
