package redis

import (
	"context"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// A node of a cluster is paused, and somebody with more patience than others is connecting to
// it. The others get their answer within their timeout nevertheless, and a repeat completes
// what they began.
func TestClusterNodePaused(t *testing.T) {
	cluster := testredis.StartSteadyCluster(t, "--cluster-require-full-coverage", "no")
	config := testkit.Must(ParseURL(clusterURL(cluster) + "?dial_timeout=1m"))(t)
	config.Client.ConnWriteTimeout = time.Minute // or longer than this test
	s := testkit.Must(config.Open())(t)
	t.Cleanup(s.Close)
	other := open(t, clusterURL(cluster)+"?timeout=30s")
	limit := weir.MustCompile("fixed_window 10/1d")
	op := weir.Op{Key: "k", Limit: limit, Cost: 5}
	node := cluster.MasterOf(int(slotOf(s.keyOf(&op))))
	id := weir.NewHoldID() // whose directory is on the node, too
	for cluster.MasterOf(int(slotOf(s.directoryOf(id)))) != node {
		id = weir.NewHoldID()
	}
	testkit.Must(other.Reserve(t.Context(), nil, weir.Reservation{ID: id}, op))(t)
	used := func(string, int64) int64 { return 2 }

	ctx, cancel := context.WithCancel(t.Context())
	connecting := make(chan struct{})
	node.Do("CLIENT", "KILL", "TYPE", "normal")
	node.Pause()
	go func() {
		defer close(connecting)
		for ctx.Err() == nil {
			s.link.client.Exists(ctx, []string{s.keyOf(&op)})
		}
	}()
	for range 4 {
		if settled, err := s.Settle(t.Context(), weir.Settlement{ID: id, Used: used}); err == nil {
			t.Errorf("settled on a paused node: %+v", settled)
		}
		if d, err := s.Take(t.Context(), nil, op); err == nil {
			t.Errorf("taken from a paused node: %+v", d)
		}
	}
	node.Resume()
	cancel()
	<-connecting
	settled, err := other.Settle(t.Context(), weir.Settlement{ID: id, Used: used})
	for err != nil { // until it has noticed that its connections have ended
		settled, err = other.Settle(t.Context(), weir.Settlement{ID: id, Used: used})
	}
	if settled.State != weir.HoldSettled || settled.Parts[0].Used != 2 {
		t.Errorf("settled at last: %+v", settled)
	}
}
