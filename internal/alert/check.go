// Package alert raises alerts: too many requests are denied, traffic has dropped,
// decisions have become slow, or the store is unavailable.
//
//	w, err := alert.New(alert.Options{Source: recorder, Notifiers: []alert.Notifier{webhook}})
//	go w.Run(ctx)
//	w.List().Active()
//
// An [Evaluator] is deterministic: the same seconds always give the same alerts. So all
// instances that share an archive get the same result, and one of them sends it.
//
// An alert fires when its condition has held for [Check.Hold] without a break. It is
// resolved when the condition has not held for [Check.Cooldown] without a break. So a
// value that fluctuates around its threshold causes one alert.
package alert

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/notation"
)

// Kind is the condition that a check looks at.
type Kind string

const (
	// Denied is the share of clients with denied requests in the window, if there are
	// at least three such clients: an attack, or a limit that is too low. If no client
	// is known, it is the share of denied requests.
	Denied Kind = "denied"

	// DeniedRequests is the share of denied requests in the window, without those of the
	// client with the most denials: an attack by more than one client.
	DeniedRequests Kind = "denied_requests"

	// Drop is a drop of the traffic to a share of what it was just before: limits are
	// too strict, or requests no longer reach weir.
	Drop Kind = "drop"

	// Slow is the 99th percentile of decision times, as a multiple of the previous
	// value.
	Slow Kind = "slow"

	// Errors is the share of requests that the upstream answers with an error or not at
	// all.
	Errors Kind = "errors"

	// Degraded is the share of requests that were decided without the store, until the
	// store has answered all of ten seconds.
	Degraded Kind = "degraded"

	// HotKey is the share of all denials that belong to one key.
	HotKey Kind = "hot_key"

	// Shadow is the share of requests that a shadow rule would deny. Each rule has its
	// own alert.
	Shadow Kind = "shadow"
)

// resolution is the time between two looks, of which windows are multiples.
const resolution = 10 * time.Second

// Check defines when an alert fires and is resolved.
type Check struct {
	// Kind is the condition. A set of checks has each kind at most once.
	Kind Kind

	// Threshold is the value from which the condition holds: a share of 0 to 1, or for
	// Slow a factor. For Drop it is the share below which traffic must not fall.
	Threshold float64

	// Window is the time over which the value is computed. Default 1 minute.
	Window time.Duration

	// Baseline is the time just before the window with which Drop and Slow compare it.
	// Default 10 minutes.
	Baseline time.Duration

	// Minimum is the number of requests in the window below which the check does
	// nothing. For HotKey it counts denials; for Drop, the requests in an equal part of
	// the baseline. Default 100.
	Minimum int64

	// Hold is how long the condition must hold before the alert fires. Default 30 s.
	Hold time.Duration

	// Cooldown is how long the condition must not hold before the alert is resolved.
	// Default 2 minutes.
	Cooldown time.Duration

	// Off switches the check off.
	Off bool
}

// slowFloor is a 99th percentile below which nothing is slow: differences of
// microseconds are the machine's.
const slowFloor = time.Millisecond

// Kinds returns all kinds of checks.
func Kinds() []string { return kinds(Defaults()) }

// Defaults returns the default checks.
func Defaults() []Check {
	return []Check{
		{Kind: Denied, Threshold: 0.05},
		{Kind: DeniedRequests, Threshold: 0.25},
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
			wrong = append(wrong, fmt.Errorf("alert: %q is not a kind of check, or is given twice; write each of %s at most once", c.Kind, strings.Join(Kinds(), ", ")))
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
		return fmt.Errorf("alert: the threshold %v of %s is invalid; write a share between 0 and 1, or for slow a factor above 1", c.Threshold, c.Kind)
	case c.Window < resolution || c.Window > maxWindow || c.Window%resolution != 0:
		return fmt.Errorf("alert: the window %v of %s is invalid; write a multiple of %v, up to %v", c.Window, c.Kind, resolution, maxWindow)
	case c.Baseline < c.Window || c.Baseline > maxBaseline || c.Baseline%resolution != 0:
		return fmt.Errorf("alert: the baseline %v of %s is invalid; write a multiple of %v from the window up to %v", c.Baseline, c.Kind, resolution, maxBaseline)
	case c.Minimum < 0 || c.Hold < 0 || c.Cooldown < 0:
		return fmt.Errorf("alert: the minimum, hold and cooldown of %s cannot be negative; leave them 0 for the defaults", c.Kind)
	}
	return nil
}

// OptionNames are the options that Parse accepts after the threshold.
var OptionNames = []string{"window", "baseline", "minimum", "hold", "cooldown"}

// Parse parses checks in the notation of the configuration, separated by semicolons:
//
//	denied=10%
//	denied=10%,window=5m,hold=1m; slow=3; hot_key=off
//
// Options are window, baseline, minimum, hold and cooldown; see Check. Everything else
// is as in Defaults.
func Parse(text string) ([]Check, error) {
	all, err := notation.ParseSettings(text)
	if err != nil {
		return nil, fmt.Errorf("alert: %w", err)
	}
	checks := Defaults()
	seen := map[string]bool{}
	for _, s := range all {
		i := slices.IndexFunc(checks, func(c Check) bool { return string(c.Kind) == s.Name })
		if i < 0 {
			return nil, fmt.Errorf("alert: unknown check %q; use %s", s.Name, strings.Join(kinds(checks), ", "))
		}
		if seen[s.Name] {
			return nil, fmt.Errorf("alert: %s is given twice; write it once", s.Name)
		}
		seen[s.Name] = true
		if err := checks[i].applySetting(s); err != nil {
			return nil, fmt.Errorf("alert: %s: %w", s.Name, err)
		}
	}
	if _, err := NewEvaluator(checks); err != nil {
		return nil, err
	}
	return checks, nil
}

func kinds(checks []Check) []string {
	var names []string
	for _, c := range checks {
		names = append(names, string(c.Kind))
	}
	return names
}

// applySetting takes over what a setting says.
func (c *Check) applySetting(s notation.Setting) (err error) {
	if c.Off = s.Value == "off"; !c.Off {
		if c.Threshold, err = parseThreshold(s.Value); err != nil {
			return err
		}
	}
	times := map[string]*time.Duration{"window": &c.Window, "baseline": &c.Baseline, "hold": &c.Hold, "cooldown": &c.Cooldown}
	for _, o := range s.Options {
		switch length := times[o.Name]; {
		case length != nil:
			if *length, err = notation.ParseDuration(o.Value); err != nil || *length <= 0 {
				return fmt.Errorf("%s: %q is not a duration; write it as 30s, 5m or 2h", o.Name, o.Value)
			}
		case o.Name == "minimum":
			if c.Minimum, err = strconv.ParseInt(o.Value, 10, 64); err != nil || c.Minimum < 1 {
				return fmt.Errorf("minimum: %q is not a number of requests; write a whole number from 1", o.Value)
			}
		default:
			return fmt.Errorf("unknown option %q; use %s", o.Name, strings.Join(OptionNames, ", "))
		}
	}
	return nil
}

// parseThreshold reads a share, as 5% or 0.05, or a factor.
func parseThreshold(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		value /= 100
	}
	if err != nil || !(value > 0) || value > 1e6 {
		return 0, fmt.Errorf("%q is not a threshold; write a share as 5%%, a factor as 3, or off", text)
	}
	return value, nil
}
