package engine

import (
	"sync"
	"time"

	"github.com/weirhq/weir/internal/dueheap"
)

// extensions are the holds that are being served, in the order in which they have to be extended.
// They share a timer, because nearly all of them end long before their time, and a timer for each
// costs more than the hold. The timer does not keep the engine in memory.
type extensions struct {
	mu    sync.Mutex
	due   dueheap.Heap[*extension]
	timer *time.Timer
	next  time.Time // when the timer ends; zero if it does not run
}

// extension is when a hold is extended next.
type extension struct {
	hold  *Hold
	at    time.Time
	place int
	began bool // it was extended, or is being
}

func (e *extension) Before(other *extension) bool { return e.at.Before(other.at) }
func (e *extension) Place() *int                  { return &e.place }

// add extends a hold when half of its time has passed from now on.
func (x *extensions) add(h *Hold, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := &h.extension
	e.hold, e.at = h, now.Add(h.ttl/2)
	x.due.Push(e)
	x.wakeLocked(now)
}

// remove leaves a hold alone. If it is being extended, it is not there.
func (x *extensions) remove(h *Hold) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := &h.extension
	if e.place < len(x.due) && x.due[e.place] == e {
		x.due.Remove(e)
	}
}

// wakeLocked sees to it that the timer ends no later than the first hold is due. It is not stopped
// when there is none, so that it need not be started for each.
func (x *extensions) wakeLocked(now time.Time) {
	if len(x.due) == 0 || !x.next.IsZero() && !x.due[0].at.Before(x.next) {
		return
	}
	x.next = x.due[0].at
	if after := x.next.Sub(now); x.timer == nil {
		x.timer = time.AfterFunc(after, x.extend)
	} else {
		x.timer.Reset(after)
	}
}

// extend extends the holds that are due, each by itself, because a store may take its time.
func (x *extensions) extend() {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	for len(x.due) > 0 && !x.due[0].at.After(now) {
		e := x.due[0]
		x.due.Remove(e)
		e.began = true
		go e.hold.extend()
	}
	x.next = time.Time{}
	x.wakeLocked(now)
}
