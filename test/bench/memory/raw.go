package memory

import (
	"encoding/json"
	"io"

	"github.com/weirhq/weir/test/bench/internal/machine"
)

// rawFigure is a line of the raw results; each stands for itself.
type rawFigure struct {
	Kind       string    `json:"kind"`
	Contestant string    `json:"contestant"`
	Keys       int       `json:"keys"`
	Outcome    string    `json:"outcome"`
	Procs      int       `json:"gomaxprocs"`
	Checks     int       `json:"checks_per_goroutine"`
	Rounds     []float64 `json:"rounds_ns"`
	Median     float64   `json:"median_ns"`
	Ratio      float64   `json:"ratio_to_fastest_peer"`
	Allocs     float64   `json:"allocs_per_check"`
	machine.Description
}

type rawSize struct {
	Kind       string  `json:"kind"`
	Contestant string  `json:"contestant"`
	Keys       int     `json:"keys"`
	Once       float64 `json:"bytes_per_key_once"`
	Exhausted  float64 `json:"bytes_per_key_exhausted"`
	machine.Description
}

// WriteRaw writes everything that was measured, every round of it, as lines of
// JSON.
func WriteRaw(w io.Writer, m machine.Description, figures []Figure, sizes []Size) error {
	out := json.NewEncoder(w)
	for _, f := range figures {
		if err := out.Encode(rawFigure{
			"check", f.Contestant.Name, f.Scenario.Keys, f.Scenario.outcome(), f.Scenario.Procs,
			f.Checks, f.Rounds, f.Median, f.Ratio, f.Allocs, m,
		}); err != nil {
			return err
		}
	}
	for _, s := range sizes {
		if err := out.Encode(rawSize{"bytes", s.Contestant.Name, s.Keys, s.Once, s.Exhausted, m}); err != nil {
			return err
		}
	}
	return nil
}
