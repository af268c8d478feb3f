package testredis

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Cluster is three masters with a replica each. A master that does not answer for
// a second is replaced by its replica about a second later.
type Cluster struct {
	Nodes []*Server // at the start three masters, then the replica of each
	Addrs []string  // in the same order

	t testing.TB
}

const masters = 3

// forgotten is when a node has given up to meet another that did not answer, for example because
// the machine stood still.
const forgotten = 3 * time.Second

// StartCluster starts the six, and returns when all know each other, every slot is
// served and every replica is in sync. That takes two seconds at least, for which
// Redis lets no new master serve. The arguments are for all nodes.
func StartCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	args = slices.Concat(args, []string{"--cluster-enabled", "yes", "--cluster-node-timeout", "1000"})
	for range 2 * masters {
		c.Nodes = append(c.Nodes, newServer(t, args...))
	}
	launch(t, c.Nodes...)
	for i, s := range c.Nodes {
		c.Addrs = append(c.Addrs, s.Addr)
		s.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)) // or they would have to agree on it
		if i < masters {
			first, last := i*slots/masters, (i+1)*slots/masters-1
			s.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
		}
	}
	c.meet()
	met := time.Now()
	var v view
	c.await("the nodes do not find each other", func() (err error) {
		for _, s := range c.Nodes {
			if v, err = c.viewOf(s); err != nil {
				break
			}
		}
		if err != nil && time.Since(met) > forgotten {
			c.meet()
			met = time.Now()
		}
		return err
	})
	for i, s := range c.Nodes[masters:] {
		s.Do("CLUSTER", "REPLICATE", v[c.Nodes[i]].id)
	}
	c.await("the cluster does not become ready", func() error {
		return c.settled(func(v view) error {
			for i, s := range c.Nodes[masters:] {
				if v[s].master != v[c.Nodes[i]].id {
					return fmt.Errorf("%s is no replica of %s", s.Addr, c.Nodes[i].Addr)
				}
			}
			return nil
		})
	})
	return c
}

// StartSteadyCluster is StartCluster for tests in which no master is replaced: on a machine that
// stands still for a second, all nodes seem to have died.
func StartSteadyCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c := StartCluster(t, args...)
	c.SetNodeTimeout(time.Minute)
	return c
}

// SetNodeTimeout changes for how long a master need not answer until it is replaced, as far as
// nodes are up.
func (c *Cluster) SetNodeTimeout(d time.Duration) {
	c.t.Helper()
	for _, s := range up(c.Nodes) {
		s.Do("CONFIG", "SET", "cluster-node-timeout", strconv.FormatInt(d.Milliseconds(), 10))
	}
}

// meet introduces everyone to everyone; rumour would do it too, and take longer.
func (c *Cluster) meet() {
	c.t.Helper()
	for i, s := range c.Nodes {
		for _, other := range c.Nodes[i+1:] {
			s.Do("CLUSTER", "MEET", "127.0.0.1", portOf(other.Addr), busOf(other))
		}
	}
}

// MasterOf is the master that serves the slot, by the word of any node. It may be
// dead: WaitForMaster waits for its successor.
func (c *Cluster) MasterOf(slot int) *Server {
	c.t.Helper()
	master := c.view().owner(slot)
	if master == nil {
		c.t.Fatalf("no node owns slot %d", slot)
	}
	return master
}

// FailOver makes the master's replica the master, and returns when everyone has
// taken note and the old master is in sync with the new one.
func (c *Cluster) FailOver(master *Server) {
	c.t.Helper()
	var replica *Server
	c.await("the replica does not fail over", func() error {
		if replica = c.view().replicaOf(master); replica == nil {
			return fmt.Errorf("%s has no replica", master.Addr)
		}
		_, err := replica.TryDo("CLUSTER", "FAILOVER")
		return err
	})
	c.await("the cluster does not fail over", func() error {
		return c.settled(func(v view) error {
			if v[master].master != v[replica].id {
				return fmt.Errorf("%s is no replica of %s", master.Addr, replica.Addr)
			}
			return nil
		})
	})
}

