package redis

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir"
)

const (
	// tripAfter is how many calls in a row have to go unanswered before a lane
	// is down. One may be a fork or a hiccup.
	tripAfter = 3

	// probeEvery is how often lanes that are down are asked for.
	probeEvery = 100 * time.Millisecond
)

// breaker spares callers from waiting for a Redis that does not answer. It knows
// no half-open: no caller is the one who finds out whether Redis is back, a probe
// in the background is.
type breaker struct {
	failures int    // calls in a row that were not answered
	down     error  // what callers are told at once; nil while the lane works
	key      string // what a probe asks for

	downSince time.Time
	cause     error // of being down: how the last call has ended
}

func (b *breaker) healthy() bool { return b.failures == 0 && b.down == nil }

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
		l.failures = 0
		return
	case errors.Is(err, weir.ErrBusy):
		return // nobody knows what the store has done
	}
	l.key = key
	if l.failures++; l.failures >= tripAfter {
		s.tripLocked(l, err)
	}
}

// tripLocked closes a lane, for those too who are waiting for it.
func (s *Store) tripLocked(l *lane, err error) {
	if l.down == nil {
		l.downSince = time.Now()
	}
	l.cause = err
	l.down = fmt.Errorf("redis: %w; the last call ended with: %v", weir.ErrUnavailable, err)
	for _, c := range l.waiting {
		c.finish(l.down)
	}
	l.waiting = nil
	s.lanes.down[l.slot] = l
	if !s.lanes.probing && !s.lanes.closed {
		s.lanes.probing = true
		s.lanes.workers.Go(s.probe)
	}
}

// probe asks for all lanes that are down, again and again, until none is.
func (s *Store) probe() {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		lanes, keys := s.lanesDown()
		if !s.open(lanes, s.link.probe(keys)) {
			return
		}
		select {
		case <-tick.C:
		case <-s.closing:
			return
		}
	}
}

func (s *Store) lanesDown() (down []*lane, keys []string) {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	for _, l := range s.lanes.down {
		down = append(down, l)
		keys = append(keys, l.key)
	}
	return down, keys
}

// open opens the lanes that have answered, and reports whether others are down.
func (s *Store) open(lanes []*lane, answered []bool) bool {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	for i, l := range lanes {
		if !answered[i] {
			continue
		}
		l.failures, l.down = 0, nil
		delete(s.lanes.down, l.slot)
		if l.sending == 0 && s.link.cluster {
			delete(s.lanes.bySlot, l.slot)
		}
	}
	s.lanes.probing = len(s.lanes.down) > 0
	return s.lanes.probing
}

// Available reports whether Redis answered the last requests. It is false while the
// circuit breaker of any part of Redis is open, and after Close. It sends nothing;
// [Store.Ping] does.
func (s *Store) Available() bool {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	return len(s.lanes.down) == 0 && !s.lanes.closed
}

// Outage returns since when Redis, or a part of it, has been unavailable, and the error
// of the last request to it. The time is zero while all of it is available.
func (s *Store) Outage() (since time.Time, cause error) {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	for _, l := range s.lanes.down {
		if since.IsZero() || l.downSince.Before(since) {
			since, cause = l.downSince, l.cause
		}
	}
	return since, cause
}
