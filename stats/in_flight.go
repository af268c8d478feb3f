package stats

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/tally"
	"github.com/weirhq/weir/stats/archive"
)

var _ engine.PlaceObserver = (*Recorder)(nil)

// flights count the requests in flight of one rule.
type flights struct {
	stripes [flightStripes]flightStripe
	held    tally.Expiring // places of holds
}

// flightStripes are how often the counters of a rule exist, so that cores seldom wait for each
// other.
const flightStripes = 4

type flightStripe struct {
	recorder *Recorder
	all      *flights

	mu      sync.Mutex
	n       int64         // in flight now
	looked  time.Duration // when take was called last
	busy    time.Duration // since then, less what n times the time since then is
	counted archive.InFlight
	_       [64]byte
}

// Places implements [engine.PlaceObserver].
func (r *Recorder) Places(rule string) engine.PlaceCounter {
	rule = r.index.Load().nameOf(rule)
	f, found := r.flights.Load(rule)
	if !found {
		made := new(flights)
		for i := range made.stripes {
			made.stripes[i].recorder, made.stripes[i].all = r, made
		}
		f, _ = r.flights.LoadOrStore(rule, made)
	}
	return &f.(*flights).stripes[rand.Uint32()%flightStripes]
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

// Hold implements [engine.PlaceCounter].
func (s *flightStripe) Hold(n int64, until weir.Micros) {
	s.all.held.Add(n, s.recorder.options.Clock(), until.Time())
}

// End implements [engine.PlaceCounter].
func (s *flightStripe) End(held time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted.Hold(held)
}

// take moves what was counted until now into a frame, and reports whether a request is still
// in flight.
func (s *flightStripe) take(to *archive.InFlight, now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted.Use(s.busy + time.Duration(s.n)*(now-s.looked))
	s.busy, s.looked = 0, now
	to.Merge(&s.counted)
	s.counted = archive.InFlight{}
	return s.n > 0
}

// takeFlights moves what was counted of all rules into a frame. Rules that are not in force any
// more are forgotten when their last request has ended.
func (r *Recorder) takeFlights(to *archive.Frame) {
	x, now := r.index.Load(), r.options.Clock()
	r.flights.Range(func(id, all any) bool {
		var sum archive.InFlight
		f := all.(*flights)
		held, area := f.held.Take(now)
		sum.Use(area)
		busy := held != 0
		for i := range f.stripes {
			busy = f.stripes[i].take(&sum, now.Sub(r.born)) || busy
		}
		switch _, own := x.ByID(id.(string)); {
		case !sum.IsZero():
			to.Flight(id.(string)).Merge(&sum)
		case !busy && !own:
			r.flights.Delete(id)
		}
		return true
	})
}
