package redis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

func eventually(t *testing.T, what string, good func() bool) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for !good() {
		select {
		case <-late:
			t.Fatalf("there is never %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// calls is one of each, by name.
func calls(ctx context.Context, s *Store) map[string]func() error {
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 1}
	key := counter.Key{Name: "k"}
	only := func(_ any, err error) error { return err }
	return map[string]func() error{
		"Add": func() error { return only(s.Add(ctx, counter.Delta{Key: key, By: counter.One})) },
		"Get": func() error { return only(s.Get(ctx, key)) },
		"Set": func() error { return only(s.Set(ctx, counter.Setting{Key: key, To: counter.One})) },
		"Distinct": func() error {
			return only(s.Add(ctx, counter.Delta{Key: counter.Key{Name: "k", Distinct: true}, Members: []string{"m"}}))
		},
		"Observe": func() error {
			return s.Observe(ctx, counter.Sample{Key: key, Values: []counter.Amount{1}})
		},
		"Distributions": func() error { return only(s.Distributions(ctx, 1, key)) },
		"Reset":         func() error { return only(s.Reset(ctx, key)) },
		"History":       func() error { return only(s.History(ctx, 1, key)) },
		"NextID":        func() error { return only(s.NextID(ctx, "s")) },
		"Score":         func() error { return only(s.Score(ctx, counter.Board{Name: "b"}, counter.Mark{Member: "m", By: 1})) },
		"Sliding": func() error {
			return only(s.Score(ctx, counter.Board{Name: "b", Sliding: time.Minute}, counter.Mark{Member: "m", By: 1}))
		},
		"Top":      func() error { return only(s.Top(ctx, counter.Board{Name: "b"}, 1)) },
		"Standing": func() error { return only(s.Standing(ctx, counter.Board{Name: "b"}, "m")) },
		"Hit":      func() error { return only(s.Hit(ctx, list, "i")) },
		"Hot":      func() error { return only(s.Hot(ctx, list, 1)) },
		"Events":   func() error { return only(s.Events(ctx, list, 0)) },
	}
}

// While Redis is unavailable, a call fails within its timeout, and says what it is. Afterwards
// all is well by itself.
func TestRedisIsAway(t *testing.T) {
	for name, harm := range map[string]struct{ away, back func(*testredis.Server) }{
		"paused": {(*testredis.Server).Pause, (*testredis.Server).Resume},
		"killed": {(*testredis.Server).Kill, (*testredis.Server).Restart},
	} {
		t.Run(name, func(t *testing.T) {
			server := testredis.Start(t)
			// The client itself would wait for an hour.
			client := clientWith(t, rueidis.ClientOption{InitAddress: []string{server.Addr}, ForceSingleClient: true, ConnWriteTimeout: time.Hour})
			s := storeOn(t, client, Options{Timeout: 100 * time.Millisecond})
			harm.away(server)
			for what, call := range calls(t.Context(), s) {
				begin := time.Now()
				if err := call(); !errors.Is(err, counter.ErrUnavailable) || !strings.HasPrefix(err.Error(), "counter: ") {
					t.Errorf("%s = %v", what, err)
				}
				if took := time.Since(begin); took > 2*time.Minute {
					t.Errorf("%s took %v", what, took)
				}
			}
			harm.back(server)
			for what, call := range calls(t.Context(), s) {
				eventually(t, what, func() bool { return call() == nil })
			}
		})
	}
}

// A Redis that is full says so, and has done nothing.
func TestRedisIsFull(t *testing.T) {
	server := testredis.Start(t)
	s := storeOn(t, clientOf(t, server), Options{})
	if _, err := s.Set(t.Context(), counter.Setting{Key: counter.Key{Name: "before"}, To: counter.One}); err != nil {
		t.Fatal(err)
	}
	server.FillMemory()
	all := calls(t.Context(), s)
	for _, what := range []string{"Add", "Distinct", "Set", "Observe", "NextID", "Score", "Sliding", "Hit"} {
		if err := all[what](); !errors.Is(err, counter.ErrUnavailable) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s = %v", what, err)
		}
	}
	// What could be set to 0 is not, beside what could not be set.
	_, err := s.Set(t.Context(), counter.Setting{Key: counter.Key{Name: "before"}}, counter.Setting{Key: counter.Key{Name: "new"}, To: 1})
	if !errors.Is(err, counter.ErrUnavailable) || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("Set = %v", err)
	}
	server.FreeMemory()
	if had, err := s.Reset(t.Context(), counter.Key{Name: "before"}); err != nil || had[0] != counter.One {
		t.Errorf("Reset = %v, %v", had, err)
	}
	if keys := server.Do("KEYS", "*"); keys != "" {
		t.Errorf("there are %q", keys)
	}
	for what, call := range all {
		if err := call(); err != nil {
			t.Errorf("%s = %v", what, err)
		}
	}
}

