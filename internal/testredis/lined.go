package testredis

import (
	"net"
	"strconv"
	"testing"
)

// A server behind a line is known to its clients, its replicas, its Sentinels and the rest of
// its cluster by the address of the line. So whatever is done to the line happens to all of
// them, while the server lives and Do still reaches it. Nodes of a cluster gossip beside it.

// StartLined is Start behind a line.
func StartLined(t testing.TB, args ...string) *Server {
	t.Helper()
	s := lined(newServer(t, args...))
	launch(t, s)
	return s
}

// StartSentinelLined is StartSentinel with a line to each of the two servers.
func StartSentinelLined(t testing.TB, args ...string) *Sentinel {
	t.Helper()
	return startSentinel(t, lined, args...)
}

// StartClusterLined is StartCluster with a line to each node.
func StartClusterLined(t testing.TB, args ...string) *Cluster {
	t.Helper()
	return startCluster(t, lined, args...)
}

// placing says how clients reach a server that is yet to be launched.
type placing func(*Server) *Server

func direct(s *Server) *Server { return s }

func lined(s *Server) *Server {
	s.t.Helper()
	s.Line = newLine(s.t)
	return s
}

// settle chooses where the server listens.
func (s *Server) settle() error {
	addr, err := freeAddr()
	if err != nil || s.Line == nil {
		s.Addr = addr
		return err
	}
	s.Addr, s.listens = s.Line.Addr, addr
	s.Line.leadTo(addr)
	return nil
}

// direct is where the server itself listens.
func (s *Server) direct() string {
	if s.listens != "" {
		return s.listens
	}
	return s.Addr
}

// announce are the arguments by which a server with a line tells others of that.
func (s *Server) announce() []string {
	if s.Line == nil {
		return nil
	}
	return []string{
		"--replica-announce-ip", "127.0.0.1", "--replica-announce-port", portOf(s.Addr),
		"--cluster-announce-ip", "127.0.0.1", "--cluster-announce-port", portOf(s.Addr), "--cluster-announce-bus-port", busOf(s),
	}
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// busOf is the port on which a node gossips.
func busOf(s *Server) string {
	port, _ := strconv.Atoi(portOf(s.direct()))
	return strconv.Itoa(port + busOffset)
}