// WaitForMaster waits until another than this serves the slot, all nodes that are up
// know it and find the cluster in order, and the replicas that are up have all data.
// After a write or a Restart, nil waits until everything is in order.
func (c *Cluster) WaitForMaster(slot int, not *Server) *Server {
	c.t.Helper()
	var master *Server
	c.await(fmt.Sprintf("slot %d gets no new master", slot), func() error {
		master = nil
		return c.settled(func(v view) error {
			owner := v.owner(slot)
			switch {
			case owner == nil || !owner.up() || owner == not:
				return fmt.Errorf("slot %d is not served by another", slot)
			case master != nil && master != owner:
				return fmt.Errorf("slot %d is served by %s and by %s", slot, master.Addr, owner.Addr)
			}
			master = owner
			return nil
		})
	})
	return master
}

// MoveSlot gives a slot with its keys to another master, and returns when every
// node knows.
func (c *Cluster) MoveSlot(slot int, to *Server) {
	c.t.Helper()
	from := c.MasterOf(slot)
	if from == to {
		return
	}
	c.OpenSlot(slot, to)
	c.moveKeys(slot, from, to)
	// The new owner first; otherwise the slot would have no owner for a while.
	v, number := c.view(), strconv.Itoa(slot)
	to.Do("CLUSTER", "SETSLOT", number, "NODE", v[to].id)
	for s, n := range v {
		if s != to && n.is("master") && s.up() {
			s.Do("CLUSTER", "SETSLOT", number, "NODE", v[to].id)
		}
	}
	c.await(fmt.Sprintf("slot %d does not move", slot), func() error {
		return c.settled(func(v view) error {
			if v.owner(slot) != to {
				return fmt.Errorf("slot %d is not yet at %s", slot, to.Addr)
			}
			return nil
		})
	})
}

// OpenSlot begins what MoveSlot completes: the old master keeps the slot and its
// keys, and answers ASK for a key that it does not have.
func (c *Cluster) OpenSlot(slot int, to *Server) {
	c.t.Helper()
	from, v, number := c.MasterOf(slot), c.view(), strconv.Itoa(slot)
	to.Do("CLUSTER", "SETSLOT", number, "IMPORTING", v[from].id)
	from.Do("CLUSTER", "SETSLOT", number, "MIGRATING", v[to].id)
}

func (c *Cluster) moveKeys(slot int, from, to *Server) {
	c.t.Helper()
	host, port, _ := net.SplitHostPort(to.Addr)
	migrate := []string{"MIGRATE", host, port, "", "0", strconv.FormatInt(replyTimeout.Milliseconds(), 10)}
	if to.password != "" {
		migrate = append(migrate, "AUTH", to.password)
	}
	for {
		keys := from.List("CLUSTER", "GETKEYSINSLOT", strconv.Itoa(slot), "100")
		if len(keys) == 0 {
			return
		}
		from.Do(slices.Concat(migrate, []string{"KEYS"}, keys)...)
	}
}

// settled asks all nodes that are up whether the cluster is in order; what else each
// must know is for the caller to say.
func (c *Cluster) settled(known func(view) error) error {
	alive := up(c.Nodes)
	for _, s := range alive {
		v, err := c.viewOf(s)
		if err != nil {
			return err
		}
		if err := known(v); err != nil {
			return fmt.Errorf("%s: %w", s.Addr, err)
		}
		for _, other := range alive {
			if v[other].is("fail") || v[other].is("fail?") {
				return fmt.Errorf("%s takes %s for dead", s.Addr, other.Addr)
			}
		}
		text, err := s.TryDo("CLUSTER", "INFO")
		if err != nil {
			return err
		}
		if state := lineOf(text, "cluster_state"); state != "ok" {
			return fmt.Errorf("%s: the state of the cluster is %q", s.Addr, state)
		}
		if v[s].is("slave") {
			if err := s.inSync(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) await(what string, ready func() error) {
	c.t.Helper()
	wait(c.t, what, ready, c.Nodes...)
}

// slots is how many parts a cluster's keys are divided into.
const slots = 16384

// SlotOf is the slot of a key: by what is between the first braces if there is
// something, or else by all of it.
func (*Cluster) SlotOf(key string) int {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			key = tag
		}
	}
	return int(crc16(key)) % slots
}

// crc16 is the one called XMODEM.
func crc16(text string) (crc uint16) {
	for i := range len(text) {
		crc ^= uint16(text[i]) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
	}
	return crc
}
