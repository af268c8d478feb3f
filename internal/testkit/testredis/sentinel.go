package testredis

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

// Sentinel is a master and a replica, watched by three Sentinels of which two must
// agree. A master that does not answer for a second is replaced.
type Sentinel struct {
	MasterName string
	Addrs      []string  // of the Sentinels
	Sentinels  []*Server // in the same order
	Servers    []*Server // the first is the master at the start

	t testing.TB
}

// StartSentinel starts the five, and returns when all know each other and the
// replica is in sync. The arguments are for the two servers; with "--requirepass"
// the Sentinels know the password too.
func StartSentinel(t testing.TB, args ...string) *Sentinel {
	t.Helper()
	s := &Sentinel{MasterName: "weir", t: t}
	master := newServer(t, args...)
	launch(t, master)
	s.Servers = []*Server{master, newReplica(t, master, args...)}
	for range 3 {
		s.Sentinels = append(s.Sentinels, s.newSentinel(master))
	}
	launch(t, slices.Concat(s.Sentinels, s.Servers[1:])...)
	for _, sentinel := range s.Sentinels {
		s.Addrs = append(s.Addrs, sentinel.Addr)
		// A busy machine makes it doubt the clock, and then it rests for 30 s.
		sentinel.TryDo("SENTINEL", "DEBUG", "tilt-period", "1000")
	}
	s.WaitForMaster(nil)
	return s
}

func (s *Sentinel) newSentinel(master *Server) *Server {
	s.t.Helper()
	host, port, _ := net.SplitHostPort(master.Addr)
	config := fmt.Sprintf("sentinel monitor %[1]s %s %s 2\n"+
		"sentinel down-after-milliseconds %[1]s 1000\n"+
		"sentinel failover-timeout %[1]s 2000\n", s.MasterName, host, port)
	if master.password != "" {
		config += fmt.Sprintf("sentinel auth-pass %s %s\n", s.MasterName, master.password)
	}
	// A Sentinel keeps in this file what it has learnt, and needs it to restart.
	file := filepath.Join(s.t.TempDir(), "sentinel.conf")
	testkit.OK(s.t, os.WriteFile(file, []byte(config), 0o600))
	return newProgram(s.t, file, "--sentinel")
}

// Master is the server that is the master now.
func (s *Sentinel) Master() *Server {
	s.t.Helper()
	var master *Server
	wait(s.t, "no sentinel knows the master", func() (err error) {
		master, err = s.TryMaster()
		return err
	}, s.Sentinels...)
	return master
}

// TryMaster is Master without waiting.
func (s *Sentinel) TryMaster() (*Server, error) {
	alive := up(s.Sentinels)
	if len(alive) == 0 {
		return nil, errors.New("no Sentinel is up")
	}
	return s.masterBy(alive[0])
}

// FailOver makes the replica the master, and returns when everyone has taken note
// and the old master is in sync with the new one.
func (s *Sentinel) FailOver() {
	s.t.Helper()
	old := s.WaitForMaster(nil)                                 // so that the replica has all
	wait(s.t, "the Sentinel does not fail over", func() error { // until it finds the replica good enough
		_, err := up(s.Sentinels)[0].TryDo("SENTINEL", "FAILOVER", s.MasterName)
		return err
	}, s.Sentinels...)
	s.WaitForMaster(old)
}

// WaitForMaster waits until another server than this is the master, all Sentinels
// that are up know it, and the other server, if it is up, has all its data. After a
// write or a Restart, nil waits until everything is in order.
func (s *Sentinel) WaitForMaster(not *Server) *Server {
	s.t.Helper()
	var master *Server
	hurried := false
	wait(s.t, "there is no new master", func() (err error) {
		if master, err = s.agreed(); err != nil {
			return err
		}
		if master == not || !master.up() {
			return fmt.Errorf("%s is still the master", master.Addr)
		}
		if err = s.settled(master); err != nil && !hurried {
			s.hurry(true)
			hurried = true
		}
		return err
	}, slices.Concat(s.Sentinels, s.Servers)...)
	if hurried {
		s.hurry(false)
	}
	return master
}

// hurry makes the Sentinels talk more often, or as usual again, which is every 2 and
// 10 s. They find each other sooner then, and put a server right that takes itself
// for the master; also the new master, unless all know that it is the one. Redis
// before 7 does not know how, and takes longer.
func (s *Sentinel) hurry(on bool) {
	publish, info := "2000", "10000"
	if on {
		publish, info = "100", "100"
	}
	for _, sentinel := range up(s.Sentinels) {
		sentinel.TryDo("SENTINEL", "DEBUG", "publish-period", publish, "info-period", info)
	}
}

// agreed is the master if all Sentinels that are up say the same.
func (s *Sentinel) agreed() (*Server, error) {
	master, err := s.TryMaster()
	if err != nil {
		return nil, err
	}
	for _, sentinel := range up(s.Sentinels) {
		if m, err := s.masterBy(sentinel); err != nil || m != master {
			return nil, errors.Join(err, fmt.Errorf("%s does not take %s for the master", sentinel.Addr, master.Addr))
		}
	}
	return master, nil
}

// settled reports whether all that are up do as they should under this master.
func (s *Sentinel) settled(master *Server) error {
	servers := up(s.Servers)
	for _, server := range servers {
		if server != master {
			if err := server.inSync(); err != nil {
				return err
			}
		} else if role, err := server.Info("replication", "role"); err != nil || role != "master" {
			return errors.Join(err, fmt.Errorf("%s is to be the master, and its role is %q", server.Addr, role))
		}
	}
	for _, sentinel := range up(s.Sentinels) {
		if err := s.seesAll(sentinel, len(servers) == len(s.Servers)); err != nil {
			return err
		}
	}
	return nil
}

// seesAll is about what one Sentinel knows of the master, the other Sentinels, and
// the replica, which it must find well if it is up.
func (s *Sentinel) seesAll(sentinel *Server, replicaUp bool) error {
	if _, err := sentinel.TryDo("SENTINEL", "CKQUORUM", s.MasterName); err != nil {
		return err
	}
	reply, err := sentinel.TryDo("SENTINEL", "MASTER", s.MasterName)
	if err != nil {
		return err
	}
	master := pairs(reply)
	if reply, err = sentinel.TryDo("SENTINEL", "REPLICAS", s.MasterName); err != nil {
		return err
	}
	replica := pairs(reply) // there is one, or this is seen in the master's fields
	if master["flags"] != "master" || master["num-other-sentinels"] != "2" || master["num-slaves"] != "1" ||
		replicaUp && (replica["flags"] != "slave" || replica["master-link-status"] != "ok") {
		return fmt.Errorf("%s sees a %q and a %q, %s other Sentinels, %s replicas", sentinel.Addr,
			master["flags"], replica["flags"], master["num-other-sentinels"], master["num-slaves"])
	}
	return nil
}

// masterBy is the master by the word of one Sentinel.
func (s *Sentinel) masterBy(sentinel *Server) (*Server, error) {
	reply, err := sentinel.TryDo("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.MasterName)
	if err != nil {
		return nil, err
	}
	addr := strings.Replace(reply, "\n", ":", 1)
	for _, server := range s.Servers {
		if server.Addr == addr {
			return server, nil
		}
	}
	return nil, fmt.Errorf("%s takes %q for the master, which is none of ours", sentinel.Addr, addr)
}

// pairs reads a reply of names and values.
func pairs(reply string) map[string]string {
	fields := map[string]string{}
	words := strings.Split(reply, "\n")
	for i := 0; i+1 < len(words); i += 2 {
		fields[words[i]] = words[i+1]
	}
	return fields
}
