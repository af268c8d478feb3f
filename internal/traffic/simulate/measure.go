package simulate

import (
	"errors"
	"slices"
	"strings"

	"github.com/weirhq/weir"
)

// tally is a lane's figures over the whole traffic. All but the instants are
// units.
type tally struct {
	Allowed int64 `json:"allowed"`
	Denied  int64 `json:"denied"`

	// Delayed are those that shaping told to wait, LongestDelay the longest wait.
	Delayed      int64       `json:"delayed"`
	LongestDelay weir.Micros `json:"longest_delay_us"`

	// Worst is the most that left within an interval as long as a period, for one key.
	// WorstBegin is not in the interval, WorstEnd is. Bound is the most that could have.
	Worst      int64       `json:"worst_window"`
	WorstBegin weir.Micros `json:"worst_window_begin_us"`
	WorstEnd   weir.Micros `json:"worst_window_end_us"`
	Bound      int64       `json:"bound"`

	// FirstDenial is nil if there was none.
	FirstDenial *weir.Micros `json:"first_denial_us,omitempty"`

	lastRelease weir.Micros
}

func measure(limit *weir.Compiled, requests []Request, o *outcome) tally {
	var t tally
	var largest int64
	periods := periodsOf(limit.Limit())
	windows := make(map[string]*window)
	for i := range requests {
		r := &requests[i]
		if !o.allowed[i] {
			t.Denied += r.Cost
			if t.FirstDenial == nil {
				at := r.At
				t.FirstDenial = &at
			}
			continue
		}
		t.Allowed += r.Cost
		largest = max(largest, r.Cost)
		at := o.released(i, requests)
		if delayed := at - r.At; delayed > 0 {
			t.Delayed += r.Cost
			t.LongestDelay = max(t.LongestDelay, delayed)
		}
		t.lastRelease = max(t.lastRelease, at)
		w := windows[r.Key]
		if w == nil {
			w = new(window)
			windows[r.Key] = w
		}
		since := periods.before(at)
		if units := w.addRelease(at, since, r.Cost); units > t.Worst {
			t.Worst, t.WorstBegin, t.WorstEnd = units, since, at
		}
	}
	t.Bound = limit.Bound(max(1, largest))
	return t
}

// window sums the units that left in one interval, at whose end the last of them is.
// One key's releases come in the order of time even when they are delayed: a queue
// does not overtake.
type window struct {
	releases []release
	oldest   int // of those in the window
	units    int64
}

type release struct {
	at    weir.Micros
	units int64
}

func (w *window) addRelease(at, since weir.Micros, units int64) int64 {
	w.releases = append(w.releases, release{at, units})
	w.units += units
	for w.releases[w.oldest].at <= since {
		w.units -= w.releases[w.oldest].units
		w.oldest++
	}
	return w.units
}

// Lane is one algorithm to play the traffic against.
type Lane struct {
	Name  string
	Limit *weir.Compiled
}

// shaping is the name of the leaky bucket as a queue, which behaves unlike the
// meter in everything that one would look at.
const shaping = "leaky_bucket shape"

// LaneNames returns the names that Lanes knows, simplest first.
func LaneNames() []string {
	var names []string
	for _, a := range weir.Algorithms() {
		names = append(names, a.String())
	}
	return append(names, shaping)
}

// Lanes makes a lane of the limit for each name. Burst, buckets and count_denied
// go along wherever the algorithm knows them.
func Lanes(limit weir.Limit, names ...string) ([]Lane, error) {
	var lanes []Lane
	for _, name := range names {
		lane, err := laneNamed(limit, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(lanes, func(l Lane) bool { return l.Name == lane.Name }) {
			lanes = append(lanes, lane)
		}
	}
	return lanes, nil
}

// AllLanes makes a lane for every algorithm that can keep the limit, and tells
// why the others, such as a log of a billion units, are left out. A valid limit
// has a lane at least.
func AllLanes(limit weir.Limit) (lanes []Lane, leftOut []string) {
	if c, err := limit.Compile(); err == nil && c.FollowsCalendar() {
		return []Lane{{weir.FixedWindow.String(), c}}, []string{"other algorithms are left out: a period of the calendar is a fixed_window."}
	}
	for _, name := range LaneNames() {
		lane, err := laneNamed(limit, name)
		if invalid, ok := errors.AsType[*weir.InvalidError](err); ok {
			leftOut = append(leftOut, name+" is left out: "+invalid.Reason+".")
		} else if err == nil {
			lanes = append(lanes, lane)
		}
	}
	return lanes, leftOut
}

func laneNamed(limit weir.Limit, name string) (Lane, error) {
	word, shape := strings.CutSuffix(name, " shape")
	algorithm, err := weir.ParseAlgorithm(word)
	if err != nil {
		return Lane{}, err
	}
	l := weir.Limit{Algorithm: algorithm, N: limit.N, Period: limit.Period, Zone: limit.Zone, Starts: limit.Starts, Shape: shape}
	switch algorithm {
	case weir.TokenBucket, weir.LeakyBucket:
		l.Burst = limit.Burst
	default:
		l.CountDenied = limit.CountDenied
	}
	if algorithm == weir.SlidingBuckets {
		l.Buckets = limit.Buckets
	}
	compiled, err := l.Compile()
	if err != nil {
		return Lane{}, err
	}
	return Lane{Name: name, Limit: compiled}, nil
}
