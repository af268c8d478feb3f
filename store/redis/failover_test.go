package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

func sentinelURL(s *testredis.Sentinel) string {
	return "redis+sentinel://" + strings.Join(s.Addrs, ",") + "/" + s.MasterName
}

// Across a failover, what the old master allowed and had not yet told its replica
// is forgotten. At most that is all of it.
const failoverBound = 2 * tightN

func TestSentinelFailover(t *testing.T) {
	sentinel := testredis.StartSentinel(t)
	l := startLoad(t, open(t, sentinelURL(sentinel)))
	sentinel.FailOver()
	l.check("Sentinel failover by hand", failoverBound, l.servesAgain("the failover"))
}

func TestSentinelMasterDies(t *testing.T) {
	testSentinelOutage(t, "a Sentinel master that dies", (*testredis.Server).Kill)
}

// A master that stops silently leaves its clients with open connections.
func TestSentinelMasterHangs(t *testing.T) {
	testSentinelOutage(t, "a Sentinel master that hangs", (*testredis.Server).Pause)
}

// The outage is noticed under load, and by a store without any, and so is its end.
func testSentinelOutage(t *testing.T, what string, fail func(*testredis.Server)) {
	sentinel := testredis.StartSentinel(t)
	failOverAfter := func(milliseconds string) {
		for _, s := range sentinel.Sentinels {
			s.Do("SENTINEL", "SET", sentinel.MasterName, "down-after-milliseconds", milliseconds)
		}
	}
	config := testkit.Must(ParseURL(sentinelURL(sentinel)))(t)
	config.Options.Clock = new(fake).Now // so that it looks only when the test says so
	idle := testkit.Must(config.Open())(t)
	t.Cleanup(idle.Close)
	l := startLoad(t, open(t, sentinelURL(sentinel)))
	failOverAfter("600000") // not before all have noticed
	fail(sentinel.Master())
	l.trips()
	idle.look()
	eventually(t, "the outage, by a look", func() bool { return !idle.Available() })
	failOverAfter("1000")
	l.check(what, failoverBound, l.servesAgain("the failover"))
	eventually(t, "its end, without a check", idle.Available)
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

// A moving slot causes no errors: Redis redirects calls to the right node, and no usage
// is lost.
func TestClusterSlotMoves(t *testing.T) {
	cluster := testredis.StartSteadyCluster(t)
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

// While a slot moves, a call for keys on both nodes gets TRYAGAIN. The store retries,
// and there is no error.
func TestClusterSlotIsHalfMoved(t *testing.T) {
	cluster := testredis.StartSteadyCluster(t)
	config, err := ParseURL(clusterURL(cluster))
	if err != nil {
		t.Fatal(err)
	}
	config.Options.Timeout = 20 * time.Second // moving a slot may take its time
	s, err := config.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	ops := []weir.Op{
		{Key: "k", Limit: weir.MustCompile("fixed_window 5/1825d"), Cost: 1},
		{Key: "k", Limit: weir.MustCompile("fixed_window 9/3650d"), Cost: 1},
	}
	if _, err := s.Take(t.Context(), nil, ops...); err != nil {
		t.Fatal(err)
	}
	slot := cluster.SlotOf(s.keyOf(&ops[0]))
	from, to := cluster.MasterOf(slot), cluster.MasterOf((slot+6000)%16384)
	cluster.OpenSlot(slot, to)
	host, port, _ := strings.Cut(to.Addr, ":")
	from.Do("MIGRATE", host, port, s.keyOf(&ops[0]), "0", "5000")

	failed := make(chan error)
	var decisions []weir.Decision
	go func() {
		var err error
		decisions, err = s.Take(t.Context(), nil, ops...)
		failed <- err
	}()
	eventually(t, "a call that is told to try again", func() bool {
		return strings.Contains(from.Do("INFO", "errorstats"), "TRYAGAIN")
	})
	cluster.MoveSlot(slot, to)
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if decisions[0].Remaining != 3 || decisions[1].Remaining != 7 {
		t.Errorf("%+v", decisions)
	}
}
