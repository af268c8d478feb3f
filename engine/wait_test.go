package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

// visit is what has become of a request that may have waited.
type visit struct {
	who     string
	hold    *engine.Hold
	allowed bool
	denial  engine.Denial
	err     error
	waited  time.Duration
	results []engine.Result
}

// arrive lets a request arrive, and returns when it is decided or waits. Visits have the order
// in which requests were decided.
func (f *flights) arrive(ctx context.Context, done chan<- visit, who string, req rule.Request) {
	go func() {
		out, began := visit{who: who}, time.Now()
		var v engine.Verdict
		out.allowed, out.err = f.gate.Reserve(ctx, &req, time.Minute, &v, &out.denial)
		out.waited, out.results = time.Since(began), v.Results
		if out.allowed {
			out.hold = f.gate.Serve(&req, time.Minute, &v)
		}
		done <- out
	}()
	synctest.Wait()
}

// none fails if somebody was decided.
func none(t testing.TB, done <-chan visit) {
	t.Helper()
	synctest.Wait()
	select {
	case v := <-done:
		t.Fatalf("%s was decided: %v %+v %v", v.who, v.allowed, v.denial, v.err)
	default:
	}
}

// next is who was decided at once.
func next(t testing.TB, done <-chan visit, who string, allowed bool) visit {
	t.Helper()
	synctest.Wait()
	select {
	case v := <-done:
		if v.who != who || v.allowed != allowed || v.err != nil {
			t.Fatalf("%s: %v %+v %v, want %s: %v", v.who, v.allowed, v.denial, v.err, who, allowed)
		}
		return v
	default:
		t.Fatalf("%s was not decided", who)
		return visit{}
	}
}

const (
	waiting     = "rules: [{id: api, key: user, concurrency: 1, wait: {up_to: 10s, queued: 3}}]"
	waitingRate = "rules: [{id: api, key: user, concurrency: 1, wait: 10s, limit: 4/1h, algorithm: fixed_window}]"
)

func now() *memory.Store {
	return memory.New(memory.Options{Clock: func() weir.Micros { return weir.MicrosOf(time.Now()) }})
}

// Those who wait are served in the order of their arrival, at the moment at which a place is free,
// and are charged only then, for all limits.
func TestWaitOrder(t *testing.T) {
	for name, rules := range map[string]string{
		"taken":    waitingRate,
		"reserved": strings.Replace(waitingRate, "}]", ", count: {status: 500}}]", 1),
		"counting": strings.Replace(waitingRate, "}]", ", count_denied: true, penalty: 1h}]", 1),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, done := newFlights(t, rules, nil), make(chan visit, 9)
				hold := f.begin(alice)
				for _, who := range []string{"first", "second", "third"} {
					f.arrive(t.Context(), done, who, alice)
				}
				f.mustLeave(3, 0)
				time.Sleep(3 * time.Second)
				none(t, done)
				if got := f.gate.Delayed(); got != 3 {
					t.Errorf("%d wait", got)
				}
				for i, who := range []string{"first", "second", "third"} {
					hold.End(&rule.Response{Status: 500}, nil)
					v := next(t, done, who, true)
					if v.waited != 3*time.Second {
						t.Errorf("%s waited for %v", who, v.waited)
					}
					f.mustLeave(int64(2-i), 0)
					hold = v.hold
				}
				end(hold)
				if got := f.gate.Delayed(); got != 0 {
					t.Errorf("%d wait", got)
				}
				f.Close()
			})
		})
	}
}

