package testredis

import (
	"fmt"
	"net"
	"slices"
	"strconv"
)

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
