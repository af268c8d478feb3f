package stats

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/stats/frame"
)

var _ engine.PlaceObserver = (*Recorder)(nil)

// flights count the requests in flight of one rule.
type flights [flightStripes]flightStripe

// flightStripes are how often the counters of a rule exist, so that cores seldom wait for each
// other.
const flightStripes = 4

type flightStripe struct {
	recorder *Recorder

	mu      sync.Mutex
	n       int64         // in flight now
	looked  time.Duration // when take was called last
	busy    time.Duration // since then, less what n times the time since then is
	counted frame.InFlight
	_       [64]byte
}

// Places implements [engine.PlaceObserver].
func (r *Recorder) Places(rule string) engine.PlaceCounter {
	if r.index.Load().byID[rule] == nil {
		rule = frame.Other
	}
	f, found := r.flights.Load(rule)
	if !found {
		made := new(flights)
		for i := range made {
			made[i].recorder = r
		}
		f, _ = r.flights.LoadOrStore(rule, made)
	}
	return &f.(*flights)[rand.Uint32()%flightStripes]
}

// now is the time since the recorder was made.
func (s *flightStripe) now() time.Duration { return s.recorder.options.Clock().Sub(s.recorder.born) }

// Reach implements [engine.PlaceCounter].
func (s *flightStripe) Reach(places int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted.Highest = max(s.counted.Highest, places)
}

// Take implements [engine.PlaceCounter].
func (s *flightStripe) Take() {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.busy -= now - s.looked
}

// Leave implements [engine.PlaceCounter].
func (s *flightStripe) Leave(held time.Duration) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n--
	s.busy += now - s.looked
	s.counted.Hold(held)
}

// End implements [engine.PlaceCounter]. All of the time counts in the second of the end, since
// this process may not know of the beginning.
func (s *flightStripe) End(held time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted.Use(held)
	s.counted.Hold(held)
}

// take moves what was counted until now into a frame, and reports whether a request is still
// in flight.
func (s *flightStripe) take(to *frame.InFlight, now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted.Use(s.busy + time.Duration(s.n)*(now-s.looked))
	s.busy, s.looked = 0, now
	to.Merge(&s.counted)
	s.counted = frame.InFlight{}
	return s.n > 0
}

// takeFlights moves what was counted of all rules into a frame. Rules that are not in force any
// more are forgotten when their last request has ended.
func (r *Recorder) takeFlights(f *frame.Frame) {
	x, now := r.index.Load(), r.options.Clock().Sub(r.born)
	r.flights.Range(func(id, all any) bool {
		var sum frame.InFlight
		busy := false
		for i := range all.(*flights) {
			busy = all.(*flights)[i].take(&sum, now) || busy
		}
		switch {
		case !sum.IsZero():
			f.Flight(id.(string)).Merge(&sum)
		case !busy && x.byID[id.(string)] == nil:
			r.flights.Delete(id)
		}
		return true
	})
}
