//go:build !unix

package testredis

// Pause and Resume are there so that tests compile where nothing can be paused.
func (s *Server) Pause()  { s.t.Fatal("a process cannot be paused on this system") }
func (s *Server) Resume() {}
