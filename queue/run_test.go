package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/queue"
	"github.com/weirhq/weir/queue/memory"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

// shop is a queue with a record of what its workers did. It uses the time of synctest.
type shop struct {
	t     *testing.T
	store *memory.Store
	began time.Time

	mu      sync.Mutex
	log     []string
	reports []error
}

func newShop(t *testing.T, s queue.Settings) *shop {
	t.Helper()
	store, err := memory.New(map[string]queue.Settings{"q": s}, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &shop{t: t, store: store, began: time.Now()}
}

func (s *shop) push(payloads ...string) {
	s.t.Helper()
	for _, p := range payloads {
		if _, err := s.store.Push(s.t.Context(), "q", queue.Work{Payload: []byte(p)}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// say notes what happens and when.
func (s *shop) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf("%v ", time.Since(s.began).Truncate(time.Microsecond))+fmt.Sprintf(format, args...))
}

func (s *shop) report(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, err)
}

// run begins to work, and returns how to stop it.
func (s *shop) run(store queue.Store, handler queue.Handler, o queue.RunOptions) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	o.Report = s.report
	done := make(chan error, 1)
	go func() { done <- queue.Run(ctx, store, "q", handler, o) }()
	return func() {
		s.t.Helper()
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("Run = %v", err)
		}
	}
}

func (s *shop) want(lines ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.log, lines) {
		s.t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(s.log, "\n\t"), strings.Join(lines, "\n\t"))
	}
}

func (s *shop) stats() queue.Stats {
	s.t.Helper()
	st, err := s.store.Stats(s.t.Context(), "q")
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

func (s *shop) empty() {
	s.t.Helper()
	if st := s.stats(); st.Length() != 0 || st.Dead != 0 {
		s.t.Errorf("the queue is not empty: %+v", st)
	}
}

// Several processes with several workers begin items at the very pace, in order.
func TestRunKeepsThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, queue.Settings{N: 8, Period: time.Second})
		handler := func(_ context.Context, l queue.Lease) error {
			s.say("%s", l.Payload)
			time.Sleep(400 * time.Millisecond) // is the work
			return nil
		}
		var want []string
		for i := range 40 {
			s.push(fmt.Sprint(i))
			want = append(want, fmt.Sprintf("%v %d", time.Duration(i)*125*time.Millisecond, i))
		}
		var stops []func()
		for range 3 {
			stops = append(stops, s.run(s.store, handler, queue.RunOptions{Workers: 2}))
		}
		time.Sleep(6 * time.Second)
		for _, stop := range stops {
			stop()
		}
		s.want(want...)
		s.empty()
	})
}

// Fewer workers than the pace needs do what they can.
func TestRunWithTooFewWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, queue.Settings{N: 10, Period: time.Second})
		s.push("a", "b", "c")
		defer s.run(s.store, func(_ context.Context, l queue.Lease) error {
			s.say("%s", l.Payload)
			time.Sleep(time.Second)
			return nil
		}, queue.RunOptions{})()
		time.Sleep(4 * time.Second)
		s.want("0s a", "1s b", "2s c")
		s.empty()
	})
}

// A worker that waits for an empty queue begins at once when something is pushed.
func TestRunWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, queue.Settings{N: 10, Period: time.Second})
		defer s.run(s.store, func(_ context.Context, l queue.Lease) error {
			s.say("%s", l.Payload)
			return nil
		}, queue.RunOptions{Poll: time.Minute})()
		time.Sleep(1234 * time.Millisecond)
		s.push("a")
		time.Sleep(time.Second)
		s.push("b")
		synctest.Wait()
		s.want("1.234s a", "2.234s b")
	})
}

// What has failed is tried again, twice as late each time, and is dead after so many tries;
// or at once, if the handler says so.
func TestRunRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, queue.Settings{N: 100, Period: time.Second, MaxTries: 3, Backoff: 2 * time.Second})
		s.push("bad", "hopeless", "wild", "good")
		stop := s.run(s.store, func(_ context.Context, l queue.Lease) error {
			s.say("%s %d", l.Payload, l.Tries)
			switch string(l.Payload) {
			case "bad":
				return errors.New("it is bad")
			case "hopeless":
				return fmt.Errorf("really: %w", queue.Bury(errors.New("it is hopeless")))
			case "wild":
				if l.Tries == 1 {
					panic("wild")
				}
			}
			return nil
		}, queue.RunOptions{})
		time.Sleep(time.Minute)
		stop()
		s.want("0s bad 1", "10ms hopeless 1", "20ms wild 1", "30ms good 1", "2s bad 2", "2.02s wild 2", "6s bad 3")
		letters, err := s.store.DeadLetters(t.Context(), "q", 0, 10)
		if err != nil || len(letters) != 2 || letters[0].Reason != "it is bad" || letters[0].Tries != 3 ||
			letters[1].Reason != "really: it is hopeless" || letters[1].Tries != 1 {
			t.Errorf("%+v, %v", letters, err)
		}
		if len(s.reports) != 1 || !strings.Contains(s.reports[0].Error(), "the handler panicked: wild\n") {
			t.Errorf("reports: %v", s.reports)
		}
		if st := s.stats(); st.Length() != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A handler that takes longer than the visibility time keeps its item.
