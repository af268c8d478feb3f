package redis

import (
	"encoding/json"
	"io"

	"github.com/weirhq/weir/test/bench/internal/machine"
)

// rawFigure is a line of the raw results; each stands for itself.
type rawFigure struct {
	Kind        string    `json:"kind"`
	Contestant  string    `json:"contestant"`
	Keys        int       `json:"keys"`
	Outcome     string    `json:"outcome"`
	Callers     int       `json:"callers"`
	Checks      []int     `json:"rounds_checks"`
	Rounds      []float64 `json:"rounds_us"`
	Median      float64   `json:"median_us"`
	ToIncr      float64   `json:"ratio_to_incr"`
	ToRedisRate float64   `json:"ratio_to_redis_rate"`
	Server      float64   `json:"server_us_per_check"`
	Allocs      float64   `json:"allocs_per_check"`
	P50         float64   `json:"p50_us,omitzero"`
	P99         float64   `json:"p99_us,omitzero"`
	Redis       string    `json:"redis"`
	machine.Description
}

type rawSize struct {
	Kind           string  `json:"kind"`
	Contestant     string  `json:"contestant"`
	Keys           int     `json:"keys"`
	UsageOnce      float64 `json:"memory_usage_per_key_once"`
	UsageExhausted float64 `json:"memory_usage_per_key_exhausted"`
	GrownOnce      float64 `json:"used_memory_per_key_once"`
	GrownExhausted float64 `json:"used_memory_per_key_exhausted"`
	Redis          string  `json:"redis"`
	machine.Description
}

// WriteRaw writes everything that was measured, every round of it, as lines of
// JSON.
func WriteRaw(w io.Writer, m machine.Description, r Results) error {
	out := json.NewEncoder(w)
	for _, f := range r.Figures {
		if err := out.Encode(rawFigure{
			"check", f.Contestant.Name, f.Scenario.Keys, f.Scenario.outcome(), f.Scenario.Callers, f.Checks, f.Rounds,
			f.Median, f.ToIncr, f.ToRedisRate, f.Server, f.Allocs, f.P50, f.P99, r.Redis, m,
		}); err != nil {
			return err
		}
	}
	for _, s := range r.Sizes {
		if err := out.Encode(rawSize{
			"bytes", s.Contestant.Name, s.Keys, s.Once.Usage, s.Exhausted.Usage, s.Once.Grown, s.Exhausted.Grown, r.Redis, m,
		}); err != nil {
			return err
		}
	}
	return nil
}
