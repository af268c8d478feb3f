package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/order"
)

const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 5 * time.Second

	maxCalls = 256 // at the same time, in the background
)

// agenda is when to look at which key. Its mutex is locked last.
type agenda struct {
	mu   sync.Mutex
	heap order.Heap[*entry] // all but those that somebody looks at, who puts them back
	poke chan struct{}
}

// Before and Index put entries into order.
func (e *entry) Before(other *entry) bool { return e.due < other.due }
func (e *entry) Index() *int32            { return &e.place }

// add puts an entry into the agenda.
func (a *agenda) add(e *entry, due time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.due = due
	a.heap.Push(e)
	a.wakeLocked(e)
}

// hasten lets an entry be looked at no later than at an instant. It does nothing if somebody is doing that.
func (a *agenda) hasten(e *entry, due time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.place != out && due < e.due {
		e.due = due
		a.heap.Fix(e)
		a.wakeLocked(e)
	}
}

func (a *agenda) wakeLocked(e *entry) {
	if a.heap[0] == e {
		a.wake()
	}
}

func (a *agenda) wake() {
	select {
	case a.poke <- struct{}{}:
	default:
	}
}

// next takes out the entry that is due, or returns when one will be.
func (a *agenda) next(now time.Duration) (*entry, time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.heap) == 0 {
		return nil, never
	}
	e := a.heap[0]
	if e.due > now {
		return nil, e.due - now
	}
	a.heap.Remove(e)
	e.place = out
	return e, 0
}

// run is the only goroutine that lasts. It finds out what is to be said about which key.
func (s *Store) run() {
	var calls sync.WaitGroup
	defer close(s.done)
	defer calls.Wait()
	slots := make(chan struct{}, maxCalls)
	timer := time.NewTimer(never)
	defer timer.Stop()
	for !s.closing.Load() || s.keys.Load() > 0 {
		e, wait := s.due()
		if e != nil {
			slots <- struct{}{}
			calls.Go(func() { s.report(e); <-slots })
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-s.agenda.poke:
		case <-s.background.Done():
			return
		}
	}
}

// due takes out a key of which there is something to say, or returns when one may be due.
func (s *Store) due() (*entry, time.Duration) {
	for {
		if e, wait := s.agenda.next(s.now().elapsed); e == nil || s.tend(e) {
			return e, wait
		}
	}
}

// tend reports whether there is something to say about a key now. Otherwise it puts the entry back, or
// forgets the key if it is not used any more.
func (s *Store) tend(e *entry) bool {
	now := s.now()
	sh := s.shardOf(e.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	closing := s.closing.Load() // not before the lock: Close sets it, waits for the lock, and then looks at what is in the agenda
	idle := closing || now.elapsed-e.used >= e.horizon
	due := e.used + e.horizon
	if idle {
		due = e.renew
	}
	if closing { // what holds have not settled yet is taken for used
		e.spend(e.reserved)
		e.endHolds()
	}
	switch {
	case e.flight:
		due = now.elapsed + e.horizon
		if closing {
			due = now.elapsed + minHorizon
		}
	case e.unsure && now.elapsed < e.retry:
		due = e.retry
	case idle && !e.open():
		sh.removeLocked(e)
		if s.keys.Add(-1); closing {
			s.agenda.wake()
		}
		return false
	case idle && e.hasNews() || e.unsure || e.refill || e.surplus(now, s.roundTrip()) > 0 || e.open() && now.elapsed >= e.renew:
		return true
	case e.open():
		due = min(due, e.renew)
	}
	s.agenda.add(e, due)
	return false
}

func (sh *shard) removeLocked(e *entry) {
	e.counts.local.Add(e.local)
	e.counts.denied.Add(e.denied)
	e.local, e.denied = 0, 0
	first := sh.keys[e.hash]
	if first == e {
		first = e.next
	}
	for p := first; p != nil; p = p.next {
		if p.next == e {
			p.next = e.next
		}
	}
	if sh.keys[e.hash] = first; first == nil {
		delete(sh.keys, e.hash)
	}
}

// report tells the store about a key.
func (s *Store) report(e *entry) {
	ctx, cancel := context.WithTimeout(s.background, min(max(e.term, time.Second), 10*time.Second))
	defer cancel()
	sent, all := s.now(), []asked{{e: e}}
	var messages []weir.LeaseOp
	sh := s.shardOf(e.hash)
	sh.mu.Lock()
	if !e.flight { // otherwise a request has just told it
		held := e.held(sent) - e.surplus(sent, s.roundTrip())
		if s.closing.Load() || sent.elapsed-e.used >= e.horizon {
			held = 0
		}
		messages = append(messages, s.messageLocked(&all[0], held, 0, sent))
	}
	sh.mu.Unlock()
	if messages != nil {
		s.call(ctx, all, messages, sent)
	}
	if s.tend(e) {
		s.agenda.add(e, 0)
	}
}

// pass returns when whoever had the lock has done.
func (sh *shard) pass() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
}

// Close gives up what is leased, and returns when the store has answered what was reported of every key, or when the context
// ends. From then on, all requests ask the wrapped store, which stays open.
func (s *Store) Close(ctx context.Context) error {
	s.closing.Store(true)
	for i := range s.shards { // whoever did not see it has done with its entry
		s.shards[i].pass()
	}
	if !s.started.Load() {
		return nil
	}
	s.agenda.mu.Lock()
	for _, e := range s.agenda.heap {
		e.due = 0
	}
	s.agenda.wake()
	s.agenda.mu.Unlock()
	select {
	case <-s.done:
	case <-ctx.Done():
		s.cancel()
		<-s.done
	}
	s.cancel()
	if n := s.keys.Load(); n > 0 {
		return fmt.Errorf("lease: what was spent on %d keys is not reported, and is charged when their leases end: %w", n, context.Cause(ctx))
	}
	return nil
}
