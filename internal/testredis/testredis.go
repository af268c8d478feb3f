// Package testredis starts real Redis servers for tests, on free ports of the
// loopback, and leaves none behind.
package testredis

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Server is a running redis-server with nothing in it.
type Server struct {
	Addr string // host:port

	cmd  *exec.Cmd
	log  bytes.Buffer
	done chan struct{} // closed when the process has ended
}

// Start starts a server, and stops it when the test is over. It fails the test if
// there is none to start: make test installs it.
func Start(t testing.TB) *Server {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("redis-server is missing; run make test, which installs it, or install Debian's redis-server")
	}
	var last string
	for range 5 { // somebody else may take the port before the server does
		s := &Server{Addr: freeAddr(t), done: make(chan struct{})}
		if s.start(path, t.TempDir()) {
			t.Cleanup(s.Kill)
			return s
		}
		last = s.log.String()
	}
	t.Fatalf("redis-server does not start:\n%s", last)
	return nil
}

func freeAddr(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start reports whether the server answers.
func (s *Server) start(path, dir string) bool {
	_, port, _ := strings.Cut(s.Addr, ":")
	s.cmd = exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.SysProcAttr = attr()
	if err := s.cmd.Start(); err != nil {
		fmt.Fprintln(&s.log, err)
		return false
	}
	go func() {
		defer close(s.done)
		s.cmd.Wait()
	}()
	for range 500 {
		if s.answers() {
			return true
		}
		select {
		case <-s.done:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	s.Kill()
	return false
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

// Kill ends the server as a crash would, and waits until it is gone.
func (s *Server) Kill() {
	s.cmd.Process.Kill()
	<-s.done
}
