package redis

import (
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testredis"
)

func sentinelURL(s *testredis.Sentinel) string {
	return "redis+sentinel://" + strings.Join(s.Addrs, ",") + "/" + s.MasterName
}

// Across a failover, what the old master admitted and had not yet told its replica
// is forgotten. At most that is all of it.
const failoverBound = 2 * tightN

func TestSentinelFailover(t *testing.T) {
	sentinel := testredis.StartSentinel(t)
	l := startLoad(t, open(t, sentinelURL(sentinel)))
	sentinel.FailOver()
	l.check("Sentinel failover by hand", failoverBound, l.servesAgain("the failover"))
}

func TestSentinelMasterDies(t *testing.T) {
	sentinel := testredis.StartSentinel(t)
	l := startLoad(t, open(t, sentinelURL(sentinel)))
	master := sentinel.Master()
	master.Kill()
	l.trips()
	l.check("a Sentinel master that dies", failoverBound, l.servesAgain("the failover"))
}

// A master that stops without a word leaves its clients with connections that
// nobody closes.
func TestSentinelMasterHangs(t *testing.T) {
	sentinel := testredis.StartSentinel(t)
	l := startLoad(t, open(t, sentinelURL(sentinel)))
	sentinel.Master().Pause()
	l.trips()
	l.check("a Sentinel master that hangs", failoverBound, l.servesAgain("the failover"))
}

func clusterURL(c *testredis.Cluster) string {
	return "redis+cluster://" + strings.Join(c.Addrs, ",")
}

// tightSlot is the slot of the key that the load's tight limit is about.
func tightSlot(l *load) int {
	return int(slotOf(l.store.keyOf(&weir.Op{Key: "everybody", Limit: l.tight})))
}

func TestClusterMasterDies(t *testing.T) {
	cluster := testredis.StartCluster(t)
	l := startLoad(t, open(t, clusterURL(cluster)))
	master := cluster.MasterOf(tightSlot(l))
	master.Kill()
	l.trips()
	cluster.WaitForMaster(tightSlot(l), master)
	l.check("a cluster's master that dies", failoverBound, l.servesAgain("the failover"))
}

func TestClusterMasterHangs(t *testing.T) {
	cluster := testredis.StartCluster(t)
	l := startLoad(t, open(t, clusterURL(cluster)))
	master := cluster.MasterOf(tightSlot(l))
	master.Pause()
	l.trips()
	cluster.WaitForMaster(tightSlot(l), master)
	l.check("a cluster's master that hangs", failoverBound, l.servesAgain("the failover"))
}

// A slot that moves is no trouble: whoever asks at the wrong door is shown the right
// one, and nothing is forgotten.
func TestClusterSlotMoves(t *testing.T) {
	cluster := testredis.StartCluster(t)
	l := startLoad(t, open(t, clusterURL(cluster)))
	slot := tightSlot(l)
	from := cluster.MasterOf(slot)
	for _, other := range []int{0, 6000, 12000} {
		if to := cluster.MasterOf(other); to != from {
			cluster.OpenSlot(slot, to) // from now on, some are asked to ask elsewhere
			l.servesAgain("the door was opened")
			cluster.MoveSlot(slot, to)
			break
		}
	}
	if cluster.MasterOf(slot) == from {
		t.Fatal("the slot has not moved")
	}
	l.check("a slot that moves", tightN, l.servesAgain("the move"))
}
