package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/test/chaos/plan"
)

// store is a Redis that is asked and harmed.
type store interface {
	url() string
	slotOf(key string) int

	// masters are those who serve now, in an order that lasts as long as they do.
	masters() []*testredis.Server

	// servers are all that there are.
	servers() []*testredis.Server

	// owners returns the server of each slot, or an error if it is unknown.
	owners() (owners, error)

	// probe are keys, with one for each part of the store that can be unavailable by itself.
	probe() []string

	// succeed waits until another than this master serves what it served.
	succeed(master *testredis.Server)

	// promote makes a replica of the master the master.
	promote(master *testredis.Server)

	// settle waits until all is in order.
	settle()
}

// owners are ranges of slots and who serves them. A store that is no cluster has one.
type owners map[*testredis.Server][][2]int

// all is the range of slots of a store that has none.
var all = [][2]int{{0, 1<<14 - 1}}

func (o owners) of(slot int) *testredis.Server {
	for s, ranges := range o {
		if has(ranges, slot) {
			return s
		}
	}
	return nil
}

// begins reports whether a range begins with a slot of some kind. If any slots have another
// owner now than before, the first of them begins a range of the one or the other.
func (o owners) begins(is func(slot int) bool) bool {
	for _, ranges := range o {
		if slices.ContainsFunc(ranges, func(r [2]int) bool { return is(r[0]) }) {
			return true
		}
	}
	return false
}

func has(ranges [][2]int, slot int) bool {
	for _, r := range ranges {
		if r[0] <= slot && slot <= r[1] {
			return true
		}
	}
	return false
}

// startStore starts the Redis of a topology.
func startStore(h *testkit.Scope, t plan.Topology) store {
	switch t {
	case plan.Sentinel:
		return &sentinel{testredis.StartSentinel(h, testredis.Lined)}
	case plan.Cluster:
		return newCluster(testredis.StartCluster(h, testredis.Lined))
	}
	return &single{testredis.Start(h, testredis.Lined)}
}

type single struct{ server *testredis.Server }

func (s *single) url() string                  { return "redis://" + s.server.Addr }
func (s *single) slotOf(string) int            { return 0 }
func (s *single) masters() []*testredis.Server { return []*testredis.Server{s.server} }
func (s *single) servers() []*testredis.Server { return s.masters() }
func (s *single) owners() (owners, error)      { return owners{s.server: all}, nil }
func (s *single) probe() []string              { return []string{"probe"} }
func (s *single) succeed(*testredis.Server)    {}
func (s *single) promote(*testredis.Server)    {}
func (s *single) settle()                      {}

type sentinel struct{ *testredis.Sentinel }

func (s *sentinel) url() string {
	return "redis+sentinel://" + strings.Join(s.Addrs, ",") + "/" + s.MasterName
}
func (s *sentinel) slotOf(string) int                { return 0 }
func (s *sentinel) masters() []*testredis.Server     { return []*testredis.Server{s.Master()} }
func (s *sentinel) servers() []*testredis.Server     { return s.Servers }
func (s *sentinel) probe() []string                  { return []string{"probe"} }
func (s *sentinel) succeed(master *testredis.Server) { s.WaitForMaster(master) }
func (s *sentinel) promote(*testredis.Server)        { s.FailOver() }
func (s *sentinel) settle()                          { s.WaitForMaster(nil) }

func (s *sentinel) owners() (owners, error) {
	master, err := s.TryMaster()
	return owners{master: all}, err
}

type cluster struct {
	*testredis.Cluster
	keys []string
}

func newCluster(c *testredis.Cluster) *cluster {
	s := &cluster{Cluster: c}
	for i, found := 0, map[*testredis.Server]bool{}; len(found) < 3; i++ {
		key := fmt.Sprint("probe", i)
		if master := c.MasterOf(c.SlotOf(key)); !found[master] {
			found[master] = true
			s.keys = append(s.keys, key)
		}
	}
	return s
}

func (c *cluster) url() string                      { return "redis+cluster://" + strings.Join(c.Addrs, ",") }
func (c *cluster) slotOf(key string) int            { return c.SlotOf("{" + key + "}") }
func (c *cluster) servers() []*testredis.Server     { return c.Nodes }
func (c *cluster) probe() []string                  { return c.keys }
func (c *cluster) owners() (owners, error)          { return c.Owners() }
func (c *cluster) promote(master *testredis.Server) { c.FailOver(master) }
func (c *cluster) settle()                          { c.WaitForMaster(0, nil) }

func (c *cluster) masters() (masters []*testredis.Server) {
	for _, key := range c.keys {
		masters = append(masters, c.MasterOf(c.SlotOf(key)))
	}
	return masters
}

func (c *cluster) succeed(master *testredis.Server) {
	for _, key := range c.keys {
		if slot := c.SlotOf(key); c.MasterOf(slot) == master {
			c.WaitForMaster(slot, master)
		}
	}
}

// asks writes a key as a client would, and reports whether that went well in time.
func asks(o owners, slot int, key string, within time.Duration) error {
	server := o.of(slot)
	if server == nil {
		return errors.New("no server serves it")
	}
	_, err := server.Ask(within, "SET", "chaos:{"+key+"}", "x", "PX", "60000")
	return err
}
