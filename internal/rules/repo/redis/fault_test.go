package redis

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/repo/repotest"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// If a notification is lost, polling finds the change well within a second.
func TestMessageIsLost(t *testing.T) {
	server := testredis.Start(t)
	write(t, open(t, clientOf(t, server), Options{}), documentOf(1))
	w := repotest.Watch(t, open(t, clientOf(t, server), Options{}))
	w.WaitVersion(1)
	// What a script writes that does not publish.
	begin := time.Now()
	force(server, DefaultPrefix, documentOf(2))
	w.WaitVersion(2)
	if took := time.Since(begin); took > time.Second {
		t.Logf("it took %v; the machine is busy, or the poll is slow", took)
	}
}

// The poll keeps its promise by its numbers, whatever the machine does.
func TestPause(t *testing.T) {
	r := open(t, clientOf(t, testredis.Start(t)), Options{})
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		p := clock.Jitter(r.poll)
		low, high = min(low, p), max(high, p)
	}
	if low < 400*time.Millisecond || high > 600*time.Millisecond || high-low < 100*time.Millisecond {
		t.Errorf("pauses are from %v to %v", low, high)
	}
}

// While Redis is unavailable, calls fail soon, and what was read stays in force. It is reported
// once, and over when Redis is back.
func TestRedisIsAway(t *testing.T) {
	for name, harm := range map[string]struct{ away, back func(*testredis.Server) }{
		"paused": {(*testredis.Server).Pause, (*testredis.Server).Resume},
		"killed": {(*testredis.Server).Kill, (*testredis.Server).Restart},
	} {
		t.Run(name, func(t *testing.T) {
			server := testredis.Start(t)
			// The client itself would wait for an hour.
			client := clientWith(t, rueidis.ClientOption{InitAddress: []string{server.Addr}, ForceSingleClient: true, ConnWriteTimeout: time.Hour})
			r := open(t, client, Options{Timeout: 5 * time.Second})
			r.poll = 20 * time.Millisecond
			write(t, r, documentOf(1))
			w := repotest.Watch(t, r)
			w.WaitVersion(1)

			harm.away(server)
			w.WaitError(1)
			begin := time.Now()
			var currentErr, writeErr, historyErr, findErr error
			var calls sync.WaitGroup
			calls.Go(func() { _, currentErr = r.Current(t.Context()) })
			calls.Go(func() { _, writeErr = r.Write(t.Context(), repo.Draft{Base: 1, Source: documentOf(2)}) })
			calls.Go(func() { _, historyErr = r.History(t.Context()) })
			calls.Go(func() { _, findErr = r.Find(t.Context(), 1) })
			calls.Wait()
			if took := time.Since(begin); took > 2*time.Minute {
				t.Errorf("four calls took %v", took)
			}
			for what, err := range map[string]error{"Current": currentErr, "Write": writeErr, "History": historyErr, "Find": findErr} {
				if err == nil || errors.Is(err, repo.ErrNoVersion) {
					t.Errorf("%s = %v", what, err)
				}
			}
			errs := 0
			for _, c := range w.Calls() {
				if c.Err != nil {
					errs++
				}
			}
			if errs != 1 {
				t.Errorf("it was reported %d times: %+v", errs, w.Calls())
			}

			harm.back(server)
			if name == "killed" {
				// It has come back without data. The rules must stay in force.
				c := w.Wait("the loss", func(c repotest.Call) bool {
					return c.Err != nil && strings.Contains(c.Err.Error(), "has lost the rules")
				})
				if c.Version.Number != 1 || string(c.Version.Source) != string(documentOf(1)) {
					t.Errorf("what stays in force is %+v", c.Version)
				}
				write(t, r, documentOf(3)) // version 1 again, but another
				c = w.Wait("the new document", func(c repotest.Call) bool { return c.Err == nil && string(c.Version.Source) == string(documentOf(3)) })
				if c.Version.Number != 1 {
					t.Errorf("%+v", c.Version)
				}
				return
			}
			w.WaitVersion(1)
		})
	}
}

// A version that was written here and is lost before a watch has seen it stays in
// force, too: an empty Redis must not switch off all limits.
func TestLostBeforeItIsSeen(t *testing.T) {
	server := testredis.Start(t)
	r := open(t, clientOf(t, server), Options{})
	r.poll = 20 * time.Millisecond
	write(t, r, documentOf(1))
	server.Kill()
	server.Restart()
	w := repotest.Watch(t, r)
	w.Wait("the loss", func(c repotest.Call) bool {
		return c.Err != nil && strings.Contains(c.Err.Error(), "version 1 stays in force")
	})
	for _, c := range w.Calls() {
		if c.Err == nil {
			t.Errorf("version %d comes into force", c.Version.Number)
		}
	}
}

// A watch that begins while Redis is unavailable gets the rules when it is available
// again.
func TestWatchBeforeRedis(t *testing.T) {
	server := testredis.Start(t)
	client := clientOf(t, server)
	r := open(t, client, Options{})
	r.poll = 20 * time.Millisecond
	server.Kill()
	w := repotest.Watch(t, r)
	w.WaitError(0)
	server.Restart()
	w.WaitVersion(0)
	write(t, r, documentOf(1))
	w.WaitVersion(1)
}

// Messages are heard again after the connection was lost.
func TestListensAgain(t *testing.T) {
	server := testredis.Start(t)
	proxy := testredis.NewProxy(t, server)
	r := open(t, clientWith(t, rueidis.ClientOption{InitAddress: []string{proxy.Addr}, ForceSingleClient: true}), Options{Timeout: time.Second})
	r.poll = 50 * time.Millisecond
	w := repotest.Watch(t, r)
	w.WaitVersion(0)
	eventually(t, "a listener", func() bool { return listeners(server) == 1 })
	proxy.Cut()
	w.WaitError(0)
	proxy.Heal()
	w.WaitVersion(0)
	eventually(t, "a listener", func() bool { return listeners(server) == 1 })
}

func listeners(server *testredis.Server) int {
	return strings.Count(server.Do("PUBSUB", "NUMSUB", "weir:{rules}:changed"), "\n1")
}

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

// A write of which the answer is lost may have happened, and says so.
func TestAnswerIsLost(t *testing.T) {
	server := testredis.Start(t)
	proxy := testredis.NewProxy(t, server)
	direct := open(t, clientOf(t, server), Options{})
	write(t, direct, documentOf(1))
	r := open(t, clientWith(t, rueidis.ClientOption{InitAddress: []string{proxy.Addr}, ForceSingleClient: true}), Options{})
	s, err := r.look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	proxy.Latency(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() {
		_, err := r.swap(ctx, s, repo.Version{Source: documentOf(2)})
		answer <- err
	}()
	eventually(t, "the version", func() bool { return current(t, direct).Number == 2 })
	cancel()
	if err := <-answer; err == nil || !strings.Contains(err.Error(), "may or may not have been written") {
		t.Errorf("swap = %v", err)
	}
	proxy.Cut()
}

// A context is what limits a call, if it is shorter than the timeout.
func TestDeadline(t *testing.T) {
	server := testredis.Start(t)
	r := open(t, clientOf(t, server), Options{Timeout: time.Minute})
	write(t, r, documentOf(1))
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.Current(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Current = %v", err)
	}
}
