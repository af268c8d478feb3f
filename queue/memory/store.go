// Package memory keeps queues in the process. To keep items across a restart, close the
// store so that it accepts nothing more, write a Snapshot, and Restore it before the
// first call of the next process. A crash loses what was accepted after the last
// snapshot; use queue/redis for work that must not be lost.
package memory

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/queue"
)

// Options configures a store. The zero value is ready to use.
type Options struct {
	// Clock returns the time. Default the system clock. If it steps back, the pace does
	// not change, and leases and backoffs last longer by the step.
	Clock func() weir.Micros
}

// Store keeps queues in memory. It is safe for concurrent use.
type Store struct {
	now   func() weir.Micros
	terms map[string]*queue.Terms

	mu     sync.Mutex
	lines  map[string]*line // of declared queues, and of those that a snapshot had work for
	closed bool
}

var _ queue.Store = (*Store)(nil)

// New returns a store with these queues, all empty.
func New(queues map[string]queue.Settings, o Options) (*Store, error) {
	terms, err := queue.Declare(queues)
	if err != nil {
		return nil, err
	}
	if o.Clock == nil {
		c := clock.New()
		o.Clock = func() weir.Micros { return weir.Micros(c.Now()) }
	}
	s := &Store{now: o.Clock, terms: terms, lines: map[string]*line{}}
	for name, t := range terms {
		s.lines[name] = newLine(t)
	}
	return s, nil
}

// Close makes every further call fail with queue.ErrClosed, except Snapshot, which then
// contains every accepted item that is not done.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// Terms implements queue.Store.
func (s *Store) Terms(name string) (*queue.Terms, error) {
	t := s.terms[name]
	if t == nil {
		return nil, queue.ErrNoQueue
	}
	return t, nil
}

// with runs f on a queue at one instant, when all that has become due by itself is
// cleared away, and wakes who waits if f says so.
func (s *Store) with(ctx context.Context, name string, f func(l *line, now weir.Micros) (wake bool, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	wakes, err := s.withLocked(name, f)
	for _, wake := range wakes {
		wake()
	}
	return err
}

// withLocked returns whom to wake once the lock is free.
func (s *Store) withLocked(name string, f func(*line, weir.Micros) (bool, error)) ([]func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terms[name] == nil {
		return nil, queue.ErrNoQueue
	}
	if s.closed {
		return nil, queue.ErrClosed
	}
	l, now := s.lines[name], s.now()
	l.sweep(now)
	wake, err := f(l, now)
	if len(l.items) == 0 {
		l.dropped = 0 // they are counted from zero again when nothing is left
	}
	if !wake {
		return nil, err
	}
	return slices.Collect(maps.Values(l.watchers)), err
}

// Push implements queue.Store.
func (s *Store) Push(ctx context.Context, name string, w queue.Work) (queue.Pushed, error) {
	var place queue.Pushed
	if t := s.terms[name]; t != nil {
		if err := t.CheckWork(w); err != nil {
			return place, err
		}
	}
	err := s.with(ctx, name, func(l *line, now weir.Micros) (wake bool, err error) {
		idle := len(l.ready) == 0
		place, err = l.push(w, now)
		return err == nil && idle && !place.Duplicate, err
	})
	return place, err
}

// Lease implements queue.Store.
func (s *Store) Lease(ctx context.Context, name string, ask queue.Ask) (queue.Batch, error) {
	var b queue.Batch
	ask, err := queue.CheckAsk(ask)
	if err != nil {
		return b, err
	}
	err = s.with(ctx, name, func(l *line, now weir.Micros) (bool, error) {
		b = l.lease(ask, now)
		return false, nil
	})
	return b, err
}

// Ack implements queue.Store.
func (s *Store) Ack(ctx context.Context, name, token string) error {
	return s.holding(ctx, name, token, true, func(l *line, i *item, now weir.Micros) (bool, error) {
		l.finish(i, now)
		return false, nil
	})
}

// Nack implements queue.Store.
func (s *Store) Nack(ctx context.Context, name, token string, f queue.Failure) (queue.Outcome, error) {
	var o queue.Outcome
	err := s.holding(ctx, name, token, false, func(l *line, i *item, now weir.Micros) (bool, error) {
		o = l.fail(i, f, now)
		return !o.Dead && len(l.ready) == 0, nil
	})
	return o, err
}

// Extend implements queue.Store.
func (s *Store) Extend(ctx context.Context, name, token string) (time.Duration, error) {
	var left time.Duration
	err := s.holding(ctx, name, token, false, func(l *line, i *item, now weir.Micros) (bool, error) {
		// If the lease has expired but no other worker has the item, the worker still holds
		// it.
		l.move(i, queue.Leased, max(now, i.slot.Release())+weir.Micros(l.terms.VisibilityMicros))
		left = time.Duration(i.due-now) * time.Microsecond
		return false, nil
	})
	return left, err
}

// Return implements queue.Store.
func (s *Store) Return(ctx context.Context, name, token string) error {
	return s.holding(ctx, name, token, false, func(l *line, i *item, _ weir.Micros) (bool, error) {
		l.giveBack(i)
		return true, nil
	})
}

// holding runs f on the item of a lease, which may be a dead letter by now only if the
// worker says that it is done.
func (s *Store) holding(ctx context.Context, name, token string, done bool, f func(*line, *item, weir.Micros) (bool, error)) error {
	return s.with(ctx, name, func(l *line, now weir.Micros) (bool, error) {
		number, secret, err := queue.ParseToken(token)
		if err != nil {
			return false, err
		}
		i := l.items[number]
		if i == nil || i.secret != secret || i.state == queue.Dead && !done {
			return false, queue.ErrLost
		}
		return f(l, i, now)
	})
}

// Stats implements queue.Store.
func (s *Store) Stats(ctx context.Context, name string) (queue.Stats, error) {
	var st queue.Stats
	err := s.with(ctx, name, func(l *line, now weir.Micros) (bool, error) {
		st = l.stats(now)
		return false, nil
	})
	return st, err
}

// Watch implements queue.Store.
func (s *Store) Watch(ctx context.Context, name string, wake func()) error {
	s.mu.Lock()
	l := s.lines[name]
	if s.terms[name] == nil {
		s.mu.Unlock()
		return queue.ErrNoQueue
	}
	key := new(byte)
	l.watchers[key] = wake
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(l.watchers, key)
	return ctx.Err()
}
