// Package overload keeps a process and what it calls from too many requests: it limits how many are
// in flight to a service of unknown capacity, by priority and fairly among clients, and it sheds
// requests by priority while this process uses too much CPU or memory.
package overload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/order"
)

// Outcome is how a request ended.
type Outcome int

const (
	Success Outcome = iota
	Failure         // as under overload: no response, or 502, 503 or 504
	Ignored         // it says nothing about the service; for example, the client has left
)

// OutcomeOf is that of a request over HTTP with this context: of one whose client has left, of one
// that has ended with a status, or of one whose response was torn. A deadline that has passed is no
// response in time.
func OutcomeOf(ctx context.Context, ended bool, status int) Outcome {
	switch err := ctx.Err(); {
	case errors.Is(err, context.Canceled):
		return Ignored
	case err != nil, !ended, status == 502, status == 503, status == 504:
		return Failure
	}
	return Success
}

// MaxLimit is the highest limit.
const MaxLimit = 1_000_000

// Bounds are between what a limit adapts. The zero value is no limit.
type Bounds struct{ Min, Max int }

// Check says what is wrong with bounds, and how to correct it.
func (b Bounds) Check() error {
	switch {
	case b == Bounds{}:
	case b.Min < 1:
		return fmt.Errorf("the minimum is %d; it must be at least 1, for example 5", b.Min)
	case b.Max < b.Min:
		return fmt.Errorf("the maximum, %d, is less than the minimum, %d; write for example %d", b.Max, b.Min, max(1000, b.Min))
	case b.Max > MaxLimit:
		return fmt.Errorf("the maximum is %d; it must be at most %d, for example 1000", b.Max, MaxLimit)
	}
	return nil
}

// Limiter returns a limiter within the bounds, or nil without bounds.
func (b Bounds) Limiter() *Limiter {
	if b == (Bounds{}) {
		return nil
	}
	return New(b.Min, b.Max)
}

// Limiter is safe for concurrent use.
type Limiter struct {
	min, max float64

	mu       sync.Mutex
	limit    int
	inFlight int
	denied   uint64
	ticked   time.Duration // when the clock was read last

	state state
	since time.Duration // when the state began
	skip  int           // requests that still end before the window begins
	now   window
	high  window // before the probe

	knee  float64
	base  float64       // latency without a queue, in seconds; 0 if unknown
	usual float64       // in flight while resting, without those that wait
	probe time.Duration // when to probe again
	doubt bool          // the probe is compared with a time in which something changed

	demand demand

	// Of requests whose clients are known.
	taken      []*Place
	hand       int // the last of them that was looked at
	byAddress  map[netip.Addr]*client
	clients    order.Heap[*client]       // the one with the most places is the first
	shortUntil [Priorities]time.Duration // until then no client has more than its share
}

type state int

const (
	resting state = iota
	steady
	probing
)

// The constants were chosen by simulation; see docs/decisions.
const (
	start      = 100  // the first limit
	rareDenied = 0.05 // share of requests: less is no overload
	someFailed = 0.1
	full       = 0.9 // of the throughput before: requests still wait
	nearlyFull = 0.85
	changed    = 1.5 // latency, up or down

	// failurePause is how long failures cause no further probe: they may have nothing to do
	// with the load.
	failurePause = 30 * time.Second
)

// New returns a limiter whose limit is always between min and max.
func New(min, max int) *Limiter {
	l := &Limiter{min: float64(min), max: float64(max), byAddress: map[netip.Addr]*client{}}
	l.enter(resting, start, 0)
	return l
}

// Acquire takes a place. It returns false if there is none for a request of this priority.
func (l *Limiter) Acquire(now time.Duration, p Priority) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick(now)
	l.demand.arrived[p]++
	if l.inFlight >= l.places(p) {
		l.denyLocked(now)
		return false
	}
	l.inFlight++
	return true
}

// denyLocked takes note that there was no place.
func (l *Limiter) denyLocked(now time.Duration) {
	l.denied++
	l.now.denied++
	if l.state == probing && now-l.since > l.patience() {
		l.beginSteady(now) // those in flight stay too long, such as streams
		l.probe = now + 10*l.patience()
	}
}

// Release gives a place back.
func (l *Limiter) Release(now time.Duration, o Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick(now)
	l.releaseLocked(now, o)
}

func (l *Limiter) releaseLocked(now time.Duration, o Outcome) {
	l.inFlight--
	l.demand.noteEnd(l.inFlight)
	switch {
	case l.skip > 0:
		if l.inFlight < l.limit {
			l.skip--
		}
		l.now = window{}
		return
	case o == Failure:
		l.now.failed++
	case o == Ignored:
		return
	}
	l.now.count++
	if l.now.count >= math.Max(250, 8*l.now.inFlight()) {
		w := l.now
		l.now = window{}
		l.judgeWindow(now, w)
	}
}

