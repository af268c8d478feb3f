package goredis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/internal/traffic/scenario"
	"github.com/weirhq/weir/store/redis"
	"github.com/weirhq/weir/store/storetest"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

const patience = 30 * time.Second // a busy machine is slow

func storeOn(t *testing.T, client goredis.UniversalClient, o redis.Options) *redis.Store {
	t.Helper()
	t.Cleanup(func() { client.Close() })
	if o.Timeout == 0 {
		o.Timeout = patience
	}
	s, err := New(client, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// subject is a store with a prefix of its own, and a clock that the test sets.
func subject(t *testing.T, client goredis.UniversalClient, prefix string) storetest.Subject {
	t.Helper()
	var now atomic.Int64
	s, err := New(client, redis.Options{
		Prefix: prefix, Timeout: patience, Clock: func() weir.Micros { return weir.Micros(now.Load()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return storetest.Subject{Store: s, Set: func(at weir.Micros) { now.Store(int64(at)) }}
}

func TestSuite(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{Addr: testredis.Start(t).Addr, ReadTimeout: patience})
	t.Cleanup(func() { client.Close() })
	opened := 0
	open := func(t *testing.T) storetest.Subject {
		opened++
		return subject(t, client, fmt.Sprintf("weir%d:", opened))
	}
	storetest.Run(t, open)
	storetest.RunHolds(t, open)
}

// With a hash tag for a prefix all keys of a cluster are on one slot, and the whole suite
// passes; requests for several slots are answered as they are elsewhere.
func TestCluster(t *testing.T) {
	client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: testredis.StartSteadyCluster(t).Addrs, ReadTimeout: patience})
	t.Cleanup(func() { client.Close() })
	opened := 0
	t.Run("OneSlot", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Subject {
			opened++
			return subject(t, client, fmt.Sprintf("{weir%d}:", opened))
		})
	})
	cases, err := scenario.Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range cases {
		t.Run(path.Base(script.Name), func(t *testing.T) {
			opened++
			if err := script.Run(t.Context(), scenario.Subject(subject(t, client, fmt.Sprintf("weir%d:", opened)))); err != nil {
				t.Error(err)
			}
		})
	}
}

// A caller has an answer within the store's timeout, however long the client would wait.
// The store tells others at once, and serves again when Redis does.
func TestTimeout(t *testing.T) {
	for _, heeds := range []bool{false, true} {
		t.Run(fmt.Sprintf("ContextTimeoutEnabled=%t", heeds), func(t *testing.T) {
			server := testredis.Start(t)
			client := goredis.NewClient(&goredis.Options{Addr: server.Addr, ReadTimeout: time.Hour, ContextTimeoutEnabled: heeds})
			s := storeOn(t, client, redis.Options{Timeout: 50 * time.Millisecond})
			op := weir.Op{Key: "k", Limit: weir.MustCompile("1000/1m"), Cost: 1}
			take := func() error {
				_, err := s.Take(t.Context(), nil, op)
				return err
			}
			eventually(t, "an answer", func() bool { return take() == nil })
			server.Pause()
			defer server.Resume()
			eventually(t, "the breaker", func() bool { return errors.Is(take(), weir.ErrUnavailable) })
			if s.Available() {
				t.Error("it is available although it does not answer")
			}
			if err := s.Ping(t.Context()); err == nil {
				t.Error("a paused Redis answers a ping")
			}
			server.Resume()
			eventually(t, "an answer again", func() bool { return take() == nil && s.Available() })
		})
	}
}

// A master of a cluster that hangs is noticed without checks, and does not take the answers of the others with it.
func TestClusterMasterHangs(t *testing.T) {
	for _, heeds := range []bool{false, true} {
		t.Run(fmt.Sprintf("ContextTimeoutEnabled=%t", heeds), func(t *testing.T) {
			cluster := testredis.StartSteadyCluster(t, "--cluster-require-full-coverage", "no")
			client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: cluster.Addrs, ReadTimeout: time.Minute, ContextTimeoutEnabled: heeds})
			t.Cleanup(func() { client.Close() })
			a := adapter{client: client, cluster: true, heedsContext: heeds}
			keys := strings.Split("abcdefghijklmnop", "")
			for i, err := range a.Exists(t.Context(), keys) {
				if err != nil {
					t.Errorf("%s: %v", keys[i], err)
				}
			}
			node := cluster.MasterOf(cluster.SlotOf("a"))
			node.Pause()
			defer node.Resume()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			for i, err := range a.Exists(ctx, keys) {
				if hangs := cluster.MasterOf(cluster.SlotOf(keys[i])) == node; (err != nil) != hangs {
					t.Errorf("%s, whose master hangs: %v: %v", keys[i], hangs, err)
				}
			}
			s, err := New(client, redis.Options{Timeout: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			eventually(t, "the outage", func() bool { return !s.Available() })
			node.Resume()
			eventually(t, "its end", s.Available)
		})
	}
}

// What Redis replies with is an answer, and no reason to stop asking.
func TestReplies(t *testing.T) {
	server := testredis.Start(t)
	s := storeOn(t, goredis.NewClient(&goredis.Options{Addr: server.Addr, ReadTimeout: patience}), redis.Options{})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	server.FillMemory()
	for range 5 {
		if _, err := s.Take(t.Context(), nil, op); err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Fatalf("Take = %v", err)
		}
	}
	server.FreeMemory()
	server.FlushScripts()
	if d, err := s.Take(t.Context(), nil, op); err != nil || d[0].Remaining != 4 {
		t.Errorf("Take = %+v, %v", d, err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// losing is a connection that may lose an answer about the key k: the server has done what it was asked.
type losing struct {
	net.Conn
	lose, asked *atomic.Bool
}

func (c losing) Write(b []byte) (int, error) {
	c.asked.Store(bytes.Contains(b, []byte("{k}")))
	return c.Conn.Write(b)
}

var errLost = errors.New("the connection was lost")

func (c losing) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.asked.Load() && c.lose.CompareAndSwap(true, false) {
		c.Close()
		return 0, errLost
	}
	return n, err
}

// A request that may have been charged is not sent again, although the client would.
func TestNothingIsSentTwice(t *testing.T) {
	var lose atomic.Bool
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, addr)
		return losing{c, &lose, new(atomic.Bool)}, err
	}
	single := goredis.NewClient(&goredis.Options{Addr: testredis.Start(t).Addr, Dialer: dial, MaxRetries: 5, ReadTimeout: patience})
	cluster := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: testredis.StartSteadyCluster(t).Addrs, Dialer: dial, MaxRetries: 5, ReadTimeout: patience})
	for _, client := range []goredis.UniversalClient{single, cluster} {
		s := storeOn(t, client, redis.Options{})
		op := weir.Op{Key: "k", Limit: weir.MustCompile("1000/3650d"), Cost: 1}
		if _, err := s.Take(t.Context(), nil, op); err != nil {
			t.Fatal(err)
		}
		// What loads the functions names the key, too, before it does so.
		eventually(t, "the functions", func() bool {
			return len(testkit.Must(client.FunctionList(t.Context(), goredis.FunctionListQuery{}).Result())(t)) > 0
		})
		lose.Store(true)
		if _, err := s.Take(t.Context(), nil, op); err == nil {
			t.Errorf("%T: Take = %v", client, err)
		}
		if d, err := s.Peek(t.Context(), nil, op); err != nil || d[0].Remaining != 998 {
			t.Errorf("%T: %+v, %v", client, d, err)
		}
	}
}