// A place of a hold that was reserved without a gate, as over HTTP, wakes who waits when the hold
// ends, and another client's does not.
func TestWaitForHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := "rules: [{id: api, key: user, concurrency: 1, hold_ttl: 1h, wait: {up_to: 10s, queued: 3}, shares: {low: 100%}}]"
		f, done := newFlights(t, rules, nil), make(chan visit, 9)
		reserve := func(req rule.Request) weir.HoldID {
			t.Helper()
			testkit.OK(t, f.Reserve(t.Context(), &req, time.Hour, &f.v))
			return f.v.Hold
		}
		bob := alice
		bob.User = "bob"
		held, other := reserve(alice), reserve(bob)
		f.arrive(t.Context(), done, "first", alice)
		f.arrive(t.Context(), done, "second", alice)
		time.Sleep(3*time.Second + time.Millisecond)
		testkit.Must(f.Cancel(t.Context(), other))(t)
		none(t, done)
		testkit.Must(f.Extend(t.Context(), held, time.Hour))(t)
		none(t, done)
		testkit.Must(f.Settle(t.Context(), held, engine.Units(1)))(t)
		v := next(t, done, "first", true)
		if v.waited != 3*time.Second+time.Millisecond {
			t.Errorf("waited for %v", v.waited)
		}
		end(v.hold)
		end(next(t, done, "second", true).hold)
		f.Close()
	})
}

// After the time is over, the denial is the usual one.
func TestWaitUpTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, done := newFlights(t, waiting, nil), make(chan visit, 9)
		defer end(f.begin(alice))
		f.arrive(t.Context(), done, "first", alice)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		f.arrive(ctx, done, "hurried", alice)
		f.arrive(t.Context(), done, "third", alice)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if v := <-done; v.who != "hurried" || v.allowed || v.waited != 2*time.Second {
			t.Errorf("%+v", v)
		}
		time.Sleep(7*time.Second - 1)
		none(t, done)
		time.Sleep(time.Nanosecond)
		v := next(t, done, "first", false)
		if d := v.denial; d.RetryAfter != time.Second || d.HTTPStatus() != 429 || d.Detail != "The limit api allows 1 request at the same time; try again in 1 s." || v.results[0].RetryAfter < 45*time.Second {
			t.Errorf("%+v %+v", d, v.results)
		}
		time.Sleep(time.Second)
		next(t, done, "third", false)
		f.Close()
	})
}

// Who leaves frees the position, and lines are bounded: for each client, and in all.
func TestWaitBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, done := newFlights(t, waiting, nil), make(chan visit, 9)
		f.gate = testkit.Must(engine.NewGate(f.Engine, 4, nil))(t)
		hold := f.begin(alice)
		leaving, leave := context.WithCancel(t.Context())
		f.arrive(leaving, done, "first", alice)
		f.arrive(t.Context(), done, "second", alice)
		f.arrive(leaving, done, "third", alice)
		none(t, done)
		f.arrive(t.Context(), done, "full", alice)
		if d := next(t, done, "full", false).denial; d.Cause != engine.QuotaExceeded || d.RetryAfter != time.Second {
			t.Errorf("%+v", d)
		}
		bob := rule.Request{User: "bob"}
		defer end(f.begin(bob))
		f.arrive(t.Context(), done, "bob", bob)
		none(t, done)
		f.arrive(t.Context(), done, "one too many", bob)
		if d := next(t, done, "one too many", false).denial; d.Cause != engine.QuotaExceeded {
			t.Errorf("%+v", d)
		}
		leave()
		synctest.Wait()
		left := []string{(<-done).who, (<-done).who}
		if slices.Sort(left); !slices.Equal(left, []string{"first", "third"}) || f.gate.Delayed() != 2 {
			t.Errorf("%v have left, and %d wait", left, f.gate.Delayed())
		}
		f.arrive(t.Context(), done, "fourth", alice)
		end(hold)
		second := next(t, done, "second", true)
		none(t, done)
		end(second.hold)
		end(next(t, done, "fourth", true).hold)
		time.Sleep(10 * time.Second)
		next(t, done, "bob", false)
		f.Close()
	})
}

