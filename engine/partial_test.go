package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/redis"
)

// partialBench is a Redis Cluster in which one master does not answer.
type partialBench struct {
	cluster *testredis.Cluster
	dead    *testredis.Server
	store   *redis.Store
	user    string // on the dead master
	used    map[int]bool
}

func newPartialBench(t *testing.T) *partialBench {
	cluster := testredis.StartSteadyCluster(t, "--cluster-require-full-coverage", "no")
	url := "redis+cluster://" + strings.Join(cluster.Addrs, ",") + "?timeout=1s"
	b := &partialBench{cluster: cluster, dead: cluster.MasterOf(0), store: testkit.Must(redis.Open(url))(t), used: map[int]bool{}}
	t.Cleanup(b.store.Close)
	b.user = b.name("user", "u%d-%d", true)
	return b
}

// name returns a name that is on the dead master, or on another one. Nobody else uses its slot.
func (b *partialBench) name(kind, format string, dead bool) string {
	for i := 1; ; i++ {
		name := fmt.Sprintf(format, i/250, 1+i%250)
		slot := b.cluster.SlotOf(kind + ":" + name)
		if !b.used[slot] && (b.cluster.MasterOf(slot) == b.dead) == dead {
			b.used[slot] = true
			return name
		}
	}
}

// request returns one of the user, and of another address on a living master.
func (b *partialBench) request() rule.Request {
	return rule.Request{IP: netip.MustParseAddr(b.name("ip", "192.0.%d.%d", false)), User: b.user}
}

func (b *partialBench) engine(t *testing.T, rules string) *engine.Engine {
	e := testkit.Must(engine.New(engine.Options{Store: b.store}))(t)
	e.Install(table(t, rules), 1)
	t.Cleanup(e.Close)
	return e
}

// dies pauses the master, and waits until the store no longer waits for it.
func (b *partialBench) dies(t *testing.T, e *engine.Engine, req rule.Request) {
	t.Helper()
	b.dead.Pause()
	waitFor(t, "the circuit breaker", func() bool {
		var v engine.Verdict
		err := e.Peek(t.Context(), &req, &v)
		return err == nil && errors.Is(v.Degraded, weir.ErrUnavailable)
	})
}

// In a cluster in which a master does not answer, the rules on other masters decide exactly, and
// each of the others by its on_failure. All are charged, or none.
func TestPartOfTheStoreIsUnavailable(t *testing.T) {
	b := newPartialBench(t)
	const rules = `
rules:
  - {id: address, key: ip, algorithm: fixed_window, limit: 3/1d, on_failure: %s}
  - {id: person, key: user, algorithm: fixed_window, limit: 2/1d, on_failure: %s}
`
	remaining := func(e *engine.Engine, req rule.Request) int64 {
		var v engine.Verdict
		if err := e.Peek(t.Context(), &rule.Request{IP: req.IP}, &v); err != nil || v.Degraded != nil {
			t.Fatal(err, v.Degraded)
		}
		return v.Results[0].Remaining
	}
	engines, requests := map[string]*engine.Engine{}, map[string]rule.Request{}
	policies := []string{"open", "local", "closed"}
	for _, p := range policies {
		engines[p], requests[p] = b.engine(t, fmt.Sprintf(rules, "closed", p)), b.request()
		remaining(engines[p], requests[p]) // connected
	}
	b.dies(t, engines["open"], requests["open"])
	defer b.dead.Resume()
	for _, c := range []struct {
		policy string
		told   string // of four
		left   int64
	}{
		{"open", "allowed allowed allowed denied:address:limits", 0},
		{"local", "allowed allowed degraded_denied:person:limits degraded_denied:person:limits", 1},
		{"closed", strings.TrimSpace(strings.Repeat("degraded_denied:person:unavailable ", 4)), 3},
	} {
		e, req := engines[c.policy], requests[c.policy]
		var told []string
		for range 4 {
			var peeked, v engine.Verdict
			if err := errors.Join(e.Peek(t.Context(), &req, &peeked), e.Check(t.Context(), &req, &v)); err != nil {
				t.Fatal(err)
			}
			if v.Degraded == nil || peeked.Allowed != v.Allowed || peeked.Reason != v.Reason {
				t.Errorf("%s: %+v; a peek: %+v", c.policy, v, peeked)
			}
			said := "allowed"
			if !v.Allowed {
				said = fmt.Sprint(v.Outcome(), ":", v.Speaker().Rule.ID, ":", v.Reason)
			}
			told = append(told, said)
		}
		if got := strings.Join(told, " "); got != c.told {
			t.Errorf("%s: %s, want %s", c.policy, got, c.told)
		}
		if n := remaining(e, req); n != c.left {
			t.Errorf("%s: %d of the address remain, want %d", c.policy, n, c.left)
		}
	}

	// A shadow has no say: nothing was decided without the store.
	shadow, of := b.engine(t, fmt.Sprintf(strings.Replace(rules, "2/1d,", "2/1d, mode: shadow,", 1), "closed", "open")), b.request()
	for _, ask := range []func(context.Context, *rule.Request, *engine.Verdict) error{shadow.Peek, shadow.Check} {
		var v engine.Verdict
		if err := ask(t.Context(), &of, &v); err != nil || v.Outcome() != engine.OutcomeAllowed || v.Results[1].Asked {
			t.Errorf("%+v, %v", v, err)
		}
	}

	// What was asked and denies speaks before what could not be asked, which has no numbers.
	first, both := b.engine(t, `
rules:
  - {id: person, key: user, limit: 2/1d, on_failure: closed}
  - {id: address, key: ip, algorithm: fixed_window, limit: 1/1d}
`), b.request()
	var alone, mixed engine.Verdict
	if err := errors.Join(first.Check(t.Context(), &rule.Request{IP: both.IP}, &alone), first.Check(t.Context(), &both, &mixed)); err != nil {
		t.Fatal(err)
	}
	if d := engine.Describe(&mixed); mixed.Reason != engine.Limits || mixed.Speaker().Rule.ID != "address" || !strings.HasPrefix(d.Detail, "The limit address is used up; try again in ") {
		t.Errorf("%+v: %s", mixed, d.Detail)
	}

	// What was taken is given back, on either side.
	e, req := b.engine(t, fmt.Sprintf(rules, "closed", "local")), b.request()
	for range 5 {
		var v engine.Verdict
		if err := e.Check(t.Context(), &req, &v); err != nil || !v.Allowed {
			t.Fatalf("%+v, %v", v, err)
		}
		if err := e.Refund(t.Context(), &v); err != nil {
			t.Fatal(err)
		}
	}
}

