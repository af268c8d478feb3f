package redis

import "time"

// Available reports whether Redis can be asked, as far as the last requests tell: it is
// false while the breaker of any part of it is open, and once the store is closed. It
// sends nothing; [Store.Ping] does.
func (s *Store) Available() bool {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	return len(s.lanes.down) == 0 && !s.lanes.closed
}

// Outage returns since when Redis, or a part of it, has been unavailable, and how the
// last request to it has ended. The time is zero while all of it is available.
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
