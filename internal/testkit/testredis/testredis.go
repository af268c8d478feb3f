// Package testredis starts real Redis servers for tests and measurements, on free ports of
// the loopback, and leaves none behind.
package testredis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/internal/testkit"
)

// Server is a running redis-server with nothing in it.
type Server struct {
	Addr string // host:port, for its clients
	Line *Proxy // through which its clients come; nil if they come directly

	t        testing.TB
	listens  string   // where, if it has a line; otherwise at Addr
	path     string   // of the program
	dir      string   // its data and its log
	args     []string // all but the port
	password string
	tls      *tls.Config // nil if it speaks plainly

	mu      sync.Mutex
	process *testkit.Child // nil before the first start
	paused  bool
}

// Start starts a server, and stops it when the test is over. The arguments are
// redis-server's, as in "--requirepass", "secret", after [Lined] if there is to be a line. It fails the test if there is
// no redis-server: make test installs it.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := newServer(t, args...)
	launch(t, s)
	return s
}

// newServer is a server that is yet to be launched. What a replica needs is said to
// all of them, since any may get one or become one: no waiting for more replicas
// before the data is sent, the password, and no file left from which the next
// start would load what this one held.
func newServer(t testing.TB, args ...string) *Server {
	t.Helper()
	isLined := len(args) > 0 && args[0] == Lined
	if isLined {
		args = args[1:]
	}
	s := newProgram(t, slices.Concat([]string{"--save", "", "--appendonly", "no",
		"--repl-diskless-sync-delay", "0", "--rdb-del-sync-files", "yes"}, args)...)
	if i := slices.Index(args, "--requirepass"); i >= 0 && i+1 < len(args) {
		s.password = args[i+1]
		s.args = append(s.args, "--masterauth", s.password)
	}
	if isLined {
		s.Line = newLine(t)
	}
	return s
}

// newProgram is a server or a Sentinel, which share the program and little else.
func newProgram(t testing.TB, args ...string) *Server {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("redis-server is not installed; install Debian's redis-server, or run make test or make bench as root, which do")
	}
	s := &Server{t: t, path: path, dir: t.TempDir()}
	s.args = slices.Concat(args, []string{"--bind", "127.0.0.1", "--dir", s.dir})
	t.Cleanup(s.Kill)
	return s
}

// launch starts servers side by side, each on a port of its own.
func launch(t testing.TB, servers ...*Server) {
	t.Helper()
	failed := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			for range 5 { // somebody else may take the port before the server does
				if failed[i] = s.settle(); failed[i] != nil {
					return
				}
				if failed[i] = s.run(); failed[i] == nil {
					return
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		fatal(t, "redis-server does not start", err, servers...)
	}
}

// run starts the program on its address and waits until it answers.
func (s *Server) run() error {
	_, port, _ := net.SplitHostPort(s.direct())
	listen := append(s.announce(), "--port", port)
	if s.tls != nil {
		listen = append(s.announce(), "--port", "0", "--tls-port", port)
	}
	p, err := testkit.Start(s.path, slices.Concat(s.args, listen), s.logFile())
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.process, s.paused = p, false
	s.mu.Unlock()
	ended := false // then there is nothing to wait for
	err = await(func() error {
		if ended = !p.Alive(); ended {
			return nil
		}
		// A stranger who was faster on this port answers as well.
		pid, err := s.Info("server", "process_id")
		if err == nil && pid != strconv.Itoa(p.PID()) {
			err = fmt.Errorf("another process (%s) answers at %s", pid, s.Addr)
		}
		return err
	})
	if ended {
		return errors.New("the process has ended")
	}
	if err != nil {
		p.Kill()
	}
	return err
}

// Kill ends the server as a crash would, and waits until it is gone.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.Kill()
	}
	s.paused = false
}

// Restart starts a server that was killed again, empty, on the same port. One that
// runs is killed first. A node of a cluster is still the node that it was.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	wait(s.t, "redis-server does not start again", s.run, s)
}

// PID is the number of the process that runs, or that ran last.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.PID()
}

// up reports whether the server can be expected to answer.
func (s *Server) up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && s.process.Alive() && !s.paused
}

// up are those servers that can be expected to answer.
func up(servers []*Server) (alive []*Server) {
	for _, s := range servers {
		if s.up() {
			alive = append(alive, s)
		}
	}
	return alive
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// fatal ends the test with what went wrong and how the logs end.
func fatal(t testing.TB, what string, err error, servers ...*Server) {
	t.Helper()
	var logs strings.Builder
	for _, s := range servers {
		log, _ := os.ReadFile(s.logFile())
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		fmt.Fprintf(&logs, "\n--- %s\n%s", s.Addr, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
	t.Fatalf("%s: %v%s", what, err, logs.String())
}

// patience is for a machine that does much else; nothing here takes that long.
const patience = 2 * time.Minute

// await asks again and again until it is ready; the error is what was missing last.
func await(ready func() error) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := ready()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %w", patience, err)
		}
	}
}

// wait is await for what must be ready; if it is not, the test ends with the logs of servers.
func wait(t testing.TB, what string, ready func() error, servers ...*Server) {
	t.Helper()
	if err := await(ready); err != nil {
		fatal(t, what, err, servers...)
	}
}

// VerifyMain runs the tests of a package, and fails if they leave goroutines behind. A cluster's
// client closes connections that it needs no more five seconds later, whether or not it is
// closed itself.
func VerifyMain(m *testing.M, options ...goleak.Option) {
	os.Exit(testkit.Run(m, append(options, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))...))
}

// FlushScripts makes the server forget every script and function: EVALSHA answers NOSCRIPT.
func (s *Server) FlushScripts() {
	s.t.Helper()
	s.Do("SCRIPT", "FLUSH")
	s.Do("FUNCTION", "FLUSH")
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
