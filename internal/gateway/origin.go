package gateway

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/adaptive"
)

// maxPause is the longest time for which an upstream that could not be reached is left
// out, and quiet the shortest between two messages about it.
const (
	maxPause = 30 * time.Second
	quiet    = 10 * time.Second
)

// instant is how long the gateway has been there. It does not jump when somebody sets
// the clock.
type instant = time.Duration

// origin is one upstream, whichever routes use it: what it has to do, and how it is.
type origin struct {
	name   string // scheme://host:port, as the operator wrote it
	scheme string // http or https
	host   string
	h2c    bool

	inFlight atomic.Int64
	down     atomic.Bool  // by its own answers to health checks
	until    atomic.Int64 // left out until then, an instant; 0 if it is not

	mu       sync.Mutex
	failures int     // in a row: connections that could not be made
	told     instant // when the log had it last; 0 for never
	open     bool    // the log has that it is unavailable, and not yet that it is back

	bounds   adaptive.Bounds
	adaptive *adaptive.Limiter // nil if there is none
	shed     atomic.Int64      // when the log had last that it is overloaded, an instant
}

// pause is for how long to leave an upstream out after so many failures in a row.
func pause(first time.Duration, failures int) time.Duration {
	for range min(failures-1, 30) {
		if first *= 2; first >= maxPause {
			break
		}
	}
	return min(first, maxPause)
}

// well reports whether requests may go there without more ado.
func (o *origin) well(now instant) bool {
	return !o.down.Load() && o.until.Load() <= int64(now)
}

// claim is for a request that is about to try an upstream whose time out is over. Only
// one is to find out; the others find it left out for another while.
func (o *origin) claim(now instant, first time.Duration) bool {
	until := o.until.Load()
	if until > int64(now) {
		return false
	}
	o.mu.Lock()
	next := int64(now + pause(first, o.failures+1))
	o.mu.Unlock()
	return o.until.CompareAndSwap(until, next)
}

// failed is that no connection could be made. Many requests find out at once; only the
// first of them counts, or the one that had claimed to try again.
func (o *origin) failed(now instant, first time.Duration, claimed bool, log *slog.Logger, why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !claimed && o.until.Load() > int64(now) {
		return
	}
	o.failures++
	o.until.Store(int64(now + pause(first, o.failures)))
	if !o.open && (o.told == 0 || now-o.told >= quiet) {
		o.open, o.told = true, now
		log.Warn("upstream unavailable", "upstream", o.name, "error", why.Error())
	}
}

// reached is that an upstream which was left out has answered.
func (o *origin) reached(log *slog.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failures = 0
	o.until.Store(0)
	if o.open {
		o.open = false
		log.Info("upstream available again", "upstream", o.name)
	}
}

// wait is how long to wait before it makes sense to ask for this upstream again.
func (o *origin) wait(now instant) time.Duration {
	return max(time.Second, instant(o.until.Load())-now)
}

// choice is an upstream that was chosen for a request.
type choice struct {
	*target
	claimed bool // it is the one to find out whether a lost upstream is back
	out     bool // it is left out, and was chosen for want of another
}

// pick chooses an upstream that was not tried yet: the available one with the fewest
// requests in flight; equal ones take turns. If none is available, the first attempt
// goes to the one whose pause ends next, because it may already be available again. It
// returns false if all were tried.
func (r *route) pick(now instant, first time.Duration, tried []*target) (choice, bool) {
	n := len(r.targets)
	start := 0
	if n > 1 {
		start = int(r.next.Add(1) % uint32(n))
	}
	for {
		var best, last *target
		var least int64
		for i := range n {
			t := r.targets[(start+i)%n]
			if contains(tried, t) {
				continue
			}
			if t.well(now) {
				if load := t.inFlight.Load(); best == nil || load < least {
					best, least = t, load
				}
			} else if last == nil || t.until.Load() < last.until.Load() {
				last = t
			}
		}
		switch {
		case best == nil && (last == nil || len(tried) > 0):
			return choice{}, false
		case best == nil:
			return choice{target: last, out: true}, true
		case best.until.Load() == 0:
			return choice{target: best}, true
		case best.claim(now, first):
			return choice{target: best, claimed: true}, true
		}
		// Another request was quicker to claim it, so it is left out now. Each turn of
		// the loop finds one more like it.
	}
}

func contains(list []*target, t *target) bool {
	return slices.ContainsFunc(list, func(one *target) bool { return one.origin == t.origin })
}
