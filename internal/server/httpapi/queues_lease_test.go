package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/queue"
	"github.com/weirhq/weir/queue/memory"
	"github.com/weirhq/weir/queue/redis"
)

// line is an API of which one can wait for work, and that can be stopped.
type line struct {
	*stand
	stop func()
}

// inBubble runs a test of which the time passes by itself, with queues in memory.
func inBubble(t *testing.T, test func(*testing.T, *line, *memory.Store)) {
	synctest.Test(t, func(t *testing.T) {
		queues, err := memory.New(testQueues, memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		stopping := make(chan struct{})
		test(t, &line{newStand(t, Options{Queues: queues, Stopping: stopping}), func() { close(stopping) }}, queues)
	})
}

func push(t *testing.T, s queue.Store, name, payload string) {
	t.Helper()
	if _, err := s.Push(t.Context(), name, queue.Work{Payload: []byte(payload)}); err != nil {
		t.Fatal(err)
	}
}

// A waiting call is answered as soon as an item may be leased, and not before.
func TestLeaseWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, s *line, queues *memory.Store) {
		var wg sync.WaitGroup
		lease := func(body string, want string, after time.Duration) {
			begun := time.Now()
			wg.Go(func() {
				var a LeaseAnswer
				s.call("POST /v1/queues/mail/lease", body).want(t, 200, &a)
				got := ""
				for _, l := range a.Leases {
					got += *l.Payload
				}
				if took := time.Since(begun); got != want || took != after {
					t.Errorf("%s: %q after %v, want %q after %v", body, got, took, want, after)
				}
			})
		}
		lease(`{"wait_s":20}`, "a", 7*time.Second)
		time.Sleep(7 * time.Second)
		synctest.Wait()
		push(t, queues, "mail", "a")
		wg.Wait()

		// The next turn is a tenth of a second later, and then there is nothing until
		// time is over.
		push(t, queues, "mail", "b")
		lease(`{"wait_s":1,"max":9}`, "b", 100*time.Millisecond)
		wg.Wait()
		lease(`{"wait_s":3}`, "", 3*time.Second)
		lease(`{}`, "", 0)
		wg.Wait()

		// What is pushed before anybody listens is found all the same.
		s.options.Queues = &interrupted{queues, sync.OnceFunc(func() { push(t, queues, "mail", "c") })}
		lease(`{"wait_s":20}`, "c", firstLook)
		wg.Wait()
		if n := s.waiting.Load(); n != 0 {
			t.Errorf("%d are said to wait", n)
		}
	})
}

// A server that stops sends those home who wait for work.
func TestLeaseStops(t *testing.T) {
	inBubble(t, func(t *testing.T, s *line, _ *memory.Store) {
		begun := time.Now()
		time.AfterFunc(2*time.Second, s.stop)
		s.call("POST /v1/queues/mail/lease", `{"wait_s":20}`).want(t, 200, nil)
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A client that goes away waits no longer, and takes nothing with it.
func TestLeaseOfWhoLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T, s *line, queues *memory.Store) {
		ctx, leave := context.WithCancel(t.Context())
		begun := time.Now()
		time.AfterFunc(2*time.Second, leave)
		w := leaseIn(ctx, s)
		if took := time.Since(begun); took != 2*time.Second || w.Code != statusClientGone || s.waiting.Load() != 0 {
			t.Errorf("%d after %v", w.Code, took)
		}
	})
	inBubble(t, func(t *testing.T, s *line, queues *memory.Store) {
		ctx, leave := context.WithCancel(t.Context())
		s.options.Queues = &interrupted{queues, leave}
		push(t, queues, "mail", "a")
		if w := leaseIn(ctx, s); w.Code != statusClientGone || strings.Contains(w.Body.String(), "token") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		stats, err := queues.Stats(t.Context(), "mail")
		if err != nil || stats.Ready != 1 || stats.Leased != 0 || stats.Wait != 0 {
			t.Errorf("%+v, %v", stats, err)
		}
	})
}

// interrupted is a store while whose answer something else happens.
type interrupted struct {
	queue.Store
	happens func()
}

func (i *interrupted) Lease(ctx context.Context, name string, ask queue.Ask) (queue.Batch, error) {
	defer i.happens()
	return i.Store.Lease(ctx, name, ask)
}

func leaseIn(ctx context.Context, h http.Handler) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/queues/mail/lease", strings.NewReader(`{"wait_s":20}`))
	r.Host, r.RemoteAddr = "127.0.0.1:8080", "127.0.0.1:50000"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// However many wait, some are told to come again; who does not wait is served.
func TestLeaseWaitingIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, s *line, queues *memory.Store) {
		var wg sync.WaitGroup
		for range maxWaiting {
			wg.Go(func() { s.call("POST /v1/queues/mail/lease", `{"wait_s":5}`).want(t, 200, nil) })
		}
		synctest.Wait()
		r := s.call("POST /v1/queues/mail/lease", `{"wait_s":5}`)
		if r.wantProblem(t, fault.Busy); r.Header.Get("Retry-After") != "1" {
			t.Errorf("%v", r.Header)
		}
		s.call("POST /v1/queues/mail/lease", `{}`).want(t, 200, nil)
		wg.Wait()
		if n := s.waiting.Load(); n != 0 {
			t.Errorf("%d are said to wait", n)
		}
	})
}

// Over the wire and with Redis: a push of another process wakes who waits, and who hangs
// up is noticed.
func TestLeaseWaitsForRedis(t *testing.T) {
	server := testredis.Start(t)
	settings := map[string]queue.Settings{"mail": {N: 1000, Period: time.Second}}
	open := func() queue.Store {
		store, err := redis.New(clientOf(t, server), settings, redis.Options{Timeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	s := newStand(t, Options{Queues: open()}).serve()
	answered := make(chan LeaseAnswer, 1)
	go func() {
		var a LeaseAnswer
		s.call("POST /v1/queues/mail/lease", `{"wait_s":20}`).want(t, 200, &a)
		answered <- a
	}()
	waitFor(t, func() bool { return s.waiting.Load() == 1 })
	push(t, open(), "mail", "a")
	if a := <-answered; len(a.Leases) != 1 || *a.Leases[0].Payload != "a" {
		t.Errorf("%+v", a)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", s.server.URL+"/v1/queues/mail/lease", strings.NewReader(`{"wait_s":20}`))
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		if answer, err := s.server.Client().Do(r); err == nil {
			answer.Body.Close()
			t.Errorf("it was answered %d", answer.StatusCode)
		}
	}()
	waitFor(t, func() bool { return s.waiting.Load() == 1 })
	hangUp()
	<-left
	waitFor(t, func() bool { return s.waiting.Load() == 0 })
}

// waitFor waits until something is so, which it is soon.
func waitFor(t testing.TB, so func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !so() {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
		time.Sleep(time.Millisecond)
	}
}
