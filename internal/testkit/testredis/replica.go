package testredis

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
)

// Replica starts a replica of a server: it has the same data and password, and answers
// READONLY to writes. It returns when the two are in sync.
func Replica(t testing.TB, master *Server) *Server {
	t.Helper()
	var args []string
	if master.password != "" {
		args = []string{"--requirepass", master.password}
	}
	s := newReplica(t, master, args...)
	launch(t, s)
	wait(t, "the replica does not get in sync", s.inSync, s, master)
	return s
}

func newReplica(t testing.TB, master *Server, args ...string) *Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(master.Addr)
	return newServer(t, slices.Concat(args, []string{"--replicaof", host, port})...)
}

// inSync reports whether a replica has all that its master had when it was asked,
// and gets what comes next. That its link is up does not say so: for up to a second
// after that the master may still keep it waiting.
func (s *Server) inSync() error {
	text, err := s.TryDo("INFO", "replication")
	if err != nil {
		return err
	}
	if link := lineOf(text, "master_link_status"); link != "up" {
		return fmt.Errorf("%s: its role is %q and its link to the master is %q", s.Addr, lineOf(text, "role"), link)
	}
	master := &Server{Addr: net.JoinHostPort(lineOf(text, "master_host"), lineOf(text, "master_port")), password: s.password}
	// Waiting for more replicas than there are sends something to those there are.
	if _, err := master.TryDo("WAIT", "99", "1"); err != nil {
		return err
	}
	want, err := master.Info("replication", "master_repl_offset")
	if err != nil {
		return err
	}
	has, err := s.Info("replication", "slave_repl_offset")
	if err != nil {
		return err
	}
	if number(has) < number(want) {
		return fmt.Errorf("%s: it is at %s and its master %s at %s", s.Addr, has, master.Addr, want)
	}
	return nil
}

// number is 0 if it is none.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
