// Package redisserver starts a real Redis to measure against, on a free port of
// the loopback, and leaves none behind.
package redisserver

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// Server is a running redis-server with nothing in it, which writes no file.
type Server struct {
	Addr string // host:port

	cmd   *exec.Cmd
	log   bytes.Buffer
	ended chan struct{}
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
	s := &Server{Addr: free.Addr().String(), ended: make(chan struct{})}
	_, port, _ := net.SplitHostPort(s.Addr)
	free.Close()
	s.cmd = exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", os.TempDir())
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.SysProcAttr = attr()
	started := make(chan error)
	go func() {
		defer close(s.ended)
		// Linux takes the death of the thread for that of the parent. So this
		// thread does nothing else as long as the server runs.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			s.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("redisserver: %w", err)
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if s.answers() {
			return s, nil
		}
		select {
		case <-s.ended:
			return nil, fmt.Errorf("redisserver: redis-server ended at once and said:\n%s", s.log.String())
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
func (s *Server) Process() int { return s.cmd.Process.Pid }

// Stop ends the server and waits until it is gone.
func (s *Server) Stop() {
	s.cmd.Process.Kill()
	<-s.ended
}
