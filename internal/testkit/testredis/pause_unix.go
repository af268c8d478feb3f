//go:build unix

package testredis

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// Pause stops the process of the server: it keeps its port and its connections, but
// does not answer. It returns when the process has stopped.
func (s *Server) Pause() {
	s.t.Helper()
	pid := s.signal(syscall.SIGSTOP, true)
	wait(s.t, "redis-server does not pause", func() error {
		if !stopped(pid) {
			return errors.New("it still runs")
		}
		return nil
	}, s)
}

// stopped reports whether a SIGSTOP has reached the process. The state follows the program's
// name, which is in parentheses and may contain anything. Only Linux says cheaply; elsewhere the
// signal is taken for the deed.
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return runtime.GOOS != "linux" || err == nil && bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T"))
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.t.Helper()
	s.signal(syscall.SIGCONT, false)
}

func (s *Server) signal(signal syscall.Signal, paused bool) (pid int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.process.Signal(signal); err != nil {
		fatal(s.t, signal.String(), err, s)
	}
	s.paused = paused
	return s.process.PID()
}