// A call ends with its context, and its error is not ErrUnavailable.
func TestDeadline(t *testing.T) {
	server := testredis.Start(t)
	s := storeOn(t, clientOf(t, server), Options{})
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := s.Add(ctx, counter.Delta{Key: counter.Key{Name: "k"}, By: counter.One})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, counter.ErrUnavailable) {
		t.Errorf("Add = %v", err)
	}
}

// The scripts are there again after somebody has flushed them.
func TestScriptFlush(t *testing.T) {
	server := testredis.Start(t)
	s := storeOn(t, clientOf(t, server), Options{})
	for want := range int64(3) {
		server.FlushScripts()
		got, err := s.Add(t.Context(), counter.Delta{Key: counter.Key{Name: "k"}, By: counter.One})
		if err != nil || got[0] != counter.Whole(want+1) {
			t.Errorf("Add = %v, %v", got, err)
		}
	}
}

// A key that is not ours is an error, and stays as it is.
func TestForeignKeys(t *testing.T) {
	server := testredis.Start(t)
	s := storeOn(t, clientOf(t, server), Options{})
	all := calls(t.Context(), s)
	for what, key := range map[string]string{
		"Add": "c:ever:UTC{k}", "NextID": "i{s}", "Score": "b:ever:UTC:meta{b}", "Sliding": "s:60:meta{b}", "Hit": "h:60:meta{l}",
	} {
		server.Do("SADD", DefaultPrefix+key, "what")
		if err := all[what](); err == nil || !strings.Contains(err.Error(), "something else uses") || errors.Is(err, counter.ErrUnavailable) {
			t.Errorf("%s = %v", what, err)
		}
		if got := server.Do("SMEMBERS", DefaultPrefix+key); got != "what" {
			t.Errorf("%s has made %q of it", what, got)
		}
	}
}

// What a stranger puts into a key is never read as an answer.
func TestForeignContent(t *testing.T) {
	server := testredis.Start(t)
	s := storeOn(t, clientOf(t, server), Options{})
	server.Do("HSET", DefaultPrefix+"c:ever:UTC{k}", "0", "what")
	if got, err := s.Get(t.Context(), counter.Key{Name: "k"}); err == nil {
		t.Errorf("Get = %v", got)
	}
	if _, err := s.Hit(t.Context(), counter.HotList{Name: "l", Window: time.Minute, Threshold: 5}, "i"); err != nil {
		t.Fatal(err)
	}
	server.Do("ZADD", DefaultPrefix+"h:60:events{l}", "5", "what")
	if got, err := s.Events(t.Context(), counter.HotList{Name: "l", Window: time.Minute, Threshold: 5}, 0); err == nil {
		t.Errorf("Events = %v", got)
	}
}

// A client of one node is told what it lacks.
func TestCluster(t *testing.T) {
	cluster := testredis.StartSteadyCluster(t)
	t.Run("OneNode", func(t *testing.T) {
		one := storeOn(t, clientOf(t, cluster.Nodes[0]), Options{})
		moved := 0
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			if _, err := one.NextID(t.Context(), name); err != nil {
				moved++
				if !strings.Contains(err.Error(), "use a cluster's client") {
					t.Error(err)
				}
			}
		}
		if moved == 0 {
			t.Error("one node has all slots")
		}
	})
	client := clientWith(t, rueidis.ClientOption{InitAddress: cluster.Addrs})
	t.Run("Suite", func(t *testing.T) { clusterSuite(t, client) })
	t.Run("Split", func(t *testing.T) { clusterSplit(t, client) })
}
