package redis

// Available reports whether Redis can be asked, as far as the last requests tell: it is
// false while the breaker of any part of it is open, and once the store is closed. It
// sends nothing; [Store.Ping] does.
func (s *Store) Available() bool {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	return len(s.lanes.down) == 0 && !s.lanes.closed
}