func TestRunExtends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, queue.Settings{N: 100, Period: time.Second, Visibility: time.Second})
		s.push("a")
		defer s.run(s.store, func(_ context.Context, l queue.Lease) error {
			s.say("%s", l.Payload)
			time.Sleep(20 * time.Second)
			return nil
		}, queue.RunOptions{Workers: 3})()
		time.Sleep(time.Minute)
		s.want("0s a")
		s.empty()
	})
}

// A handler that takes longer than it may is told, and the item has failed.
func TestRunTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, queue.Settings{N: 100, Period: time.Second, MaxTries: 1})
		s.push("a")
		defer s.run(s.store, func(ctx context.Context, _ queue.Lease) error {
			<-ctx.Done()
			s.say("%v", ctx.Err())
			return ctx.Err()
		}, queue.RunOptions{Timeout: 3 * time.Second})()
		time.Sleep(time.Minute)
		s.want("3s context deadline exceeded")
		if st := s.stats(); st.Dead != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// Stopped, Run returns what it holds, waits for what has begun, and the turns that were
// held are free again.
func TestRunStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, queue.Settings{N: 1, Period: time.Second})
		s.push("a", "b", "c", "d")
		stop := s.run(s.store, func(_ context.Context, l queue.Lease) error {
			s.say("%s begins", l.Payload)
			time.Sleep(5 * time.Second)
			s.say("%s ends", l.Payload)
			return nil
		}, queue.RunOptions{Workers: 4, Ahead: 3 * time.Second})
		time.Sleep(500 * time.Millisecond)
		if st := s.stats(); st.Leased != 4 {
			t.Errorf("before the stop: %+v", st)
		}
		stop()
		s.want("0s a begins", "5s a ends")
		if st := s.stats(); st.Ready != 3 || st.Leased != 0 {
			t.Errorf("after the stop: %+v", st)
		}
		if b, err := s.store.Lease(t.Context(), "q", queue.Ask{}); err != nil || len(b.Leases) != 1 || string(b.Leases[0].Payload) != "b" || b.Leases[0].Tries != 1 {
			t.Errorf("the next is %+v, %v", b, err)
		}
	})
}

// The turns of what is returned are free at once.
func TestRunGivesTurnsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, queue.Settings{N: 1, Period: time.Second})
		s.push("a", "b", "c", "d")
		handler := func(_ context.Context, l queue.Lease) error { s.say("%s", l.Payload); return nil }
		stop := s.run(s.store, handler, queue.RunOptions{Workers: 4, Ahead: 3 * time.Second})
		time.Sleep(500 * time.Millisecond)
		stop()
		defer s.run(s.store, handler, queue.RunOptions{})()
		time.Sleep(5 * time.Second)
		s.want("0s a", "1s b", "2s c", "3s d")
	})
}

// A handler that does not end in time is told to, and its item is tried again elsewhere.
func TestRunGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, queue.Settings{N: 1, Period: time.Second})
		s.push("a")
		stop := s.run(s.store, func(ctx context.Context, _ queue.Lease) error {
			<-ctx.Done()
			s.say("%v", context.Cause(ctx))
			return ctx.Err()
		}, queue.RunOptions{Grace: 4 * time.Second})
		time.Sleep(time.Second)
		stop()
		s.want("5s queue: the worker was told to stop")
		if st := s.stats(); st.Delayed != 1 {
			t.Errorf("%+v", st)
		}
	})
}

func TestRunRejectsNonsense(t *testing.T) {
	s := newShop(t, queue.Settings{N: 1, Period: time.Second})
	handler := func(context.Context, queue.Lease) error { return nil }
	for _, o := range []queue.RunOptions{
		{Workers: -1}, {Workers: queue.MaxWorkers + 1}, {Ahead: -1}, {Ahead: queue.MaxAhead + 1}, {Timeout: -1}, {Grace: -1}, {Poll: -1}, {Poll: time.Hour},
	} {
		if err := queue.Run(t.Context(), s.store, "q", handler, o); err == nil || !strings.Contains(err.Error(), "out of range") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := queue.Run(t.Context(), s.store, "other", handler, queue.RunOptions{}); !errors.Is(err, queue.ErrNoQueue) {
		t.Errorf("another queue: %v", err)
	}
	if err := queue.Run(t.Context(), s.store, "q", nil, queue.RunOptions{}); err == nil {
		t.Error("no handler is no error")
	}
}
