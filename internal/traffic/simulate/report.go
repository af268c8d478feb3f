// Package simulate plays one piece of traffic against every algorithm, and
// shows what each allows, denies and holds.
//
// It is pure and deterministic: limits and traffic go in, a [Report] comes out,
// and the same input gives the same output to the last byte. Nothing here reads
// a clock; time is what the traffic says.
//
//	limit, _ := weir.ParseLimit("100/1m")
//	traffic, _ := simulate.ParseTraffic("boundary", limit, 1, simulate.MaxRequests)
//	lanes, _ := simulate.AllLanes(limit)
//	simulate.Run(limit, lanes, traffic, 60).WriteText(os.Stdout, simulate.Look{Width: 80})
//
// # Traffic
//
// Traffic is written as terms with commas between, all of one client:
//
//	50@10s          50 requests at once, 10 s after the start
//	50@10s..20s     50 requests spread evenly over these 10 s
//	3/1s@0s..1m     3 a second for a minute, evenly spaced
//	boundary        a pattern, scaled to the limit; see Patterns
//
// The start is aligned to every window, as it is in a scenario. If the limit has periods
// of the calendar, the first one of 2026 begins then. Traffic with times of its own, of
// several clients, is a log; see [ParseLog].
package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/notation"
)

// Report is what every lane made of the same traffic. Its JSON form is meant
// for programs, times in microseconds.
type Report struct {
	Name     string   `json:"name,omitempty"` // of the limit, in a scenario with several
	Limit    string   `json:"limit"`
	Traffic  string   `json:"traffic"`
	Requests int      `json:"requests"`
	Keys     int      `json:"keys"`
	Offered  int64    `json:"offered"` // units
	Axis     axis     `json:"axis"`
	Arrivals []int64  `json:"offered_per_slice"`
	Lanes    []Result `json:"lanes"`
	Notes    []string `json:"notes,omitempty"`
	Summary  string   `json:"summary"`

	limit   weir.Limit
	periods periods
}

// Result is one lane's part of a report.
type Result struct {
	Name  string `json:"algorithm"`
	Limit string `json:"limit"`
	tally

	// Units in each slice: allowed and denied when they came, released when
	// they left.
	AllowedSlices  []int64 `json:"allowed_per_slice"`
	DeniedSlices   []int64 `json:"denied_per_slice"`
	ReleasedSlices []int64 `json:"released_per_slice"`

	// RemainingSlices is what the busiest client could still have taken at the end
	// of each slice, of Capacity.
	RemainingSlices []int64 `json:"remaining_per_slice"`
	Capacity        int64   `json:"capacity"`
}

// Run plays the traffic, which has a request at least, against every lane, and
// divides the time into at most columns slices.
func Run(limit weir.Limit, lanes []Lane, traffic Traffic, columns int) *Report {
	requests := traffic.Requests
	clients, busiest := traffic.clients()
	r := &Report{
		Limit:    strings.TrimPrefix(limit.String(), limit.Algorithm.String()+" "),
		Traffic:  traffic.Text,
		Requests: len(requests),
		Keys:     clients,
		Notes:    slices.Clone(traffic.Notes),
		limit:    limit,
		periods:  periodsOf(limit),
	}
	if r.periods.calendar != nil {
		r.Notes = append(r.Notes, "times are in "+r.periods.zone.String()+".")
	}
	last := requests[len(requests)-1].At
	outcomes := make([]outcome, len(lanes))
	for i, lane := range lanes {
		outcomes[i] = play(lane.Limit, requests)
		t := measure(lane.Limit, requests, &outcomes[i])
		r.Lanes = append(r.Lanes, Result{Name: lane.Name, Limit: lane.Limit.Limit().String(), tally: t})
		last = max(last, t.lastRelease)
	}
	r.Axis = newAxis(requests[0].At, last, r.periods, max(1, columns))
	r.Arrivals = make([]int64, r.Axis.Count)
	for i := range requests {
		r.Offered += requests[i].Cost
		r.Arrivals[r.Axis.slice(requests[i].At)] += requests[i].Cost
	}
	for i, lane := range lanes {
		r.Lanes[i].divide(r.Axis, requests, &outcomes[i])
		r.Lanes[i].RemainingSlices = budget(lane.Limit, requests, busiest, r.Axis)
		r.Lanes[i].Capacity = lane.Limit.Capacity()
	}
	r.Summary = r.summarize()
	return r
}

// divide counts a lane's units in each slice.
func (l *Result) divide(a axis, requests []Request, o *outcome) {
	l.AllowedSlices = make([]int64, a.Count)
	l.DeniedSlices = make([]int64, a.Count)
	l.ReleasedSlices = make([]int64, a.Count)
	for i := range requests {
		came, units := a.slice(requests[i].At), requests[i].Cost
		if !o.allowed[i] {
			l.DeniedSlices[came] += units
			continue
		}
		l.AllowedSlices[came] += units
		l.ReleasedSlices[a.slice(o.released(i, requests))] += units
	}
}

// WriteJSON writes the reports as one JSON document.
func WriteJSON(w io.Writer, reports []*Report) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Simulations []*Report `json:"simulations"`
	}{reports})
}

// summarize says in one sentence what is to be seen: who let too much through,
// or else who denied how much.
func (r *Report) summarize() string {
	n := r.limit.N
	within := "within " + nameOf(r.limit)
	if r.Keys > 1 {
		within += " for one key"
	}
	worst := int64(0)
	least, most := r.Lanes[0].Allowed, int64(0)
	for _, l := range r.Lanes {
		worst = max(worst, l.Worst)
		least, most = min(least, l.Allowed), max(most, l.Allowed)
	}
	everyone := "Every algorithm"
	if len(r.Lanes) == 1 {
		everyone = r.Lanes[0].Name
	}
	switch {
	case worst > n:
		s := fmt.Sprintf("%s allowed %s %s; the limit is %d",
			r.lanes(func(l *Result) bool { return l.Worst == worst }), notation.Count(worst, "unit"), within, n)
		if kept := r.lanes(func(l *Result) bool { return l.Worst <= n }); kept != "" {
			s += ", which " + kept + " kept"
		}
		return s + "."
	case least == r.Offered:
		return fmt.Sprintf("%s allowed all of the traffic, at most %s %s: it stays within the limit.",
			everyone, notation.Count(worst, "unit"), within)
	case least == most:
		return fmt.Sprintf("%s allowed %d of %s, at most %d %s.",
			everyone, least, notation.Count(r.Offered, "unit"), worst, within)
	}
	return fmt.Sprintf("%s kept to %d %s; of %s, %s allowed the most, %d, and %s the least, %d.",
		everyone, n, within, notation.Count(r.Offered, "unit"),
		r.lanes(func(l *Result) bool { return l.Allowed == most }), most,
		r.lanes(func(l *Result) bool { return l.Allowed == least }), least)
}

// lanes lists the names of some lanes as prose.
func (r *Report) lanes(some func(*Result) bool) string {
	var names []string
	for i := range r.Lanes {
		if some(&r.Lanes[i]) {
			names = append(names, r.Lanes[i].Name)
		}
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

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
