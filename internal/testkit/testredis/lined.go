package testredis

import (
	"net"
	"strconv"
)

// Lined, before the arguments of redis-server, puts each server behind a line. It is known to
// its clients, its replicas, its Sentinels and the rest of its cluster by the address of the
// line. So whatever is done to the line happens to all of them, while the server lives and Do
// still reaches it. Nodes of a cluster gossip beside it.
const Lined = "lined"

// settle chooses where the server listens.
func (s *Server) settle() error {
	addr, err := FreeAddr()
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
