package redis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// A Redis that is not there when the store is opened is unavailable, at once, and
// is found when it comes.
func TestOpenBeforeRedis(t *testing.T) {
	for _, kind := range []struct{ scheme, path string }{{"redis", ""}, {"redis+cluster", ""}, {"redis+sentinel", "/weir"}} {
		t.Run(kind.scheme, func(t *testing.T) {
			server := testredis.Start(t)
			server.Kill()
			s := open(t, kind.scheme+"://"+server.Addr+kind.path)
			if err := s.Ping(t.Context()); !errors.Is(err, weir.ErrUnavailable) {
				t.Errorf("Ping = %v", err)
			}
			op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
			if _, err := s.Take(t.Context(), nil, op); !errors.Is(err, weir.ErrUnavailable) {
				t.Errorf("Take = %v", err)
			}
			if kind.path != "" {
				return // it would take a Sentinel to tell where Redis is
			}
			server.Restart()
			eventually(t, "an answer", func() bool {
				_, err := s.Take(t.Context(), nil, op)
				return err == nil
			})
			eventually(t, "an answer to a ping", func() bool { return s.Ping(t.Context()) == nil })
		})
	}
}

// While the breaker is open, no call waits and nothing is sent; calls that were waiting
// end immediately.
func TestBreakerSparesCallers(t *testing.T) {
	server := testredis.Start(t)
	s := open(t, single(server.Addr))
	op := weir.Op{Key: "k", Limit: weir.MustCompile("sliding_log 100/1d"), Cost: 1}
	var before, after weir.Decision
	peek := func(into *weir.Decision) func() bool {
		return func() bool {
			d, err := s.Peek(t.Context(), nil, op)
			if err == nil {
				*into = d[0]
			}
			return err == nil
		}
	}
	eventually(t, "the first answer", peek(&before))
	server.Pause()
	eventually(t, "the breaker", func() bool {
		_, err := s.Take(t.Context(), nil, op)
		return errors.Is(err, weir.ErrUnavailable)
	})
	// A thousand who wait for the timeout would take a minute and a half.
	for range 1000 {
		if _, err := s.Take(t.Context(), nil, op); !errors.Is(err, weir.ErrUnavailable) {
			t.Fatalf("Take = %v", err)
		}
	}
	server.Resume()
	eventually(t, "an answer", peek(&after))
	// Up to tripAfter calls that were not answered may have been charged, and no more.
	if n := before.Remaining - after.Remaining; n < 0 || n > tripAfter {
		t.Errorf("%d were charged", n)
	}
}

// An outage is noticed although nobody checks, or only one does, and so is its end. It begins with the first call that was
// not answered.
func TestOutageIsNoticed(t *testing.T) {
	server := testredis.Start(t)
	config := testkit.Must(ParseURL(single(server.Addr)))(t)
	config.Options.Clock = new(fake).Now // so that it looks only when the test says so
	s := testkit.Must(config.Open())(t)
	t.Cleanup(s.Close)
	ways := map[string]struct{ begin, end func() }{"killed": {server.Kill, server.Restart}, "paused": {server.Pause, server.Resume}}
	news := map[string]func(){"look": s.look, "check": func() {
		op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
		err := weir.ErrBusy // which tells nothing of Redis
		for errors.Is(err, weir.ErrBusy) {
			_, err = s.Take(t.Context(), nil, op)
		}
		if err == nil {
			t.Error("there was an answer")
		}
	}}
	for _, way := range ways {
		for by, ask := range news {
			before := time.Now()
			way.begin()
			ask()
			eventually(t, "the outage, by a "+by, func() bool { return !s.Available() })
			since, cause := s.Outage()
			if since.Before(before) || cause == nil {
				t.Errorf("an outage since %v, of which the test knows at %v: %v", since, before, cause)
			}
			way.end()
			eventually(t, "its end, by a "+by, s.Available)
			if since, cause := s.Outage(); !since.IsZero() || cause != nil {
				t.Errorf("after its end, an outage since %v: %v", since, cause)
			}
		}
	}
}