// Places that another instance gives back are found by asking. Until then nobody overtakes those who
// wait.
func TestWaitOtherInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := now()
		one, two, done := newFlights(t, waiting, store), newFlights(t, waiting, store), make(chan visit, 9)
		hold := two.begin(alice)
		one.arrive(t.Context(), done, "first", alice)
		time.Sleep(5 * time.Second)
		one.arrive(t.Context(), done, "second", alice)
		end(hold)
		one.arrive(t.Context(), done, "third", alice)
		one.arrive(t.Context(), done, "full", alice)
		if v := next(t, done, "full", false); v.denial.RetryAfter != time.Second || v.results[0].RetryAfter != time.Second || v.results[0].Remaining != 0 {
			t.Errorf("%+v", v)
		}
		none(t, done)
		time.Sleep(625 * time.Millisecond)
		first := next(t, done, "first", true)
		none(t, done)
		end(first.hold)
		end(next(t, done, "second", true).hold)
		end(next(t, done, "third", true).hold)
		one.Close()
		two.Close()
	})
}

// A place whose holder has died is found when it expires.
func TestWaitForExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, done := newFlights(t, "rules: [{id: api, key: user, concurrency: 1, hold_ttl: 3s, wait: 10s}]", nil), make(chan visit, 9)
		req := alice
		testkit.OK(t, f.Check(t.Context(), &req, &f.v))
		f.arrive(t.Context(), done, "first", alice)
		v := <-done
		if !v.allowed || v.waited.Truncate(time.Millisecond) != 3*time.Second {
			t.Fatalf("%+v", v)
		}
		// A refund is found at once, too.
		end(v.hold)
		testkit.OK(t, f.Check(t.Context(), &req, &f.v))
		f.arrive(t.Context(), done, "second", alice)
		testkit.OK(t, f.Refund(t.Context(), &f.v))
		end(next(t, done, "second", true).hold)
		f.Close()
	})
}

// Who is denied by a rate does not wait, wherever that is found out.
func TestWaitDoesNotHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := now()
		f, other, done := newFlights(t, waitingRate, store), newFlights(t, waitingRate, store), make(chan visit, 9)
		hold := f.begin(alice)
		f.arrive(t.Context(), done, "first", alice)
		f.arrive(t.Context(), done, "second", alice)
		none(t, done)
		req := rule.Request{User: "alice", Cost: 3}
		testkit.OK(t, other.Charge(t.Context(), &req, &other.v))
		f.arrive(t.Context(), done, "third", alice)
		if d := next(t, done, "third", false).denial; len(d.Policies) != 2 || d.RetryAfter < 50*time.Minute {
			t.Errorf("%+v", d)
		}
		end(hold)
		synctest.Wait()
		for range 2 { // in any order
			if v := <-done; v.who == "third" || v.allowed || len(v.denial.Policies) != 1 || v.denial.Policies[0] != "api:1h" {
				t.Errorf("%+v", v)
			}
		}
		f.arrive(t.Context(), done, "fourth", alice)
		next(t, done, "fourth", false)
		f.mustLeave(0, 1)
		f.Close()
		other.Close()
	})
}

// A request that several rules let wait stands in one line after the other, and has in each the
// position of its arrival. Who waits for a place of one rule is in nobody's way elsewhere.
func TestWaitSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rules = `
rules:
  - {id: all, key: global, concurrency: 2, wait: 10s}
  - {id: each, key: user, concurrency: 1, wait: 5s}
`
		store := now()
		one, two, done := newFlights(t, rules, store), newFlights(t, rules, store), make(chan visit, 9)
		hold := two.begin(alice)
		one.arrive(t.Context(), done, "alice", alice)
		none(t, done)
		one.arrive(t.Context(), done, "bob", rule.Request{User: "bob"})
		bob := next(t, done, "bob", true)
		one.arrive(t.Context(), done, "carol", rule.Request{User: "carol"})
		one.arrive(t.Context(), done, "ellen", rule.Request{User: "ellen"})
		end(hold)
		hold = two.begin(rule.Request{User: "dave"})
		time.Sleep(time.Second) // alice finds out that now there is no place for all
		none(t, done)
		end(bob.hold)
		carol := next(t, done, "carol", true)
		none(t, done)
		end(carol.hold)
		alices := next(t, done, "alice", true)
		none(t, done)
		end(alices.hold)
		ellen := next(t, done, "ellen", true)

		// The least patient rule counts.
		one.arrive(t.Context(), done, "late", alice)
		time.Sleep(5*time.Second - 1)
		none(t, done)
		time.Sleep(time.Nanosecond)
		next(t, done, "late", false)
		end(ellen.hold)
		end(hold)
		one.Close()
		two.Close()
	})
}

