package stats

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// Live is one second of traffic, sent as soon as it is complete.
type Live struct {
	Time time.Time // start of the second

	// Frame is the traffic of all instances. It is shared and must not be changed.
	Frame *archive.Frame

	// Warned are the warnings of this instance alone since the last event. Each is sent once.
	Warned archive.Warned

	// Local reports that the archive is unavailable, and the frame is of this instance
	// alone.
	Local bool
}

// Point returns the second as a Point.
func (l Live) Point() Point { return pointOf(l.Time, time.Second, l.Frame) }

// Summary returns the second with its rules and routes, without the durations of
// decisions per rule, which are not known for single seconds.
func (l Live) Summary() *Summary {
	s := summaryOf(l.Time, time.Second, l.Frame)
	s.Local = l.Local
	for i := range s.Rules {
		s.Rules[i].Decision = nil
	}
	return s
}

// ErrTooMany is returned by Subscribe if there are MaxSubscribers subscriptions.
var ErrTooMany = errors.New("stats: too many subscriptions; close one, or raise MaxSubscribers")

// behind is how many seconds a subscriber may be behind. After that the oldest are
// dropped, so that a slow reader delays nothing.
const behind = 8

// Subscription receives live traffic.
type Subscription struct {
	// C receives one event a second. It is closed when the recorder or the subscription
	// ends.
	C <-chan Live

	of      *subscribers
	ch      chan Live
	dropped atomic.Int64
}

// subscribers are told of every second.
type subscribers struct {
	most   int
	mu     sync.Mutex
	all    map[*Subscription]struct{}
	closed bool
}

// Subscribe receives traffic from now on, while Run runs. Close the subscription after
// use.
func (r *Recorder) Subscribe() (*Subscription, error) {
	s := &r.subscribers
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) >= s.most {
		return nil, ErrTooMany
	}
	sub := &Subscription{of: s, ch: make(chan Live, behind)}
	sub.C = sub.ch
	if s.closed {
		close(sub.ch)
		return sub, nil
	}
	s.all[sub] = struct{}{}
	return sub, nil
}

// Dropped returns how many seconds were not read in time.
func (s *Subscription) Dropped() int64 { return s.dropped.Load() }

// Close ends the subscription. It can be called several times.
func (s *Subscription) Close() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if _, ok := s.of.all[s]; ok {
		delete(s.of.all, s)
		close(s.ch)
	}
}

func (s *subscribers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for sub := range s.all {
		close(sub.ch)
	}
	clear(s.all)
}

func (s *subscribers) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all) > 0
}

// tell gives everybody a second. Who has no room loses its oldest one; only this
// goroutine writes, so that there is room then.
func (s *subscribers) tell(l Live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.all {
		select {
		case sub.ch <- l:
			continue
		default:
		}
		select {
		case <-sub.ch:
			sub.dropped.Add(1)
		default: // it has just been read
		}
		sub.ch <- l
	}
}

// publish tells of a second that is over, if all is in this process; otherwise of the
// newest of which all instances have sent their part.
func (r *Recorder) publish(ctx context.Context, over closed, arrived bool) {
	if !r.subscribers.any() {
		return
	}
	live := Live{Time: time.Unix(over.second, 0).UTC(), Frame: over.frame, Warned: over.warned}
	if lag := int64(r.archive.Lag() / time.Second); lag > 0 {
		second := over.second - lag
		slots, err := []archive.Slot(nil), error(nil)
		if arrived {
			slots, err = r.archive.Read(ctx, archive.Series, 0, second, second+1)
		}
		switch {
		case !arrived || err != nil:
			live.Local = true
		default:
			live.Time, live.Frame = time.Unix(second, 0).UTC(), &archive.Frame{}
			if len(slots) > 0 {
				live.Frame = slots[0].Frame
			}
		}
	}
	r.subscribers.tell(live)
}

// Replay calls tell for every second between two times, as a subscription would have
// received it, including seconds without traffic. It goes back as far as seconds are
// kept.
func (r *Recorder) Replay(ctx context.Context, from, to time.Time, tell func(Live)) error {
	keep := r.archive.Levels(archive.Series)[0].Keep
	next := max(from.Unix(), r.options.Clock().Unix()-keep)
	quiet := func(until int64) {
		for ; next < until; next++ {
			tell(Live{Time: time.Unix(next, 0).UTC(), Frame: &archive.Frame{}})
		}
	}
	err := each(ctx, r.archive, archive.Series, 0, next, to.Unix(), func(s archive.Slot) {
		quiet(s.Start)
		tell(Live{Time: time.Unix(s.Start, 0).UTC(), Frame: s.Frame})
		next = s.Start + 1
	})
	if err == nil {
		quiet(to.Unix())
	}
	return err
}
