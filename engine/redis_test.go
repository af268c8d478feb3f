package engine_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/redis"
)

// A real Redis is killed under load and comes back: on_failure of each rule applies, no
// call gets an error, and the shared limits apply again without a restart.
func TestRedisDies(t *testing.T) {
	server := testredis.Start(t)
	store, err := redis.Open("redis://" + server.Addr + "?timeout=5s") // a busy machine is slow, and that is no trouble here
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	e, err := engine.New(engine.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	e.Install(table(t, `
rules:
  - {id: open, match: {path: /open}, key: user, algorithm: sliding_log, limit: 5/1h, on_failure: open}
  - {id: closed, match: {path: /closed}, key: user, algorithm: sliding_log, limit: 5/1h, on_failure: closed}
  - {id: local, match: {path: /local}, key: user, algorithm: sliding_log, limit: 5/1h, on_failure: local}
`), 1)
	ask := func(path string) (v engine.Verdict) {
		if err := e.Check(t.Context(), &rule.Request{User: "alice", Path: path}, &v); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return v
	}
	allowed := func(path string) (n int) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				v := ask(path)
				mu.Lock()
				defer mu.Unlock()
				if v.Allowed {
					n++
				}
			})
		}
		wg.Wait()
		return n
	}
	for _, path := range []string{"/open", "/closed", "/local"} {
		if n := allowed(path); n != 5 {
			t.Errorf("%s: %d were allowed, want 5", path, n)
		}
	}
	server.Kill()
	waitFor(t, "trouble", func() bool { v := ask("/closed"); return errors.Is(v.Degraded, weir.ErrUnavailable) })
	// Alice had used all of it, and local knows.
	for path, want := range map[string]int{"/open": 12, "/closed": 0, "/local": 0} {
		if n := allowed(path); n != want {
			t.Errorf("%s without Redis: %d were allowed, want %d", path, n, want)
		}
	}
	if v := ask("/closed"); v.Reason != engine.Unavailable || v.Speaker() == nil || v.Speaker().Asked {
		t.Errorf("closed without Redis: %+v", v)
	}
	server.Restart()
	waitFor(t, "Redis", func() bool { v := ask("/open"); return v.Degraded == nil })
	if n := allowed("/closed"); n != 5 {
		t.Errorf("closed with a new Redis: %d were allowed, want 5", n)
	}
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s never came", what)
		}
		time.Sleep(time.Millisecond)
	}
}
