package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/queue"
)

// testBytes: any bytes are a payload, an ID and a reason.
func testBytes(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{}))
	words := []string{
		"", "0", "-1", " ", "a b", "a\nb", "\r\n", "\x00", "a\x00b", "\x00\x00", "\xff\xfe", "é", "{a}", "-", "3 abc", "%d", "nil", "*",
		strings.Repeat("x", queue.MaxIDLen), "\x00" + strings.Repeat(" ", queue.MaxIDLen-1),
	}
	for _, w := range words {
		p := testkit.Must(o.Store.Push(t.Context(), "q", queue.Work{Payload: []byte(w), ID: w}))(o.t)
		is(t, "duplicate", p.Duplicate, false)
	}
	for _, w := range words {
		o.pass(1)
		l := o.leaseOf(w)
		is(t, "ID", l.ID, w)
		testkit.Must(o.Store.Nack(t.Context(), "q", l.Token, queue.Failure{Reason: w, Bury: true}))(o.t)
	}
	for i, l := range o.letters(0, 100) {
		is(t, "payload", string(l.Payload), words[i])
		is(t, "ID", l.ID, words[i])
		is(t, "reason", l.Reason, queue.Cut(words[i]))
	}
}

// testLarge: the longest payload fits, and an answer holds only so many.
func testLarge(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{MaxPayload: queue.MaxPayload}))
	large := bytes.Repeat([]byte{0, '\n', 0xff, 'x'}, queue.MaxPayload/4)
	for range 3 {
		testkit.Must(o.Store.Push(t.Context(), "q", queue.Work{Payload: large}))(o.t)
	}
	for range 3 {
		o.pass(10)
		b := o.ask(queue.Ask{Max: 10, Ahead: time.Second})
		is(t, "leases in one answer", len(b.Leases), 1)
		is(t, "payload", bytes.Equal(b.Leases[0].Payload, large), true)
		testkit.Must(o.Store.Nack(t.Context(), "q", b.Leases[0].Token, queue.Failure{Bury: true}))(o.t)
	}
	is(t, "letters in one answer", len(o.letters(0, 10)), 1)
}

// testBadInput: an error that says why, and nothing has happened.
func testBadInput(t *testing.T, open opener) {
	o := openOne(t, open, queue.Settings{N: 1, Period: time.Second, MaxPayload: 10})
	ctx := t.Context()
	pushed := func(w queue.Work) error { return testkit.Err(o.Store.Push(ctx, "q", w)) }
	leased := func(a queue.Ask) error { return testkit.Err(o.Store.Lease(ctx, "q", a)) }
	listed := func(after int64, limit int) error { return testkit.Err(o.Store.DeadLetters(ctx, "q", after, limit)) }
	for _, c := range []struct {
		err   error
		field string
	}{
		{pushed(queue.Work{Payload: make([]byte, 11)}), "payload"},
		{pushed(queue.Work{ID: strings.Repeat("x", queue.MaxIDLen+1)}), "id"},
		{leased(queue.Ask{Max: -1}), "max"},
		{leased(queue.Ask{Max: queue.MaxBatch + 1}), "max"},
		{leased(queue.Ask{Ahead: -1}), "ahead"},
		{leased(queue.Ask{Ahead: queue.MaxAhead + 1}), "ahead"},
		{listed(-1, 1), "after"},
		{listed(1<<53, 1), "after"},
		{listed(0, 0), "limit"},
		{listed(0, queue.MaxBatch+1), "limit"},
		{testkit.Err(o.Store.Requeue(ctx, "q", 0)), "numbers"},
		{testkit.Err(o.Store.Delete(ctx, "q", 1<<53)), "numbers"},
		{testkit.Err(o.Store.Requeue(ctx, "q", make([]int64, queue.MaxBatch+1)...)), "numbers"},
	} {
		if invalid, ok := errors.AsType[*weir.InvalidError](c.err); !ok || invalid.Field != c.field {
			t.Errorf("%v, want one about %s", c.err, c.field)
		}
	}
	is(t, "stats", o.stats(), queue.Stats{Capacity: queue.DefaultCapacity})

	for what, err := range o.all(ctx, "other") {
		if !errors.Is(err, queue.ErrNoQueue) {
			t.Errorf("%s of a queue that was not declared: %v", what, err)
		}
	}
}

