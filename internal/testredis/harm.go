package testredis

// FlushScripts makes the server forget every script: EVALSHA answers NOSCRIPT.
func (s *Server) FlushScripts() {
	s.t.Helper()
	s.Do("SCRIPT", "FLUSH")
}

// FillMemory makes the server answer OOM to whatever may need memory. A limit just
// below what is used would do as well, until a client hangs up and there is room.
func (s *Server) FillMemory() {
	s.t.Helper()
	s.Do("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1")
}

// FreeMemory undoes FillMemory.
func (s *Server) FreeMemory() {
	s.t.Helper()
	s.Do("CONFIG", "SET", "maxmemory", "0")
}
