package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/traffic/simulate"
)

// Bounds of POST /v1/simulate. It is the only call whose work grows with numbers in
// its body rather than with its length.
const (
	MaxSimulateBody     = 1 << 20 // bytes: room for a log that somebody pastes
	MaxSimulateLimits   = 8
	MaxSimulateRequests = 200_000 // of all limits together
	MaxSimulateColumns  = 480

	maxSimulating  = 2  // at once: the rest of the machine is for deciding
	defaultColumns = 60 // as weir simulate has them on a page of 80
)

// SimulateRequest is the body of POST /v1/simulate. Its fields are the flags of weir
// simulate, and mean the same.
type SimulateRequest struct {
	Limits     []string `json:"limits"`               // each played by itself, such as "100/1m burst 20"
	Traffic    string   `json:"traffic,omitempty"`    // such as "boundary" or "3/1s@0s..1m,50@10s"
	Log        string   `json:"log,omitempty"`        // instead of traffic: lines of a time, a client and a cost
	Algorithms []string `json:"algorithms,omitempty"` // default all that can keep the limit
	Seed       *uint64  `json:"seed,omitempty"`       // of random traffic; default 1
	Columns    int      `json:"columns,omitempty"`    // slices of time, at most; default 60
}

// simulate answers POST /v1/simulate: what every algorithm makes of the same traffic.
// No time passes, and no client is charged.
func (h *Handler) simulate(c *call, want *SimulateRequest) (any, error) {
	if err := c.r.Context().Err(); err != nil {
		return nil, err
	}
	defer h.simulating.Add(-1)
	if h.simulating.Add(1) > maxSimulating {
		return nil, fault.Busy.Of("%d simulations are already running, the maximum; try again.", maxSimulating).After(time.Second).Coded("simulations-busy", "max", maxSimulating)
	}
	reports, err := want.play()
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if err := simulate.WriteJSON(&body, reports); err != nil {
		panic(err) // every report has a notation
	}
	return text{typeJSON, body.Bytes()}, nil
}

// validate says what cannot be played, and what is usual where nothing is said.
func (s *SimulateRequest) validate() error {
	switch {
	case len(s.Limits) == 0:
		return fault.Field("limits", `required; send a list, such as ["100/1m"].`).Coded("required")
	case len(s.Limits) > MaxSimulateLimits:
		return fault.Field("limits", "%d limits exceed the maximum of %d; send fewer.", len(s.Limits), MaxSimulateLimits).Coded("too-many", "max", MaxSimulateLimits)
	case s.Traffic == "" && s.Log == "":
		return fault.Field("traffic", `required; send for example "boundary" or "3/1s@0s..1m", or a log.`).Coded("required")
	case s.Traffic != "" && s.Log != "":
		return fault.Field("log", "cannot be combined with traffic; send one of them.").Coded("exclusive", "other", "traffic")
	case len(s.Algorithms) > len(simulate.LaneNames()):
		return fault.Field("algorithms", "%d names, but only %d algorithms exist; send each once.", len(s.Algorithms), len(simulate.LaneNames()))
	case s.Columns < 0 || s.Columns > MaxSimulateColumns:
		return fault.Field("columns", "%d is out of range; send 1 to %d.", s.Columns, MaxSimulateColumns).Coded("not-in-range", "value", s.Columns, "min", 1, "max", MaxSimulateColumns)
	case s.Columns == 0:
		s.Columns = defaultColumns
	}
	if s.Seed == nil {
		one := uint64(1)
		s.Seed = &one
	}
	return nil
}

// play makes a report of every limit. They share a bound on requests, so that many
// limits cost no more than one.
func (s *SimulateRequest) play() ([]*simulate.Report, error) {
	var runs []func() *simulate.Report // only if all of them can be: each is a lot of work
	left := MaxSimulateRequests
	for i, text := range s.Limits {
		where := fmt.Sprintf("limits[%d]", i)
		limit, err := weir.ParseLimit(text)
		if err != nil {
			return nil, fault.Field(where, "%s", plain(err))
		}
		traffic, err := s.traffic(limit, left)
		if err != nil {
			return nil, err
		}
		left -= len(traffic.Requests)
		lanes, leftOut := simulate.AllLanes(limit)
		if len(s.Algorithms) > 0 {
			leftOut = nil
			if lanes, err = simulate.Lanes(limit, s.Algorithms...); err != nil {
				return nil, fault.Field("algorithms", "%s", plain(err))
			}
		}
		traffic.Notes = append(traffic.Notes, leftOut...)
		runs = append(runs, func() *simulate.Report { return simulate.Run(limit, lanes, traffic, s.Columns) })
	}
	reports := make([]*simulate.Report, len(runs))
	for i, run := range runs {
		reports[i] = run()
	}
	return reports, nil
}

// traffic is what a limit is asked about: at most so many requests.
func (s *SimulateRequest) traffic(limit weir.Limit, most int) (traffic simulate.Traffic, err error) {
	field := "traffic"
	if s.Log != "" {
		// A log cannot have more requests than lines, so it is small until it is counted.
		field = "log"
		traffic, err = simulate.ParseLog("log", s.Log, limit)
	} else if most > 0 {
		traffic, err = simulate.ParseTraffic(s.Traffic, limit, *s.Seed, most)
	}
	switch {
	case err != nil:
		return traffic, fault.BadField.Of("%s", manage.Sentence(err)).In(field)
	case most == 0 || len(traffic.Requests) > most:
		return traffic, fault.Field(field, "all limits together have more than %d requests; send less traffic or fewer limits.", MaxSimulateRequests).Coded("too-much-traffic", "max", MaxSimulateRequests)
	}
	return traffic, nil
}

// plain is an error of the arithmetic without the name of its package, which is no
// business of a client's.
func plain(err error) string {
	var invalid *weir.InvalidError
	if errors.As(err, &invalid) {
		return manage.Ended(invalid.Reason)
	}
	return manage.Sentence(err)
}
