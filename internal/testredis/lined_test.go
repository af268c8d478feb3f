package testredis

import (
	"errors"
	"testing"
	"time"
)

// soon is more than a server that is well needs.
const soon = 5 * time.Second

func TestLined(t *testing.T) {
	s := Start(t, Lined)
	if _, err := s.Ask(soon, "SET", "k", "v"); err != nil {
		t.Fatal(err)
	}
	s.Line.Cut()
	if reply, err := s.Ask(soon, "GET", "k"); err == nil {
		t.Errorf("through a line that is cut: %q", reply)
	}
	answered(t, s, "v", "GET", "k") // the server itself is well
	s.Line.Heal()
	if reply, err := s.Ask(soon, "GET", "k"); err != nil || reply != "v" {
		t.Errorf("through a line that was mended: %q, %v", reply, err)
	}
	s.Restart()
	if reply, err := s.Ask(soon, "GET", "k"); err != nil || reply != "" {
		t.Errorf("after a restart: %q, %v", reply, err)
	}
}

// To Sentinels a master whose line is cut has died.
func TestSentinelLined(t *testing.T) {
	s := StartSentinel(t, Lined)
	old := s.Master()
	old.Line.Cut()
	var master *Server
	if err := await(func() (err error) {
		if master, err = s.TryMaster(); err == nil && master == old {
			err = errors.New("the master is still the unreachable one")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	old.Line.Heal()
	if got := s.WaitForMaster(nil); got != master {
		t.Errorf("%s is the master, and not %s", got.Addr, master.Addr)
	}
	if _, err := master.Ask(soon, "SET", "k", "v"); err != nil {
		t.Error(err)
	}
}

func TestClusterLined(t *testing.T) {
	c := StartCluster(t, Lined)
	slot := c.SlotOf("k")
	old := c.MasterOf(slot)
	c.FailOver(old)
	master := c.MasterOf(slot)
	if master == old {
		t.Fatal("there is no new master")
	}
	if _, err := master.Ask(soon, "SET", "k", "v"); err != nil {
		t.Error(err)
	}
	owners, err := c.Owners()
	if err != nil || len(owners) != masters || owners[master] == nil || owners[old] != nil {
		t.Errorf("the owners are %v, %v", owners, err)
	}
}
