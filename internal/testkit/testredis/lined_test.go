package testredis

import (
	"errors"
	"testing"
)

// soon is more than a server that is well needs, also on a machine that is not.
const soon = patience

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

// To Sentinels a master whose line is cut has died. On a machine that stalls for a second
// they may replace the new master, too, so the test does not say which one is left.
func TestSentinelLined(t *testing.T) {
	s := StartSentinel(t, Lined)
	old := s.Master()
	old.Line.Cut()
	if err := await(func() error {
		if master, err := s.agreed(); err != nil || master == old {
			return errors.Join(err, errors.New("the unreachable one is still the master"))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	old.Line.Heal()
	if _, err := s.WaitForMaster(nil).Ask(soon, "SET", "k", "v"); err != nil {
		t.Error(err)
	}
	s.WaitForMaster(nil)
	answered(t, old, "v", "GET", "k")
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
