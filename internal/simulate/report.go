package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/weirhq/weir"
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

	limit weir.Limit
}

// Result is one lane's part of a report.
type Result struct {
	Name  string `json:"algorithm"`
	Limit string `json:"limit"`
	tally

	// Units in each slice: admitted and refused when they came, released when
	// they left.
	AdmittedSlices []int64 `json:"admitted_per_slice"`
	RefusedSlices  []int64 `json:"refused_per_slice"`
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
	r := &Report{
		Limit:    strings.TrimPrefix(limit.String(), limit.Algorithm.String()+" "),
		Traffic:  traffic.Text,
		Requests: len(requests),
		Keys:     traffic.keys(),
		Notes:    traffic.Notes,
		limit:    limit,
	}
	last := requests[len(requests)-1].At
	outcomes := make([]outcome, len(lanes))
	for i, lane := range lanes {
		outcomes[i] = play(lane.Limit, requests)
		t := measure(lane.Limit, requests, &outcomes[i])
		r.Lanes = append(r.Lanes, Result{Name: lane.Name, Limit: lane.Limit.Limit().String(), tally: t})
		last = max(last, t.lastRelease)
	}
	r.Axis = newAxis(requests[0].At, last, micros(limit), max(1, columns))
	r.Arrivals = make([]int64, r.Axis.Count)
	for i := range requests {
		r.Offered += requests[i].Cost
		r.Arrivals[r.Axis.slice(requests[i].At)] += requests[i].Cost
	}
	busiest := traffic.busiest()
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
	l.AdmittedSlices = make([]int64, a.Count)
	l.RefusedSlices = make([]int64, a.Count)
	l.ReleasedSlices = make([]int64, a.Count)
	for i := range requests {
		came, units := a.slice(requests[i].At), requests[i].Cost
		if !o.admitted[i] {
			l.RefusedSlices[came] += units
			continue
		}
		l.AdmittedSlices[came] += units
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

// plural writes a number and its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