// Only the last denial counts as one.
func TestWaitCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, done := newFlights(t, `
rules:
  - {id: all, key: global, concurrency: 1, wait: {up_to: 5s, queued: 1}}
  - {id: login, key: user, limit: 10/1h, algorithm: fixed_window, count_denied: true}
`, nil), make(chan visit, 9)
		hold := f.begin(alice)
		f.arrive(t.Context(), done, "first", alice)
		time.Sleep(4 * time.Second)
		f.mustLeave(9)
		f.arrive(t.Context(), done, "full", alice)
		next(t, done, "full", false)
		f.mustLeave(8)
		time.Sleep(time.Second)
		next(t, done, "first", false)
		f.mustLeave(7)
		end(hold)
		end(f.begin(alice))
		f.Close()
	})
}

// A penalty starts with the denial, not before, and then nobody waits.
func TestWaitPenalty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, done := newFlights(t, "rules: [{id: api, key: user, concurrency: 1, wait: 5s, penalty: 1m}]", nil), make(chan visit, 9)
		hold := f.begin(alice)
		f.arrive(t.Context(), done, "first", alice)
		time.Sleep(3 * time.Second)
		f.arrive(t.Context(), done, "second", alice)
		time.Sleep(2 * time.Second)
		next(t, done, "first", false)
		if v := next(t, done, "second", false); !v.results[0].Penalty {
			t.Errorf("%+v", v)
		}
		end(hold)
		f.Close()
	})
}

// Without the store, on_failure decides, and nobody waits.
func TestWaitDegraded(t *testing.T) {
	for policy, allowed := range map[string]bool{"local": true, "open": true, "closed": false} {
		synctest.Test(t, func(t *testing.T) {
			store := &failing{Store: now()}
			f, done := newFlights(t, "rules: [{id: api, key: user, concurrency: 1, wait: 5s, on_failure: "+policy+"}]", store), make(chan visit, 9)
			defer end(f.begin(alice))
			f.arrive(t.Context(), done, "first", alice)
			none(t, done)
			store.lost.Store(true)
			time.Sleep(time.Second)
			first := next(t, done, "first", allowed)
			f.arrive(t.Context(), done, "second", alice)
			next(t, done, "second", policy == "open")
			if first.hold != nil {
				end(first.hold)
			}
			f.Close()
		})
	}
}

// What the store has said before it was lost is no answer: an open rule has no numbers then.
func TestWaitForgetsWhatWasSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failing{Store: now()}
		f := newFlights(t, "rules: [{id: api, key: user, concurrency: 1, wait: 5s}]", store)
		defer end(f.begin(alice))
		time.AfterFunc(time.Second, func() { store.lost.Store(true) })
		req := alice
		var v engine.Verdict
		ok, err := f.gate.Allow(t.Context(), &req, &v, &f.denial)
		if err != nil || !ok || v.Degraded == nil || v.RetryAfter != 0 || v.Speaker() != nil || v.Results[0].Asked {
			t.Errorf("%v %v, retry after %v, %+v", ok, err, v.RetryAfter, v.Results)
		}
	})
}

// panicking is a store that panics when it is told to.
type panicking struct {
	weir.Store
	now bool
}

func (p *panicking) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if p.now {
		p.now = false
		panic("broken")
	}
	return p.Store.Take(ctx, dst, ops...)
}

