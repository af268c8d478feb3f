package testredis

import (
	"fmt"
	"strconv"
	"testing"
)

func TestSentinelFailOver(t *testing.T) {
	t.Parallel() // it mostly waits
	s := StartSentinel(t)
	old := s.Master()
	if old != s.Servers[0] || len(s.Addrs) != 3 || len(s.Sentinels) != 3 {
		t.Errorf("it begins with %s of %v", old.Addr, s.Addrs)
	}
	old.Do("SET", "k", "v")
	s.FailOver()
	master := s.Master()
	if master != s.Servers[1] {
		t.Errorf("the master is %s", master.Addr)
	}
	answered(t, master, "v", "GET", "k")
	rejected(t, old, "READONLY", "SET", "k", "w")
}

func TestSentinelMasterDies(t *testing.T) {
	t.Parallel() // it mostly waits
	s := StartSentinel(t, "--requirepass", "secret")
	old := s.Master()
	s.Sentinels[2].Kill() // two suffice
	old.Kill()
	master := s.WaitForMaster(old)
	answered(t, master, "OK", "SET", "k", "v")
	old.Restart()
	s.Sentinels[2].Restart()
	s.WaitForMaster(nil) // usually the same one; a machine that stalls makes them choose again
	answered(t, old, "v", "GET", "k")
}

func TestClusterSlots(t *testing.T) {
	t.Parallel() // it mostly waits
	c := StartCluster(t)
	for _, key := range []string{"", "foo", "{user1000}.following", "foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}", "a}b{c", "\xff\x00"} {
		if got, want := strconv.Itoa(c.SlotOf(key)), c.Nodes[0].Do("CLUSTER", "KEYSLOT", key); got != want {
			t.Errorf("SlotOf(%q) = %s, want %s", key, got, want)
		}
	}
	for slot, want := range map[int]*Server{0: c.Nodes[0], slots / 2: c.Nodes[1], slots - 1: c.Nodes[2]} {
		if got := c.MasterOf(slot); got != want {
			t.Errorf("MasterOf(%d) = %s, want %s", slot, got.Addr, want.Addr)
		}
	}

	slot := c.SlotOf("{k}")
	from := c.MasterOf(slot)
	to := c.Nodes[0]
	if to == from {
		to = c.Nodes[1]
	}
	for i := range 250 { // more than one round
		from.Do("SET", fmt.Sprintf("{k}%d", i), "v")
	}
	from.Do("SET", "{k}any\nbytes\x00", "v")
	c.OpenSlot(slot, to)
	answered(t, from, "v", "GET", "{k}1")
	rejected(t, from, "ASK", "GET", "{k}new")
	c.MoveSlot(slot, to)
	if got := c.MasterOf(slot); got != to {
		t.Errorf("the slot is at %s", got.Addr)
	}
	rejected(t, from, "MOVED", "GET", "{k}1")
	answered(t, to, "v", "GET", "{k}1")
	answered(t, to, "251", "CLUSTER", "COUNTKEYSINSLOT", strconv.Itoa(slot))
	answered(t, from, "0", "CLUSTER", "COUNTKEYSINSLOT", strconv.Itoa(slot))
}

func TestClusterFailOver(t *testing.T) {
	t.Parallel() // it mostly waits
	c := StartCluster(t)
	slot := c.SlotOf("k")
	old := c.MasterOf(slot)
	old.Do("SET", "k", "v")
	c.FailOver(old)
	master := c.MasterOf(slot)
	if master == old {
		t.Error("the master is the same")
	}
	answered(t, master, "v", "GET", "k")
	rejected(t, old, "MOVED", "SET", "k", "w")

	master.Kill()
	if got := c.WaitForMaster(slot, master); got != old {
		t.Errorf("the slot went to %s", got.Addr)
	}
	answered(t, old, "OK", "SET", "k", "w")
	master.Restart()
	answered(t, c.WaitForMaster(slot, nil), "w", "GET", "k")
}

func TestClusterWithPassword(t *testing.T) {
	t.Parallel() // it mostly waits
	c := StartCluster(t, "--requirepass", "secret")
	slot := c.SlotOf("k")
	from := c.MasterOf(slot)
	from.Do("SET", "k", "v")
	to := c.MasterOf((slot + slots/2) % slots)
	c.MoveSlot(slot, to)
	answered(t, to, "v", "GET", "k")
	to.Pause()
	answered(t, c.WaitForMaster(slot, to), "v", "GET", "k")
}
