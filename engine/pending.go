package engine

import (
	"container/list"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
)

const (
	// maxPending bounds the calls that wait until the store is available.
	maxPending = 10_000

	// maxForeign bounds those of them whose ids may be invented, because another engine
	// made the hold, if anybody did.
	maxForeign = maxPending / 4

	// The first and the longest time between two calls of an unavailable store.
	firstPause, longestPause = 50 * time.Millisecond, time.Second
)

var errTooManyPending = errors.New("engine: too many settlements wait until the store is available; try again later")

// pending are the calls that could not reach the store. They are repeated one after the
// other, by a goroutine that exists only while there are any.
type pending struct {
	count   atomic.Int64 // of byID, which is empty nearly always
	mu      sync.Mutex
	byID    map[weir.HoldID]*list.Element
	order   list.List // of *settlement
	foreign int
	running bool
	stop    chan struct{} // closed by Close; nil until the first is pending
	closed  bool
	worker  sync.WaitGroup
}

// settlementOf returns the first call about a hold that is pending.
func (p *pending) settlementOf(id weir.HoldID) *settlement {
	if p.count.Load() == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.byID[id]; e != nil {
		return e.Value.(*settlement)
	}
	return nil
}

// dequeue reports whether there was one: of those who make the same call, one has done it.
func (p *pending) dequeue(id weir.HoldID) bool {
	if p.count.Load() == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.byID[id]
	if e != nil {
		p.order.Remove(e)
		delete(p.byID, id)
		p.count.Store(int64(len(p.byID)))
		if e.Value.(*settlement).foreign {
			p.foreign--
		}
	}
	return e != nil
}

// retryLater repeats a call until it succeeds, or the longest hold would have expired.
func (e *Engine) retryLater(s *settlement, cause error) error {
	if s.until == 0 { // else others read it already
		s.until = e.clock().Add(weir.MaxHoldTTL)
		_, ours := e.issued.get(issuedKey(s.id))
		s.foreign = s.ops == nil && s.end == nil && !ours
	}
	if !e.pending.enqueue(s, e.retryPending) {
		e.observeHold(LostHold, s.parts)
		return fmt.Errorf("%w: %w", errTooManyPending, cause)
	}
	return nil
}

// enqueue reports whether there was room.
func (p *pending) enqueue(s *settlement, work func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.byID[s.id] != nil && s.end == nil:
		return true
	case p.byID[s.id] != nil: // another call ends that hold
		s.id, s.end.again = weir.NewHoldID(), false
	}
	switch {
	case p.closed || len(p.byID) >= maxPending || s.foreign && p.foreign >= maxForeign:
		return false
	case p.byID == nil:
		p.byID, p.stop = make(map[weir.HoldID]*list.Element), make(chan struct{})
	}
	p.byID[s.id] = p.order.PushBack(s)
	p.count.Store(int64(len(p.byID)))
	if s.foreign {
		p.foreign++
	}
	if !p.running {
		p.running = true
		p.worker.Go(work)
	}
	return true
}

// next returns the call that has waited longest, and lets it wait behind all others from
// now on.
func (p *pending) next() *settlement {
	p.mu.Lock()
	defer p.mu.Unlock()
	front := p.order.Front()
	if front == nil || p.closed {
		p.running = false
		return nil
	}
	p.order.MoveToBack(front)
	return front.Value.(*settlement)
}

func (e *Engine) retryPending() {
	pause := firstPause
	for {
		s := e.pending.next()
		if s == nil {
			return
		}
		if e.retry(s) {
			pause = firstPause
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-e.pending.stop:
			timer.Stop()
		}
		pause = min(2*pause, longestPause)
	}
}

// retry makes a call that is pending, and reports whether it is over.
func (e *Engine) retry(s *settlement) bool {
	done, err := e.settleOnce(context.Background(), time.Time{}, s, nil) // nobody waits for it
	switch {
	case err == nil:
		done.Repeated = !e.pending.dequeue(s.id)
		done.observe(e, s)
	case e.clock() < s.until:
		return false
	case e.pending.dequeue(s.id):
		e.observeHold(LostHold, s.parts)
	}
	return true
}

// Close ends the repetition of settlements, after one more call for each. Those that still
// cannot reach the store are lost. An engine that has settled no hold while its store was
// unavailable need not be closed.
func (e *Engine) Close() {
	p := &e.pending
	p.mu.Lock()
	if !p.closed && p.stop != nil {
		close(p.stop)
	}
	p.closed = true
	p.mu.Unlock()
	p.worker.Wait()
	available := true
	for s := p.front(); s != nil; s = p.front() {
		if available = available && e.retry(s); !available {
			p.dequeue(s.id)
			e.observeHold(LostHold, s.parts)
		}
	}
}

func (p *pending) front() *settlement {
	p.mu.Lock()
	defer p.mu.Unlock()
	if front := p.order.Front(); front != nil {
		return front.Value.(*settlement)
	}
	return nil
}

// issuedKey is the key of a hold among those that this engine has made lately. While the store is
// unavailable, nothing else tells the id of a hold from an invented one, and few of those may
// wait for the store. Ids are random throughout.
func issuedKey(id weir.HoldID) uint64 { return binary.LittleEndian.Uint64(id[:]) }