// As long as checks are answered, a probe that is not does not open the circuit breaker; nor does one of a process that did
// not run.
func TestSlowProbes(t *testing.T) {
	s := storeOn(t, connect(t), Options{Clock: new(fake).Now})
	look := func() {
		s.lanes.mu.Lock()
		s.lanes.probing = true // the test is the probe
		s.lanes.mu.Unlock()
		s.look()
	}
	look()
	lanes, _, down := s.lanesInDoubt()
	if len(lanes) != 1 || down {
		t.Fatalf("%d lanes in doubt, down: %v", len(lanes), down)
	}
	for range 2 * tripAfter {
		s.learn(lanes, []error{weir.ErrBusy})
	}
	for range 2 * tripAfter {
		s.learn(lanes, []error{s.late()})
		s.report(lanes[0], "k", nil)
	}
	if !s.Available() {
		t.Error("the circuit breaker is open, although checks were answered")
	}
	if s.learn(lanes, []error{nil}) {
		t.Error("there is still a doubt after an answer")
	}
	if look(); s.learn(nil, nil) {
		t.Error("there is a look, although checks were answered")
	}
	for range tripAfter {
		look()
		s.learn(lanes, []error{s.late()})
	}
	if s.Available() {
		t.Error("the circuit breaker is closed, although nothing was answered")
	}
	s.learn(lanes, []error{nil})
}

// One master of a cluster that dies is noticed without checks, and the others stay in use.
func TestClusterLook(t *testing.T) {
	cluster := testredis.StartSteadyCluster(t, "--cluster-require-full-coverage", "no")
	s := open(t, clusterURL(cluster))
	keys := s.lookKeys()
	for slot := 0; slot < slots; slot += slots / 3 { // a master each
		node := cluster.MasterOf(slot)
		if !slices.ContainsFunc(keys, func(key string) bool { return cluster.MasterOf(int(slotOf(key))) == node }) {
			t.Errorf("no key is on the master of slot %d: %v", slot, keys)
		}
	}
	node := cluster.MasterOf(int(slotOf(keys[0])))
	node.Pause()
	s.look()
	eventually(t, "the outage", func() bool { return !s.Available() })
	s.lanes.mu.Lock()
	for slot, l := range s.lanes.doubted {
		if l.down != nil && cluster.MasterOf(int(slot)) != node {
			t.Errorf("slot %d of another master is down: %v", slot, l.cause)
		}
	}
	s.lanes.mu.Unlock()
	node.Resume()
	eventually(t, "its end", s.Available)
	eventually(t, "lanes that are forgotten", func() bool {
		s.lanes.mu.Lock()
		defer s.lanes.mu.Unlock()
		return len(s.lanes.doubted)+len(s.lanes.bySlot) == 0
	})
	if keys := (&Store{prefix: "{weir}:", link: s.link}).lookKeys(); len(keys) != 1 {
		t.Errorf("with a hash tag, the keys are %v", keys)
	}
}

// An answer that is an error is an answer: the lane stays open for others.
func TestBadAnswersDoNotTrip(t *testing.T) {
	server := testredis.Start(t)
	s := open(t, patient(server.Addr))
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	server.FillMemory()
	for range 3 * tripAfter {
		if _, err := s.Take(t.Context(), nil, op); err == nil || errors.Is(err, weir.ErrUnavailable) {
			t.Fatalf("Take = %v", err)
		}
	}
	server.FreeMemory()
	if _, err := s.Take(t.Context(), nil, op); err != nil {
		t.Errorf("Take = %v", err)
	}
}

// After Close, there is an error for everyone, and nothing is left running.
func TestClose(t *testing.T) {
	server := testredis.Start(t)
	s := open(t, patient(server.Addr))
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				if _, err := s.Take(context.Background(), nil, op); err != nil {
					if !errors.Is(err, errClosed) {
						t.Errorf("Take = %v", err)
					}
					return
				}
			}
		})
	}
	s.Close()
	s.Close()
	wg.Wait()
	down := open(t, single(server.Addr))
	server.Kill()
	eventually(t, "the breaker", func() bool {
		_, err := down.Take(t.Context(), nil, op)
		return errors.Is(err, weir.ErrUnavailable)
	})
	down.Close()
}

// One node of a cluster, taken for all of it, says what to write instead.
func TestClusterNodeAsServer(t *testing.T) {
	cluster := testredis.StartCluster(t)
	s := open(t, patient(cluster.Addrs[0]))
	limit := weir.MustCompile("5/1m")
	for _, key := range strings.Split("abcdefghijklmnop", "") {
		_, err := s.Take(t.Context(), nil, weir.Op{Key: key, Limit: limit, Cost: 1})
		if err == nil {
			continue
		}
		if !strings.Contains(err.Error(), "redis+cluster://") {
			t.Errorf("the error is %v", err)
		}
		return
	}
	t.Error("one node has all the keys")
}

// Wherever a password is, no error tells it.
func TestNoPasswordInErrors(t *testing.T) {
	const secret = "s3cr3t-pa55word"
	server := testredis.Start(t, "--requirepass", "another")
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	s := open(t, "redis://:"+secret+"@"+server.Addr)
	for range 2 * tripAfter {
		_, err := s.Take(t.Context(), nil, op)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("Take = %v", err)
		}
		if err := s.Ping(t.Context()); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("Ping = %v", err)
		}
	}
}