// all calls everything there is.
func (o *one) all(ctx context.Context, name string) map[string]error {
	token := queue.Token(1, strings.Repeat("a", 32))
	all := o.withToken(ctx, name, token)
	all["Push"] = testkit.Err(o.Store.Push(ctx, name, queue.Work{}))
	all["Lease"] = testkit.Err(o.Store.Lease(ctx, name, queue.Ask{}))
	all["Stats"] = testkit.Err(o.Store.Stats(ctx, name))
	all["DeadLetters"] = testkit.Err(o.Store.DeadLetters(ctx, name, 0, 1))
	all["Requeue"] = testkit.Err(o.Store.Requeue(ctx, name, 1))
	all["Delete"] = testkit.Err(o.Store.Delete(ctx, name, 1))
	all["Watch"] = o.Store.Watch(ctx, name, func() {})
	return all
}

func testCancelled(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range o.all(ctx, "q") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that has ended: %v", what, err)
		}
	}
	is(t, "length", o.stats().Length(), 0)
}

// testTogether: many push and lease at once; none is lost, none is leased twice, and none
// is too many.
func testTogether(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{Capacity: 200}))
	var accepted, full atomic.Int64
	var all sync.WaitGroup
	for g := range 10 {
		all.Go(func() {
			for i := range 30 {
				_, err := o.Store.Push(t.Context(), "q", queue.Work{Payload: fmt.Appendf(nil, "%d/%d", g, i)})
				switch {
				case err == nil:
					accepted.Add(1)
				case errors.Is(err, queue.ErrFull):
					full.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	is(t, "accepted", accepted.Load(), 200)
	is(t, "full", full.Load(), 100)
	var mu sync.Mutex
	seen := map[string]int{}
	for range 10 {
		all.Go(func() {
			for {
				b, err := o.Store.Lease(t.Context(), "q", queue.Ask{Max: 7, Ahead: time.Second})
				if err != nil || len(b.Leases) == 0 {
					if err != nil {
						t.Error(err)
					}
					return
				}
				for _, l := range b.Leases {
					mu.Lock()
					seen[string(l.Payload)]++
					mu.Unlock()
					if err := o.Store.Ack(t.Context(), "q", l.Token); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	is(t, "leased", len(seen), 200)
	for payload, n := range seen {
		is(t, payload, n, 1)
	}
	is(t, "length", o.stats().Length(), 0)
}

// testWatch: a watcher of an empty queue is told about new work, wherever it comes
// from.
func testWatch(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{}))
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan struct{}, 1)
	ended := make(chan error)
	go func() {
		ended <- o.Store.Watch(ctx, "q", func() {
			select {
			case heard <- struct{}{}:
			default:
			}
		})
	}()
	late := time.After(10 * time.Second)
	hears := func(what string) {
		t.Helper()
		select {
		case <-heard:
		case <-late:
			t.Fatalf("%s is never heard of", what)
		}
	}
	// When it has begun to listen is not to be seen, so work comes and goes until it is
	// heard of.
	for waiting := true; waiting; {
		o.push("x")
		o.pass(1)
		select {
		case <-heard:
			waiting = false
		case <-late:
			t.Fatal("a push is never heard of")
		case <-time.After(10 * time.Millisecond):
		}
		o.ack(o.lease())
	}
	// Of what was said until then, some may be on its way.
	for quiet := false; !quiet; {
		select {
		case <-heard:
		case <-time.After(100 * time.Millisecond):
			quiet = true
		}
	}
	o.push("x")
	hears("a push")
	o.pass(1)
	testkit.OK(o.t, o.Store.Return(t.Context(), "q", o.lease().Token))
	hears("a return")
	l := o.lease()
	o.nack(l, "")
	hears("a failure")
	o.pass(2 * second)
	testkit.Must(o.Store.Nack(t.Context(), "q", o.lease().Token, queue.Failure{Bury: true}))(o.t)
	if n, err := o.Store.Requeue(t.Context(), "q", l.Number); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	hears("a dead letter that is pushed again")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch ended with %v", err)
	}
}