// Many callers at once share calls.
func TestCallsAreShared(t *testing.T) {
	server := testredis.Start(t)
	s := storeOn(t, goredis.NewClient(&goredis.Options{Addr: server.Addr, ReadTimeout: patience}), redis.Options{})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("1000/3650d"), Cost: 1}
	var wg sync.WaitGroup
	var allowed atomic.Int64
	for range 64 {
		wg.Go(func() {
			for range 20 {
				d, err := s.Take(t.Context(), nil, op)
				if err != nil {
					t.Error(err)
					return
				}
				if d[0].Allowed {
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := allowed.Load(); n != 1000 {
		t.Errorf("%d allowed of 1000", n)
	}
}

func TestWhatNewDenies(t *testing.T) {
	if _, err := New(nil, redis.Options{}); err == nil {
		t.Error("nil is a client")
	}
	ring := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	if _, err := New(ring, redis.Options{}); err == nil || !strings.Contains(err.Error(), "ClusterClient") {
		t.Errorf("New of a ring = %v", err)
	}
	client := goredis.NewClient(&goredis.Options{})
	defer client.Close()
	if _, err := New(client, redis.Options{Timeout: -1}); err == nil {
		t.Error("a timeout below 0 is fine")
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// A store on such a client tells other instances which formats of state it can read, and that it has left.
func TestAnnounces(t *testing.T) {
	server := testredis.Start(t)
	s := storeOn(t, goredis.NewClient(&goredis.Options{Addr: server.Addr, ReadTimeout: patience}), redis.Options{})
	eventually(t, "the entry of the store", func() bool { return server.Do("HLEN", "weir:%formats") == "1" })
	s.Close()
	if server.Do("EXISTS", "weir:%formats") != "0" {
		t.Error("the entry is there although the store is closed")
	}
}