// Stats says how things are.
type Stats struct {
	Limit, InFlight int
	Denied          uint64 // since the start
}

// Stats returns the limit, and how many are in flight and were denied.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{l.limit, l.inFlight, l.denied}
}

// tick lets time pass.
func (l *Limiter) tick(now time.Duration) {
	passed := (now - l.ticked).Seconds()
	l.now.length += passed
	l.now.area += passed * float64(l.inFlight)
	l.ticked = now
}

// judgeWindow decides by a full window what comes next.
func (l *Limiter) judgeWindow(now time.Duration, w window) {
	switch l.state {
	case resting:
		l.base = math.Min(w.latency(), 1.001*cmp.Or(l.base, w.latency()))
		if w.deniedShare() > rareDenied || w.failed > someFailed*w.count && now >= l.probe {
			l.knee, l.doubt = cmp.Or(l.usual, w.inFlight()), true
			l.beginProbe(now, w)
			return
		}
		// What waits is not what is usual.
		l.usual = math.Max(w.inFlight()*l.base/w.latency(), 0.99*l.usual)
		l.limit = l.within(l.restLimit())
	case steady:
		ratio := w.latency() / cmp.Or(l.high.latency(), w.latency())
		switch {
		case w.deniedShare() < rareDenied:
			l.beginRest(now)
		case ratio > changed || ratio < 1/changed:
			l.doubt = true
			l.beginProbe(now, w)
		default:
			l.high.blend(w)
			if now >= l.probe {
				l.beginProbe(now, l.high)
			}
		}
	case probing:
		switch {
		case w.deniedShare() < rareDenied:
			l.beginRest(now)
		case w.throughput() < full*l.high.throughput():
			l.doubt = l.doubt || w.throughput() > nearlyFull*l.high.throughput()
			l.endProbe(now, l.high.throughput()*w.latency(), w.latency())
		case float64(l.limit) > l.min:
			l.knee = 0.75 * w.inFlight()
			l.beginProbe(now, l.high)
		default:
			l.endProbe(now, l.min/2, w.latency()) // somewhere below the minimum
		}
	}
}

// beginProbe begins a probe, to be compared with what was before.
func (l *Limiter) beginProbe(now time.Duration, before window) {
	l.high = before
	l.enter(probing, 0.8*l.knee, now)
}

// endProbe ends a probe.
func (l *Limiter) endProbe(now time.Duration, knee, base float64) {
	l.probe = now + max(time.Second, 10*(now-l.since))
	if l.doubt || knee > changed*l.knee || knee < l.knee/changed {
		l.probe = now // as soon as there is a window to compare with
	}
	l.knee, l.base, l.doubt = knee, base, false
	l.high = window{}
	l.beginSteady(now)
}

// beginSteady has at least twice what a probe has, or there would be nothing to compare.
func (l *Limiter) beginSteady(now time.Duration) {
	l.enter(steady, math.Max(2*l.knee+2, 2*l.min), now)
}

func (l *Limiter) beginRest(now time.Duration) {
	l.usual = l.knee
	l.probe = now + failurePause
	l.enter(resting, l.restLimit(), now)
}

func (l *Limiter) restLimit() float64 { return math.Max(start, 8*l.usual+40) }

func (l *Limiter) enter(s state, limit float64, now time.Duration) {
	l.state, l.since = s, now
	l.limit = l.within(limit)
	l.demand.before = l.inFlight
	l.now = window{}
	if s != resting {
		l.skip = l.limit // the service has to notice first
	}
}

func (l *Limiter) within(limit float64) int {
	return int(math.Max(l.min, math.Min(l.max, limit)))
}

// patience is how long a probe may take.
func (l *Limiter) patience() time.Duration {
	return time.Second + time.Duration(500*l.high.latency()*float64(time.Second))
}

// window sums up what happened in some time.
type window struct {
	length, area          float64 // in seconds, and × requests in flight
	count, failed, denied float64
}

// blend adds what happened then, and halves the weight of what was before.
func (w *window) blend(n window) {
	w.length = w.length/2 + n.length
	w.area = w.area/2 + n.area
	w.count = w.count/2 + n.count
	w.failed = w.failed/2 + n.failed
	w.denied = w.denied/2 + n.denied
}

func (w *window) inFlight() float64    { return w.area / w.length }
func (w *window) throughput() float64  { return (w.count - w.failed) / w.length }
func (w *window) deniedShare() float64 { return w.denied / (w.denied + w.count) }

// latency is by Little's law; 0 if there was nothing.
func (w *window) latency() float64 { return w.area / math.Max(w.count, 1) }
