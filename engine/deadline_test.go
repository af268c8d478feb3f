package engine_test

import (
	"context"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/redis"
)

// slowClient is a client of a cluster. Its calls take a while, whatever their context says.
type slowClient struct {
	server *testredis.Server
	takes  atomic.Int64
}

type noScript struct{}

func (noScript) Error() string { return "NOSCRIPT" }
func (noScript) RedisError()   {}

func (c *slowClient) Eval(_ context.Context, command, script string, keys []string, arg string) (string, error) {
	if command != "EVAL" {
		return "", noScript{}
	}
	time.Sleep(time.Duration(c.takes.Load()))
	return c.server.TryDo(slices.Concat([]string{command, script, strconv.Itoa(len(keys))}, keys, []string{arg})...)
}

func (c *slowClient) Exists(_ context.Context, keys []string) []error {
	return make([]error, len(keys))
}
func (c *slowClient) Cluster() bool { return true }

// Whatever a request needs of the store, and whatever the store's client does, the answer is
// there within the timeout.
func TestOneDeadline(t *testing.T) {
	server := testredis.Start(t)
	emptyPools()
	defer emptyPools()
	synctest.Test(t, func(t *testing.T) { testOneDeadline(t, &slowClient{server: server}) })
}

// emptyPools forgets what stores keep to use it again, which must not leave the test's time.
func emptyPools() {
	runtime.GC()
	runtime.GC()
}

func testOneDeadline(t *testing.T, client *slowClient) {
	const timeout = 50 * time.Millisecond
	open := func() *engine.Engine {
		store := testkit.Must(redis.NewOn(client, redis.Options{Timeout: timeout}))(t)
		t.Cleanup(store.Close)
		e := testkit.Must(engine.New(engine.Options{Store: store}))(t)
		t.Cleanup(e.Close)
		e.Install(table(t, `
rules:
  - {id: one, match: {path: /one}, key: user, algorithm: fixed_window, limit: 3/1h, on_failure: open}
  - {id: user, match: {path: /all}, key: user, algorithm: fixed_window, limit: 3/1h, on_failure: open, penalty: {after: 2, within: 1h, for: 1h}}
  - {id: ip, match: {path: /all}, key: ip, algorithm: token_bucket, limit: 1000/1h, on_failure: open}
  - {id: quiet, match: {path: /all}, key: user, algorithm: fixed_window, limit: 1000/1h, mode: shadow}
  - {id: counting, match: {path: /all}, key: user, algorithm: fixed_window, limit: 1000/1h, mode: shadow, count_denied: true}
`), 1)
		return e
	}
	e, other := open(), open()
	t.Cleanup(func() { client.takes.Store(0) })

	reserve := func(e *engine.Engine, req *rule.Request) weir.HoldID {
		var v engine.Verdict
		testkit.OK(t, e.Reserve(t.Context(), req, 0, &v))
		return v.Hold
	}
	kept := func(req *rule.Request) weir.HoldID {
		client.takes.Store(int64(time.Hour))
		return reserve(e, req)
	}
	known := func(req *rule.Request) weir.HoldID { return reserve(e, req) }
	unknown := func(req *rule.Request) weir.HoldID { return reserve(other, req) }
	settle := func(_ *rule.Request, id weir.HoldID) { testkit.Must(e.Settle(t.Context(), id, engine.Units(2)))(t) }
	extend := func(_ *rule.Request, id weir.HoldID) { _, _ = e.Extend(t.Context(), id, 0) }
	var v engine.Verdict

	user := byte(0)
	for _, c := range []struct {
		what  string
		first func(*rule.Request) weir.HoldID
		do    func(*rule.Request, weir.HoldID)
	}{
		{"check", nil, func(req *rule.Request, _ weir.HoldID) { testkit.OK(t, e.Check(t.Context(), req, &v)) }},
		{"check of one limit", nil, func(req *rule.Request, _ weir.HoldID) {
			req.Path = "/one"
			testkit.OK(t, e.Check(t.Context(), req, &v))
		}},
		{"check that is denied", known, func(req *rule.Request, _ weir.HoldID) { testkit.OK(t, e.Check(t.Context(), req, &v)) }},
		{"charge", nil, func(req *rule.Request, _ weir.HoldID) { testkit.OK(t, e.Charge(t.Context(), req, &v)) }},
		{"reserve", nil, func(req *rule.Request, _ weir.HoldID) { reserve(e, req) }},
		{"settle", known, settle},
		{"settle what another instance has reserved", unknown, settle},
		{"settle what no other instance knows", kept, settle},
		{"settle it twice at once", kept, func(req *rule.Request, id weir.HoldID) {
			var both sync.WaitGroup
			both.Go(func() { settle(req, id) })
			settle(req, id)
			both.Wait()
		}},
		{"cancel", unknown, func(_ *rule.Request, id weir.HoldID) { testkit.Must(e.Cancel(t.Context(), id))(t) }},
		{"extend", known, extend},
		{"extend what another instance has reserved", unknown, extend},
	} {
		for _, takes := range []time.Duration{time.Millisecond, 18 * time.Millisecond, 49 * time.Millisecond, time.Hour} {
			user++
			req := &rule.Request{Path: "/all", User: string([]byte{'u', user}), IP: netip.AddrFrom4([4]byte{203, 0, 113, user}), Cost: 2}
			client.takes.Store(0)
			var id weir.HoldID
			if c.first != nil {
				id = c.first(req)
			}
			client.takes.Store(int64(takes))
			begun := time.Now()
			c.do(req, id)
			if took := time.Since(begun); took > timeout {
				t.Errorf("%s, with calls of %v: it took %v", c.what, takes, took)
			}
		}
	}
}
