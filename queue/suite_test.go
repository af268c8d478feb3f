package queue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/queue"
	"github.com/weirhq/weir/queue/memory"
	"github.com/weirhq/weir/queue/redis"
)

// fake is a clock that tests set.
type fake struct{ now atomic.Int64 }

func (f *fake) Now() weir.Micros    { return weir.Micros(f.now.Load()) }
func (f *fake) Set(now weir.Micros) { f.now.Store(int64(now)) }

// subject is an empty store with a settable clock.
type subject struct {
	Store queue.Store
	Set   func(now weir.Micros)
}

// opener returns an empty store with these queues.
type opener func(t *testing.T, queues map[string]queue.Settings) subject

func TestMemory(t *testing.T) {
	runSuite(t, func(t *testing.T, queues map[string]queue.Settings) subject {
		var clock fake
		return subject{testkit.Must(memory.New(queues, memory.Options{Clock: clock.Now}))(t), clock.Set}
	})
}

func TestRedis(t *testing.T) {
	server := testredis.Start(t)
	client := testkit.Must(rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr}, DisableCache: true, DisableRetry: true, ForceSingleClient: true,
	}))(t)
	t.Cleanup(client.Close)
	const patience = 10 * time.Second // the race detector and a busy machine are slow
	runSuite(t, func(t *testing.T, queues map[string]queue.Settings) subject {
		testkit.OK(t, client.Do(t.Context(), client.B().Flushall().Build()).Error())
		var clock fake
		return subject{testkit.Must(redis.New(client, queues, redis.Options{Clock: clock.Now, Timeout: patience}))(t), clock.Set}
	})
}

// runSuite runs what every store of queues must pass.
func runSuite(t *testing.T, open opener) {
	for _, c := range []struct {
		name string
		test func(*testing.T, opener)
	}{
		{"pace is that of a shaping bucket", testPace},
		{"ahead of the release", testAhead},
		{"late workers", testLate},
		{"clock steps back", testClockStepsBack},
		{"fast and slow rates", testRates},
		{"order", testOrder},
		{"position and wait", testPosition},
		{"full", testFull},
		{"duplicates", testDuplicates},
		{"remembered", testRemembered},
		{"visibility", testVisibility},
		{"late but not lost", testLateAck},
		{"extend", testExtend},
		{"tokens", testTokens},
		{"return", testReturn},
		{"backoff", testBackoff},
		{"dead after k tries", testDeadAfterTries},
		{"bury", testBury},
		{"dead letters", testDeadLetters},
		{"dead letters are bounded", testDeadBounded},
		{"requeue", testRequeue},
		{"waiting", testWaiting},
		{"sweeping", testSweeping},
		{"stats", testStats},
		{"any bytes", testBytes},
		{"large payloads", testLarge},
		{"bad input", testBadInput},
		{"cancelled", testCancelled},
		{"together", testTogether},
		{"watch", testWatch},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

// start is where the clock of these tests begins.
var start = weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 7, 0, time.UTC))

const second = weir.Micros(1_000_000)

// one is a subject with one queue, named q, and its clock.
type one struct {
	subject
	t   *testing.T
	now weir.Micros
}

func openOne(t *testing.T, open opener, s queue.Settings) *one {
	t.Helper()
	o := &one{subject: open(t, map[string]queue.Settings{"q": s}), t: t}
	o.at(start)
	return o
}

func (o *one) at(now weir.Micros) {
	o.now = now
	o.Set(now)
}

func (o *one) pass(d weir.Micros) { o.at(o.now + d) }

func (o *one) push(payload string) queue.Pushed {
	o.t.Helper()
	return testkit.Must(o.Store.Push(o.t.Context(), "q", queue.Work{Payload: []byte(payload)}))(o.t)
}

func (o *one) pushID(id string) queue.Pushed {
	o.t.Helper()
	return testkit.Must(o.Store.Push(o.t.Context(), "q", queue.Work{Payload: []byte("of " + id), ID: id}))(o.t)
}

func (o *one) ask(a queue.Ask) queue.Batch {
	o.t.Helper()
	return testkit.Must(o.Store.Lease(o.t.Context(), "q", a))(o.t)
}

// lease expects exactly one item.
func (o *one) lease() queue.Lease {
	o.t.Helper()
	b := o.ask(queue.Ask{})
	if len(b.Leases) != 1 {
		o.t.Fatalf("at %d there are %d leases, want 1", o.now-start, len(b.Leases))
	}
	return b.Leases[0]
}

// leaseOf expects a certain item.
func (o *one) leaseOf(payload string) queue.Lease {
	o.t.Helper()
	l := o.lease()
	if string(l.Payload) != payload {
		o.t.Fatalf("%q was leased, want %q", l.Payload, payload)
	}
	return l
}

// none expects that nothing can be leased.
func (o *one) none() queue.Batch {
	o.t.Helper()
	b := o.ask(queue.Ask{Max: 3})
	if len(b.Leases) != 0 {
		o.t.Fatalf("%d after the start %q was leased, want nothing", o.now-start, b.Leases[0].Payload)
	}
	return b
}

func (o *one) ack(l queue.Lease) {
	o.t.Helper()
	testkit.OK(o.t, o.Store.Ack(o.t.Context(), "q", l.Token))
}

func (o *one) nack(l queue.Lease, reason string) queue.Outcome {
	o.t.Helper()
	return testkit.Must(o.Store.Nack(o.t.Context(), "q", l.Token, queue.Failure{Reason: reason}))(o.t)
}

func (o *one) stats() queue.Stats {
	o.t.Helper()
	return testkit.Must(o.Store.Stats(o.t.Context(), "q"))(o.t)
}

func (o *one) letters(after int64, limit int) []queue.DeadLetter {
	o.t.Helper()
	return testkit.Must(o.Store.DeadLetters(o.t.Context(), "q", after, limit))(o.t)
}

// withToken does all that can be done with a lease.
func (o *one) withToken(ctx context.Context, name, token string) map[string]error {
	return map[string]error{
		"Extend": testkit.Err(o.Store.Extend(ctx, name, token)),
		"Nack":   testkit.Err(o.Store.Nack(ctx, name, token, queue.Failure{})),
		"Return": o.Store.Return(ctx, name, token),
		"Ack":    o.Store.Ack(ctx, name, token),
	}
}

// lost expects that a lease is lost to all that can be done with it.
func (o *one) lost(token string) {
	o.t.Helper()
	for what, err := range o.withToken(o.t.Context(), "q", token) {
		if !errors.Is(err, queue.ErrLost) {
			o.t.Errorf("%s of %q: %v, want ErrLost", what, token, err)
		}
	}
}

// is compares what a test got and wants.
func is[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}
