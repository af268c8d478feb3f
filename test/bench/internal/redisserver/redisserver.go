// Package redisserver starts a real Redis to measure against, on a free port of
// the loopback, and leaves none behind.
package redisserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/weirhq/weir/internal/child"
)

// Server is a running redis-server with nothing in it.
type Server struct {
	Addr string // host:port

	process *child.Process
	dir     string // of its log
}

// Start starts a server. Linux ends it with this process, however that ends;
// elsewhere a ^C reaches both.
func Start() (*Server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redisserver: redis-server is not installed; install Debian's redis-server, or run make bench as root, which does")
	}
	for range 5 { // somebody else may take the port before the server does
		var s *Server
		if s, err = start(path); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func start(path string) (*Server, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: free.Addr().String()}
	_, port, _ := net.SplitHostPort(s.Addr)
	free.Close()
	if s.dir, err = os.MkdirTemp("", "redisserver-"); err != nil {
		return nil, err
	}
	log := filepath.Join(s.dir, "log")
	s.process, err = child.Start(path, []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.dir}, log)
	if err != nil {
		os.RemoveAll(s.dir)
		return nil, fmt.Errorf("redisserver: %w", err)
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if s.answers() {
			return s, nil
		}
		select {
		case <-s.process.Done():
			said, _ := os.ReadFile(log)
			s.Stop()
			return nil, fmt.Errorf("redisserver: redis-server ended at once and said:\n%s", said)
		case <-time.After(10 * time.Millisecond):
		}
	}
	s.Stop()
	return nil, fmt.Errorf("redisserver: redis-server does not answer on %s", s.Addr)
}

func (s *Server) answers() bool {
	c, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	reply := make([]byte, 5)
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	_, err = c.Read(reply)
	return err == nil && string(reply) == "+PONG"
}

// Process is the number of its process.
func (s *Server) Process() int { return s.process.PID() }

// Stop ends the server and waits until it is gone.
func (s *Server) Stop() {
	s.process.Kill()
	os.RemoveAll(s.dir)
}