// The same for requests that may wait for a place.
func TestWaitWithPartOfTheStore(t *testing.T) {
	b := newPartialBench(t)
	e := b.engine(t, `
rules:
  - {id: address, key: ip, algorithm: fixed_window, limit: 2/1d, count_denied: true, on_failure: open}
  - {id: places, key: ip, concurrency: 9, wait: 2s, on_failure: open}
  - {id: person, key: user, algorithm: fixed_window, limit: 9/1d, on_failure: open}
`)
	gate := testkit.Must(engine.NewGate(e, 0, nil))(t)
	req := b.request()
	check := func() (allowed bool, v engine.Verdict) {
		return testkit.Must(gate.Allow(t.Context(), &req, &v, &engine.Denial{}))(t), v
	}
	if allowed, v := check(); !allowed || v.Degraded != nil {
		t.Fatalf("%+v", v)
	}
	b.dies(t, e, req)
	defer b.dead.Resume()
	for _, want := range []bool{true, false} {
		if allowed, v := check(); allowed != want || v.Results[0].Remaining != 0 || v.Degraded == nil {
			t.Errorf("allowed is %v, want %v: %+v", allowed, want, v)
		}
	}
}

// The same for holds: parts on masters that answer are held there, and the others by on_failure.
func TestReserveWithPartOfTheStore(t *testing.T) {
	b := newPartialBench(t)
	const rules = `
rules:
  - {id: address, key: ip, algorithm: fixed_window, limit: 30/1d, on_failure: closed}
  - {id: person, key: user, algorithm: fixed_window, limit: 20/1d, on_failure: %s}
`
	engines, requests := map[string]*engine.Engine{}, map[string]rule.Request{}
	for _, p := range []string{"open", "local", "closed"} {
		req := b.request()
		req.Cost = 10
		engines[p], requests[p] = b.engine(t, fmt.Sprintf(rules, p)), req
		var v engine.Verdict
		if err := engines[p].Peek(t.Context(), &req, &v); err != nil {
			t.Fatal(err)
		}
	}
	left := func(policy, key string) int64 {
		t.Helper()
		var v engine.Verdict
		waitFor(t, "an answer", func() bool { // the store may just have found its master again
			_, err := engines[policy].Standing(t.Context(), "", key, "", &v)
			return err == nil
		})
		return v.Results[0].Remaining
	}
	b.dies(t, engines["open"], requests["open"])
	for _, c := range []struct {
		policy  string
		allowed int   // of four
		left    int64 // of the address, after each hold was settled with 3
	}{{"open", 4, 30 - 4*3}, {"local", 4, 30 - 4*3}, {"closed", 0, 30}} {
		e, req := engines[c.policy], requests[c.policy]
		allowed := 0
		for range 4 {
			var v engine.Verdict
			if err := e.Reserve(t.Context(), &req, time.Minute, &v); err != nil {
				t.Fatal(err)
			}
			if !v.Allowed {
				continue
			}
			allowed++
			if v.Degraded == nil || v.Hold == (weir.HoldID{}) {
				t.Errorf("%s: %+v", c.policy, v)
			}
			if extended := testkit.Must(e.Extend(t.Context(), v.Hold, time.Hour))(t); extended.State != weir.HoldOpen || len(extended.Parts) != 2 {
				t.Errorf("%s: extended: %+v", c.policy, extended)
			}
			want := weir.HoldSettled
			if c.policy == "open" {
				want = weir.HoldPending // until the master is back
			}
			if done := testkit.Must(e.Settle(t.Context(), v.Hold, engine.Units(3)))(t); done.State != want || want == weir.HoldSettled && len(done.Parts) != 2 {
				t.Errorf("%s: %+v", c.policy, done)
			}
		}
		if allowed != c.allowed {
			t.Errorf("%s: %d of 4 were allowed, want %d", c.policy, allowed, c.allowed)
		}
		waitFor(t, "what is given back", func() bool { return left(c.policy, "ip:"+req.IP.String()) == c.left }) // which may take longer than the denial
	}
	// One hold on each side is too much for the person, but not for the address.
	e, req := b.engine(t, fmt.Sprintf(rules, "local")), b.request()
	req.Cost = 10
	for i := range 3 {
		var v engine.Verdict
		if err := e.Reserve(t.Context(), &req, time.Minute, &v); err != nil || v.Allowed != (i < 2) || v.Allowed != (v.Hold != weir.HoldID{}) {
			t.Errorf("%d: %+v, %v", i, v, err)
		}
	}
	waitFor(t, "the refund", func() bool { return left("local", "ip:"+req.IP.String()) == 10 })

	b.dead.Resume()
	waitFor(t, "the charges of the open rule, and no others", func() bool { return left("open", "user:"+b.user) == 20-4*3 })
}
