package alert

import (
	"slices"
	"strings"
	"time"
)

// State tells whether an alert fires.
type State string

const (
	Firing   State = "firing"
	Resolved State = "resolved"
)

// Alert is a condition that holds, or held.
type Alert struct {
	ID        string    `json:"id"`   // kind and subject
	Kind      Kind      `json:"kind"` // the condition
	Subject   string    `json:"subject,omitempty"`
	Rule      string    `json:"rule,omitempty"` // the rule that denied most when the alert fired, or would have denied most; of a hot key, the one that denied it most
	State     State     `json:"state"`
	Value     float64   `json:"value"`   // the value when the alert fired
	Current   float64   `json:"current"` // the value at UpdatedAt
	Threshold float64   `json:"threshold"`
	Summary   string    `json:"summary"` // a sentence about the time when it fired, with the rule; in notifications also with the instance
	StartsAt  time.Time `json:"starts_at"`
	EndsAt    time.Time `json:"ends_at,omitzero"`

	// QuietSince is since when the condition of an alert that fires has not held. If that lasts
	// for the cooldown, the alert is resolved.
	QuietSince time.Time `json:"quiet_since,omitzero"`

	UpdatedAt time.Time `json:"updated_at"`
	Silenced  bool      `json:"silenced,omitempty"`
	Instance  string    `json:"instance,omitempty"` // the instance that reports it
	URL       string    `json:"url,omitempty"`      // page with details, at the time of the alert
}

// Evaluator turns samples into alerts. It reads no clock and sends nothing: the same
// samples always give the same alerts. It is not safe for concurrent use.
type Evaluator struct {
	checks  []Check
	history history
	keep    int64 // seconds of history
	hot     *Hot
	current map[string]*condition
}

// condition is a check for a subject, while there is something to remember of it.
type condition struct {
	alert  Alert
	check  *Check
	firing bool
	since  int64 // since when it holds
	seen   bool  // in this round
}

// maxConditions bounds how many conditions are remembered. Keys are a client's choice.
const maxConditions = 1000

// NewEvaluator returns an evaluator for the given checks; nil selects the defaults.
func NewEvaluator(checks []Check) (*Evaluator, error) {
	if checks == nil {
		checks = Defaults()
	}
	checks, err := withDefaults(checks)
	if err != nil {
		return nil, err
	}
	e := &Evaluator{checks: checks, current: map[string]*condition{}}
	for i := range checks {
		e.keep = max(e.keep, int64((checks[i].Window+checks[i].Baseline)/time.Second))
	}
	e.keep += int64(resolution / time.Second)
	return e, nil
}

// Reach returns how much of the past an evaluator needs. An evaluator that starts with
// that much history gives the same alerts as one that has always run, except for older
// alerts.
func (e *Evaluator) Reach() time.Duration {
	longest := time.Duration(0)
	for i := range e.checks {
		longest = max(longest, e.checks[i].Hold+e.checks[i].Cooldown)
	}
	return time.Duration(e.keep)*time.Second + longest
}

// Add adds a sample, and returns the alerts that started to fire or were resolved. Add
// samples in order of time; a sample of an earlier ten-second slot than the newest is ignored. The checks run every ten seconds.
func (e *Evaluator) Add(s Sample) []Alert {
	step := int64(resolution / time.Second)
	at := s.Time.Unix() - s.Time.Unix()%step
	var changed []Alert
	newest := int64(0)
	if n := len(e.history); n > 0 {
		newest = e.history[n-1].at
		if at < newest {
			return nil
		}
		if at-newest > e.keep {
			// After such a gap the past says nothing. What fires is told off by the
			// rounds to come.
			e.history, newest = nil, 0
		}
	}
	if newest != 0 {
		for ; newest < at; newest += step {
			changed = append(changed, e.round(newest+step)...)
			e.pushBucket(newest + step)
		}
	} else {
		e.pushBucket(at)
	}
	if s.Hot != nil {
		e.hot = s.Hot
	}
	e.history[len(e.history)-1].addFrame(s.Frame)
	return changed
}

// pushBucket begins a bucket, and forgets those that are too old.
func (e *Evaluator) pushBucket(at int64) {
	e.history = append(e.history, &bucket{at: at})
	old := slices.IndexFunc(e.history, func(b *bucket) bool { return b.at >= at-e.keep })
	e.history = slices.Delete(e.history, 0, old)
}

// round makes all checks as of the end of a bucket.
func (e *Evaluator) round(now int64) (changed []Alert) {
	for i := range e.checks {
		c := &e.checks[i]
		for _, f := range c.measure(e.history, now, e.hot) {
			if a := e.holds(c, f, now); a != nil {
				changed = append(changed, *a)
			}
		}
	}
	for id, cond := range e.current {
		if cond.seen {
			cond.seen = false
			continue
		}
		if a := e.doesNotHold(id, cond, now); a != nil {
			changed = append(changed, *a)
		}
	}
	slices.SortFunc(changed, func(a, b Alert) int { return strings.Compare(a.ID, b.ID) })
	return changed
}

// holds notes that a condition holds, and returns the alert if it fires now.
func (e *Evaluator) holds(c *Check, f finding, now int64) *Alert {
	id := string(c.Kind)
	if f.subject != "" {
		id += ":" + f.subject
	}
	cond := e.current[id]
	if cond == nil {
		if len(e.current) >= maxConditions {
			return nil
		}
		cond = &condition{check: c, since: now, alert: Alert{ID: id, Kind: c.Kind, Subject: f.subject, Threshold: c.Threshold}}
		e.current[id] = cond
	}
	at := time.Unix(now, 0).UTC()
	cond.seen = true
	cond.alert.Current, cond.alert.UpdatedAt, cond.alert.QuietSince = f.value, at, time.Time{}
	if cond.firing {
		return nil // what was said of it stays said
	}
	cond.alert.Value, cond.alert.Summary, cond.alert.Rule = f.value, f.text, f.rule
	if now-cond.since < int64(c.Hold/time.Second) {
		return nil
	}
	cond.firing = true
	cond.alert.State, cond.alert.StartsAt = Firing, time.Unix(cond.since, 0).UTC()
	return &cond.alert
}

// doesNotHold notes that, and returns the alert if it is resolved now.
func (e *Evaluator) doesNotHold(id string, cond *condition, now int64) *Alert {
	if !cond.firing {
		delete(e.current, id)
		return nil
	}
	at := time.Unix(now, 0).UTC()
	if cond.alert.QuietSince.IsZero() {
		cond.alert.QuietSince = at
	}
	if at.Sub(cond.alert.QuietSince) < cond.check.Cooldown.Truncate(time.Second) {
		return nil
	}
	delete(e.current, id)
	a := cond.alert
	a.State, a.EndsAt, a.UpdatedAt, a.QuietSince = Resolved, at, at, time.Time{}
	return &a
}

// Firing returns the alerts that fire, ordered by id.
func (e *Evaluator) Firing() []Alert {
	var all []Alert
	for _, cond := range e.current {
		if cond.firing {
			all = append(all, cond.alert)
		}
	}
	slices.SortFunc(all, func(a, b Alert) int { return strings.Compare(a.ID, b.ID) })
	return all
}
