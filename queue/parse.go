package queue

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/notation"
)

// Parse parses queues in the notation of the configuration, separated by semicolons:
//
//	mail=10/1s
//	mail=10/1s,capacity=5000,visibility=1m; sms=1/1s
//
// Options are capacity, max_payload, visibility, max_tries, backoff, max_backoff,
// max_dead and remember; see Settings.
func Parse(text string) (map[string]Settings, error) {
	all, err := notation.ParseSettings(text)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	queues := make(map[string]Settings, len(all))
	for _, s := range all {
		if _, twice := queues[s.Name]; twice {
			return nil, fmt.Errorf("queue: %q is given twice; write it once", s.Name)
		}
		settings, err := parse(s)
		if err != nil {
			return nil, fmt.Errorf("queue: %q: %w", s.Name, err)
		}
		queues[s.Name] = settings
	}
	if _, err := Declare(queues); err != nil {
		return nil, err
	}
	return queues, nil
}

func parse(written notation.Setting) (Settings, error) {
	limit, err := weir.ParseLimit(written.Value)
	if err != nil || strings.Contains(written.Value, " ") { // a pace has no algorithm and no burst
		return Settings{}, fmt.Errorf("%q is not a rate; write N/period, as in 10/1s", written.Value)
	}
	s := Settings{N: limit.N, Period: limit.Period}
	counts := map[string]*int{"capacity": &s.Capacity, "max_payload": &s.MaxPayload, "max_tries": &s.MaxTries, "max_dead": &s.MaxDead}
	times := map[string]*time.Duration{"visibility": &s.Visibility, "backoff": &s.Backoff, "max_backoff": &s.MaxBackoff, "remember": &s.Remember}
	for _, o := range written.Options {
		switch count, length := counts[o.Name], times[o.Name]; {
		case count != nil:
			if *count, err = strconv.Atoi(o.Value); err != nil || *count < 1 {
				return s, fmt.Errorf("%s: %q is not a number; write a whole number from 1", o.Name, o.Value)
			}
		case length != nil:
			if *length, err = notation.ParseDuration(o.Value); err != nil || *length <= 0 {
				return s, fmt.Errorf("%s: %q is not a duration; write it as 30s, 5m or 2h", o.Name, o.Value)
			}
		default:
			return s, unknownOption(o.Name)
		}
	}
	return s, nil
}

var options = []string{"capacity", "max_payload", "visibility", "max_tries", "backoff", "max_backoff", "max_dead", "remember"}

func unknownOption(name string) error {
	if near := notation.Nearest(name, options); near != "" {
		return fmt.Errorf("unknown option %q; did you mean %s?", name, near)
	}
	return fmt.Errorf("unknown option %q; use %s", name, strings.Join(options, ", "))
}