// After a panic, the next one goes on.
func TestWaitPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &panicking{Store: now()}
		f, done := newFlights(t, waiting, store), make(chan visit, 9)
		hold, first := f.begin(alice), make(chan visit, 1) // the next may be decided before it has ended
		go func() {
			defer func() { first <- visit{who: "panicked", allowed: recover() != nil} }()
			var v engine.Verdict
			var d engine.Denial
			req := alice
			_, _ = f.gate.Allow(t.Context(), &req, &v, &d)
		}()
		synctest.Wait()
		f.arrive(t.Context(), done, "next", alice)
		store.now = true
		end(hold)
		next(t, first, "panicked", true)
		end(next(t, done, "next", true).hold)
		if got := f.gate.Delayed(); got != 0 {
			t.Errorf("%d wait", got)
		}
		f.Close()
	})
}

// A check never waits, and neither does a shadow rule.
func TestWaitNever(t *testing.T) {
	f := newFlights(t, "rules: [{id: api, key: user, concurrency: 1, wait: 1m}, {id: trial, key: global, concurrency: 1, wait: 1m, mode: shadow}]", nil)
	defer end(f.begin(alice))
	req, bob := alice, rule.Request{User: "bob"}
	if testkit.OK(t, f.Check(t.Context(), &req, &f.v)); f.v.Allowed {
		t.Error("allowed")
	}
	if testkit.OK(t, f.Reserve(t.Context(), &req, 0, &f.v)); f.v.Allowed {
		t.Error("allowed")
	}
	end(f.begin(bob))
}

// Instances wait for each other's places in Redis.
func TestWaitInRedis(t *testing.T) {
	server := testredis.Start(t)
	open := func() *flights {
		s := testkit.Must(redis.Open("redis://" + server.Addr + "?timeout=10s"))(t)
		t.Cleanup(s.Close)
		return newFlights(t, "rules: [{id: api, key: user, concurrency: 2, hold_ttl: 1h, wait: 1m, limit: 100/1h, count: {status: 500}}]", s)
	}
	instances := []*flights{open(), open()}
	served := make(chan error, 40)
	var running atomic.Int64
	for i := range cap(served) {
		go func() {
			f, req := instances[i%2], alice
			var v engine.Verdict
			var d engine.Denial
			ok, err := f.gate.Reserve(t.Context(), &req, time.Minute, &v, &d)
			if err != nil || !ok {
				served <- errors.Join(err, errors.New("denied: "+d.Detail))
				return
			}
			if running.Add(1) > 2 {
				err = errors.New("a third was allowed")
			}
			h := f.gate.Serve(&req, time.Minute, &v)
			running.Add(-1)
			end(h)
			served <- err
		}()
	}
	for range cap(served) {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	instances[0].mustLeave(100, 2)
}

// A request that has to leave places for others holds up none of these: each priority has a line.
func TestWaitByPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, done := newFlights(t, "rules: [{id: api, key: user, concurrency: 4, wait: 10s, shares: {low: 50%}}]", nil), make(chan visit, 9)
		as := func(p rule.Priority) rule.Request { return rule.Request{User: "alice", Priority: p} }
		holds := []*engine.Hold{f.begin(as(rule.Low)), f.begin(as(rule.Low))}
		f.arrive(t.Context(), done, "low", as(rule.Low)) // and waits, although two places are left
		none(t, done)
		for range 2 {
			f.arrive(t.Context(), done, "high", as(rule.High))
			holds = append(holds, next(t, done, "high", true).hold)
		}
		f.arrive(t.Context(), done, "second low", as(rule.Low))
		f.arrive(t.Context(), done, "critical", as(rule.Critical))
		none(t, done)
		end(holds[0])
		holds[0] = next(t, done, "critical", true).hold
		end(holds[0])
		end(holds[1])
		none(t, done)
		end(holds[2])
		holds[2] = next(t, done, "low", true).hold
		end(holds[2])
		end(next(t, done, "second low", true).hold)
		end(holds[3])
		f.Close()
	})
}
