// Package alert says when something is wrong: too many requests are denied, traffic
// has fallen away, decisions have become slow, the store is unavailable.
//
//	w, err := alert.New(alert.Options{Source: recorder, Notifiers: []alert.Notifier{webhook}})
//	go w.Run(ctx)
//	w.List().Active()
//
// An [Evaluator] is pure: seconds in, alerts out, and the same seconds always give the
// same alerts. So every instance of weir that shares an archive comes to the same
// result, and one of them sends it.
//
// An alert fires when its condition has held for [Check.Hold] without a break, and is
// resolved when it has not held for [Check.Cooldown] without a break. In between it stays
// what it is, so that a figure which dances around its threshold makes one alert.
package alert

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Kind is what a check looks at.
type Kind string

const (
	// Denied is the share of clients that limits have denied something in the window,
	// if there are at least three of them: an attack, or a limit that is too low. Where
	// no client is known, it is the share of requests.
	Denied Kind = "denied"

	// Drop is traffic that has fallen to a share of what it was just before: limits
	// that are too strict, or nobody gets here any more.
	Drop Kind = "drop"

	// Slow is the 99th percentile of decisions, as a multiple of what it was before.
	Slow Kind = "slow"

	// Errors is the share of requests that the upstream answers badly or not at all.
	Errors Kind = "errors"

	// Degraded is the share of requests that were judged without the store.
	Degraded Kind = "degraded"

	// HotKey is the share of all denials that one key has.
	HotKey Kind = "hot_key"

	// Shadow is the share of requests that a shadow rule would deny. Each rule has
	// an alert of its own.
	Shadow Kind = "shadow"
)

// resolution is the time between two looks, of which windows are multiples.
const resolution = 10 * time.Second

// Check is a condition, and how long it must hold.
type Check struct {
	// Kind is what to look at. A set of checks has each kind at most once.
	Kind Kind

	// Threshold is the value from which the condition holds: a share of 0 to 1, or
	// for Slow a factor. For Drop it is the share that traffic must not fall below.
	Threshold float64

	// Window is over how long the value is taken. Default a minute.
	Window time.Duration

	// Baseline is over how long the traffic just before the window is taken that
	// Drop and Slow compare it with. Default ten minutes.
	Baseline time.Duration

	// Minimum is how many requests there must be in the window for a value to mean
	// anything; for HotKey, denials; for Drop, requests in as much of the baseline.
	// Default 100.
	Minimum int64

	// Hold is how long the condition must hold before the alert fires. Default 30 s.
	Hold time.Duration

	// Cooldown is how long the condition must not hold before it is resolved. Default
	// two minutes.
	Cooldown time.Duration

	// Off switches the check off.
	Off bool
}

// slowFloor is a 99th percentile below which nothing is slow: differences of
// microseconds are the machine's.
const slowFloor = time.Millisecond

// Kinds returns all kinds of checks.
func Kinds() []string { return kinds(Defaults()) }

// Defaults returns the checks that are made if nobody says otherwise.
func Defaults() []Check {
	return []Check{
		{Kind: Denied, Threshold: 0.05},
		{Kind: Drop, Threshold: 0.5},
		{Kind: Slow, Threshold: 3},
		{Kind: Errors, Threshold: 0.05},
		{Kind: Degraded, Threshold: 0.01, Minimum: 1},
		{Kind: HotKey, Threshold: 0.5},
		{Kind: Shadow, Threshold: 0.01},
	}
}

// withDefaults returns the checks with everything said.
func withDefaults(checks []Check) ([]Check, error) {
	known := map[Kind]Check{}
	for _, c := range Defaults() {
		known[c.Kind] = c
	}
	var all []Check
	var wrong []error
	for _, c := range checks {
		initial, ok := known[c.Kind]
		if !ok {
			wrong = append(wrong, fmt.Errorf("alert: %q is no kind of check, or there twice; write each of denied, drop, slow, errors, degraded, hot_key and shadow at most once", c.Kind))
			continue
		}
		delete(known, c.Kind)
		if c.Off {
			continue
		}
		c.Threshold = cmp.Or(c.Threshold, initial.Threshold)
		c.Minimum = cmp.Or(c.Minimum, initial.Minimum, 100)
		c.Window, c.Baseline = cmp.Or(c.Window, time.Minute), cmp.Or(c.Baseline, 10*time.Minute)
		c.Hold, c.Cooldown = cmp.Or(c.Hold, 30*time.Second), cmp.Or(c.Cooldown, 2*time.Minute)
		if err := c.validate(); err != nil {
			wrong = append(wrong, err)
		}
		all = append(all, c)
	}
	return all, errors.Join(wrong...)
}

// Bounds on how far a check looks back.
const (
	maxWindow   = 15 * time.Minute
	maxBaseline = 45 * time.Minute
)

func (c *Check) validate() error {
	switch {
	case !(c.Threshold > 0) || c.Kind == Slow && c.Threshold <= 1 || c.Kind != Slow && c.Threshold >= 1:
		return fmt.Errorf("alert: the threshold %v of %s makes no sense; write a share between 0 and 1, or for slow a factor above 1", c.Threshold, c.Kind)
	case c.Window < resolution || c.Window > maxWindow || c.Window%resolution != 0:
		return fmt.Errorf("alert: the window %v of %s cannot be used; write a multiple of %v, up to %v", c.Window, c.Kind, resolution, maxWindow)
	case c.Baseline < c.Window || c.Baseline > maxBaseline || c.Baseline%resolution != 0:
		return fmt.Errorf("alert: the baseline %v of %s cannot be used; write a multiple of %v from the window up to %v", c.Baseline, c.Kind, resolution, maxBaseline)
	case c.Minimum < 0 || c.Hold < 0 || c.Cooldown < 0:
		return fmt.Errorf("alert: the minimum, hold and cooldown of %s cannot be negative; leave them 0 for the defaults", c.Kind)
	}
	return nil
}
