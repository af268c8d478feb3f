package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/queue"
)

// line is a way to a store that can be cut. What is asked before it is cut happens;
// with deaf, the call happens but its answer is lost.
type line struct {
	queue.Store
	mu   sync.Mutex
	cut  bool
	deaf bool
}

func (l *line) set(cut, deaf bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.deaf = cut, deaf
}

func (l *line) over(f func() error) error {
	l.mu.Lock()
	cut, deaf := l.cut, l.deaf
	l.mu.Unlock()
	if cut {
		return queue.ErrUnavailable
	}
	err := f()
	if deaf {
		return queue.ErrUnavailable
	}
	return err
}

func (l *line) Lease(ctx context.Context, name string, a queue.Ask) (b queue.Batch, err error) {
	err = l.over(func() (err error) { b, err = l.Store.Lease(ctx, name, a); return err })
	if err != nil {
		b = queue.Batch{}
	}
	return b, err
}

func (l *line) Ack(ctx context.Context, name, token string) error {
	return l.over(func() error { return l.Store.Ack(ctx, name, token) })
}

func (l *line) Nack(ctx context.Context, name, token string, f queue.Failure) (o queue.Outcome, err error) {
	err = l.over(func() (err error) { o, err = l.Store.Nack(ctx, name, token, f); return err })
	return o, err
}

func (l *line) Extend(ctx context.Context, name, token string) (d time.Duration, err error) {
	err = l.over(func() (err error) { d, err = l.Store.Extend(ctx, name, token); return err })
	return d, err
}

func (l *line) Return(ctx context.Context, name, token string) error {
	return l.over(func() error { return l.Store.Return(ctx, name, token) })
}

// While the store is unavailable Run asks again, less and less often, and goes on when it is back.
func TestRunWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, queue.Settings{N: 10, Period: time.Second})
		way := &line{Store: s.store, cut: true}
		s.push("a")
		defer s.run(way, func(_ context.Context, l queue.Lease) error { s.say("%s", l.Payload); return nil }, queue.RunOptions{})()
		time.Sleep(time.Minute)
		way.set(false, false)
		time.Sleep(2 * time.Second)
		s.mu.Lock()
		asked, did := len(s.reports), len(s.log)
		s.mu.Unlock()
		if asked < 40 || asked > 100 || did != 1 {
			t.Errorf("it was asked %d times in a minute, and %d were done", asked, did)
		}
		s.empty()
	})
}

// What was done while the store was unavailable is acknowledged when it is back, and not done again.
func TestRunAcknowledgesLater(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newShop(t, queue.Settings{N: 10, Period: time.Second, Visibility: 10 * time.Second})
			way := &line{Store: s.store}
			s.push("a")
			defer s.run(way, func(_ context.Context, l queue.Lease) error {
				s.say("%s", l.Payload)
				way.set(!deaf, deaf)
				return nil
			}, queue.RunOptions{})()
			time.Sleep(5 * time.Second)
			way.set(false, false)
			time.Sleep(time.Minute)
			s.want("0s a")
			s.empty()
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, err := range s.reports {
				if errors.Is(err, queue.ErrLost) {
					t.Errorf("reported: %v", err)
				}
			}
		})
	}
}

// A worker whose lease goes to another is told so, and does not speak for it any more.
func TestRunLosesALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, queue.Settings{N: 10, Period: time.Second, Visibility: 3 * time.Second})
		way := &line{Store: s.store}
		s.push("a")
		stop := s.run(way, func(ctx context.Context, _ queue.Lease) error {
			way.set(true, false)
			<-ctx.Done()
			s.say("%v", context.Cause(ctx))
			return nil
		}, queue.RunOptions{})
		time.Sleep(3 * time.Second)
		b, err := s.store.Lease(t.Context(), "q", queue.Ask{})
		if err != nil || len(b.Leases) != 1 || b.Leases[0].Tries != 2 {
			t.Fatalf("%+v, %v", b, err)
		}
		way.set(false, false)
		time.Sleep(2 * time.Second)
		stop()
		if len(s.log) != 1 || !strings.HasSuffix(s.log[0], queue.ErrLost.Error()) {
			t.Errorf("%q", s.log)
		}
		if err := s.store.Ack(t.Context(), "q", b.Leases[0].Token); err != nil {
			t.Errorf("the other worker: %v", err)
		}
	})
}

// A lease of which the answer was lost goes to another when its time is over.
func TestRunNeverHearsOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, queue.Settings{N: 10, Period: time.Second, Visibility: 3 * time.Second})
		way := &line{Store: s.store, deaf: true}
		s.push("a")
		defer s.run(way, func(_ context.Context, l queue.Lease) error { s.say("%s %d", l.Payload, l.Tries); return nil }, queue.RunOptions{})()
		time.Sleep(time.Second)
		way.set(false, false)
		time.Sleep(10 * time.Second)
		s.want("3s a 2")
		s.empty()
	})
}

// slow is a store that is stopped during a Lease. Like a store behind a network, it
// loses the leases if the caller no longer waits.
type slow struct {
	queue.Store
	stop func()
}

func (s *slow) Lease(ctx context.Context, name string, a queue.Ask) (queue.Batch, error) {
	b, err := s.Store.Lease(ctx, name, a)
	s.stop()
	if ctx.Err() != nil {
		return queue.Batch{}, ctx.Err()
	}
	return b, err
}

// What is leased in the moment of the stop is returned, too.
func TestRunStopsWhileLeasing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, queue.Settings{N: 10, Period: time.Second})
		s.push("a", "b")
		ctx, cancel := context.WithCancel(t.Context())
		handler := func(_ context.Context, l queue.Lease) error { s.say("%s", l.Payload); return nil }
		if err := queue.Run(ctx, &slow{s.store, cancel}, "q", handler, queue.RunOptions{Workers: 2}); err != nil {
			t.Error(err)
		}
		s.want()
		if st := s.stats(); st.Ready != 2 || st.Leased != 0 {
			t.Errorf("%+v", st)
		}
	})
}
