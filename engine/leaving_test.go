package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

// leavingClient is a client of a cluster whose caller leaves after some calls: when Redis has done what
// was asked, and before its answer is there.
type leavingClient struct {
	slowClient
	leave context.CancelFunc
	calls atomic.Int64 // until then
}

func (c *leavingClient) Eval(ctx context.Context, command, script string, keys []string, arg string) (string, error) {
	answer, err := c.slowClient.Eval(ctx, command, script, keys, arg)
	if err == nil && c.calls.Add(-1) == 0 {
		c.leave()
		time.Sleep(time.Millisecond)
	}
	return answer, err
}

// A client that leaves while the store is asked leaves no place behind, and no hold: they would be
// missing for others until they expire.
func TestLeavingTakesNothingAlong(t *testing.T) {
	server := testredis.Start(t)
	for name, rules := range map[string]string{
		"place":              "rules: [{id: api, key: user, concurrency: 1}]",
		"place, waiting":     "rules: [{id: api, key: user, concurrency: 1, wait: 1s}]",
		"place and shadow":   "rules: [{id: api, key: user, concurrency: 1}, {id: trial, key: user, concurrency: 1, mode: shadow}]",
		"hold":               "rules: [{id: api, key: user, limit: 1/1h, algorithm: fixed_window, count: {status: 500}}]",
		"place beside hold":  "rules: [{id: api, key: user, concurrency: 1, limit: 1/1h, algorithm: fixed_window, count: {status: 500}}]",
		"place, counting":    "rules: [{id: api, key: user, concurrency: 1, wait: 1s}, {id: rate, key: user, algorithm: fixed_window, limit: 1000/1h, count_denied: true}]",
		"place with penalty": "rules: [{id: api, key: user, concurrency: 1, penalty: {after: 5, within: 1h, for: 1h}}]",
	} {
		for calls := range 3 {
			name := fmt.Sprint(name, " ", calls)
			t.Run(name, func(t *testing.T) {
				emptyPools()
				defer emptyPools()
				synctest.Test(t, func(t *testing.T) {
					server.Do("FLUSHALL")
					client := &leavingClient{slowClient: slowClient{server: server}}
					store := testkit.Must(redis.NewOn(client, redis.Options{}))(t)
					defer store.Close()
					f := newFlights(t, rules, store)
					defer f.Close()

					ctx, leave := context.WithCancel(t.Context())
					client.leave = leave
					client.calls.Store(int64(calls) + 1)
					req := alice
					var v engine.Verdict
					var d engine.Denial
					if ok, _ := f.gate.Reserve(ctx, &req, time.Minute, &v, &d); ok {
						if h := f.gate.Serve(&req, time.Minute, &v); h != nil {
							end(h)
						}
					}
					leave()
					time.Sleep(time.Second) // what is under way ends
					h := f.begin(alice)
					if h == nil {
						t.Fatal("the next one is denied: ", f.denial.Detail)
					}
					end(h)
				})
			})
		}
	}
}

// leavingStore is a store whose caller leaves after the first call.
type leavingStore struct {
	*memory.Store
	leave context.CancelFunc
}

func (s *leavingStore) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	defer s.leave()
	return s.Store.Take(ctx, dst, ops...)
}

// Nor does one that leaves before the shadow rules are asked. Their store need not have a timeout.
func TestLeavingBeforeShadows(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	store := &leavingStore{memory.New(memory.Options{}), leave}
	f := newFlights(t, "rules: [{id: api, key: user, concurrency: 1}, {id: trial, key: user, limit: 1/1h, mode: shadow}]", store)
	req := alice
	if !testkit.Must(f.gate.Reserve(ctx, &req, time.Minute, &f.v, &f.denial))(t) {
		t.Fatal(f.denial.Detail)
	}
	end(f.gate.Serve(&req, time.Minute, &f.v))
	f.mustLeave(1, 1)
}
