package alert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/duration"
	"github.com/weirhq/weir/internal/setting"
)

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
	all, err := setting.Parse(text)
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
		if err := checks[i].read(s); err != nil {
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

// read takes over what a setting says.
func (c *Check) read(s setting.Setting) (err error) {
	if c.Off = s.Value == "off"; !c.Off {
		if c.Threshold, err = parseThreshold(s.Value); err != nil {
			return err
		}
	}
	times := map[string]*time.Duration{"window": &c.Window, "baseline": &c.Baseline, "hold": &c.Hold, "cooldown": &c.Cooldown}
	for _, o := range s.Options {
		switch length := times[o.Name]; {
		case length != nil:
			if *length, err = duration.Parse(o.Value); err != nil || *length <= 0 {
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
