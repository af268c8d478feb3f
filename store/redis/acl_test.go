package redis

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// The rights that docs/guides/redis.md gives for the store alone are enough, and they end at the prefix.
func TestRights(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte(rights(t)+"\nuser default on nopass ~* &* +@all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testredis.Start(t, "--aclfile", file)
	everything(t, open(t, "redis://weir:change-me@"+server.Addr+"?timeout=10s"))
	everything(t, withManySoon(t, open(t, "redis://weir:change-me@"+server.Addr+"?timeout=10s&prefix=weir:many:")))
	elsewhere := open(t, "redis://weir:change-me@"+server.Addr+"?prefix=shop:&timeout=10s")
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	if _, err := elsewhere.Take(t.Context(), nil, op); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("Take under another prefix = %v", err)
	}
}

func TestRightsInACluster(t *testing.T) {
	cluster := testredis.StartSteadyCluster(t)
	user := strings.Fields(rights(t) + " +cluster|slots +cluster|shards +asking")
	for _, node := range cluster.Nodes {
		node.Do(append([]string{"ACL", "SETUSER"}, user[1:]...)...)
	}
	everything(t, open(t, strings.Replace(clusterURL(cluster), "://", "://weir:change-me@", 1)+"?timeout=10s"))
}

// rights are those in the docs.
func rights(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/weir.acl")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// holdEverything does all that a store can do with holds.
func holdEverything(t *testing.T, s *Store, op weir.Op) {
	t.Helper()
	l := op.Limit.Limit()
	for i, used := range []int64{1, 3, 1, 3} {
		l.Release = i > 1 && l.Algorithm != weir.InFlight
		op.Limit = testkit.Must(l.Compile())(t)
		id := weir.HoldID{byte(i), byte(l.Algorithm)}
		fill(t, s, op, 100*i+int(l.Algorithm), 1, time.Hour) // so that the next one can be one of many
		testkit.Must(s.Reserve(t.Context(), nil, weir.Reservation{ID: id}, op))(t)
		testkit.Must(s.Settle(t.Context(), weir.Settlement{ID: id, TTL: time.Hour}))(t)
		testkit.Must(s.Peek(t.Context(), nil, op))(t)
		if done := testkit.Must(s.Settle(t.Context(), weir.Settlement{ID: id, Used: func(string, int64) int64 { return used }}))(t); done.State != weir.HoldSettled {
			t.Errorf("%v: %+v", op.Limit.Limit(), done)
		}
		testkit.OK(t, s.Reset(t.Context(), op))
	}
}

// everything does all that a store can do, under every algorithm.
func everything(t *testing.T, s *Store) {
	t.Helper()
	for i, algorithm := range append(weir.Algorithms(), weir.InFlight) {
		op := weir.Op{Key: fmt.Sprint("k", i), Limit: weir.MustCompile(algorithm.String() + " 5/1m"), Cost: 2}
		d, err := s.Take(t.Context(), nil, op)
		if err != nil {
			t.Fatal(err)
		}
		op.Receipt = d[0].Receipt
		if _, err := s.Take(t.Context(), nil, op); err != nil {
			t.Error(err)
		}
		if _, err := s.Peek(t.Context(), nil, op); err != nil {
			t.Error(err)
		}
		if renewed := (weir.Op{Key: op.Key, Limit: op.Limit, Cost: 1, Always: true, Receipt: op.Receipt}); algorithm == weir.InFlight {
			testkit.Must(s.Take(t.Context(), nil, renewed))(t)
		}
		if err := s.Refund(t.Context(), op); err != nil {
			t.Error(err)
		}
		if err := s.Reset(t.Context(), op); err != nil {
			t.Error(err)
		}
		holdEverything(t, s, op)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	eventually(t, "an announcement of the store", func() bool { return s.formats.agreed.Load() != nil })
}
