package redis

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/table"
)

const heading = `µs: wall time by checks, of all callers together; median of the rounds.
×: ratio in the same table; redis_rate is the one on a pool of connections, as people run it.
server µs: what a check takes of the server's processor, which is one core.
`

// WriteTables writes what a person reads: a table for each scenario, what each
// contestant keeps and promises, and whether weir's aims are met.
func WriteTables(w io.Writer, m machine.Description, r Results) error {
	fmt.Fprintf(w, "%v, Redis %s on the same machine\n%s", m, r.Redis, heading)
	for _, sc := range scenarios(r.Figures) {
		fmt.Fprintf(w, "\n## %s\n\n", sc)
		if err := writeScenario(w, sc, r.Figures); err != nil {
			return err
		}
	}
	writeNotes(w, r.Figures)
	if err := writeSizes(w, r.Sizes); err != nil {
		return err
	}
	return writeAims(w, r.Figures)
}

func scenarios(figures []Figure) []Scenario {
	var out []Scenario
	for _, f := range figures {
		if !slices.Contains(out, f.Scenario) {
			out = append(out, f.Scenario)
		}
	}
	return out
}

func writeScenario(w io.Writer, sc Scenario, figures []Figure) error {
	header := []string{"contestant", "µs", "× INCR", "× redis_rate", "server µs", "allocs"}
	if sc.Callers == 1 {
		header = append(header, "p50 µs", "p99 µs")
	}
	var rows [][]string
	for _, f := range figures {
		if f.Scenario != sc {
			continue
		}
		row := []string{
			f.Contestant.Name, fmt.Sprintf("%.2f", f.Median), fmt.Sprintf("%.2f", f.ToIncr), fmt.Sprintf("%.2f", f.ToRedisRate),
			fmt.Sprintf("%.2f", f.Server), fmt.Sprintf("%.1f", f.Allocs),
		}
		if sc.Callers == 1 {
			row = append(row, fmt.Sprintf("%.1f", f.P50), fmt.Sprintf("%.1f", f.P99))
		}
		rows = append(rows, row)
	}
	return table.Write(w, header, rows)
}

func writeNotes(w io.Writer, figures []Figure) {
	var said []string
	for _, f := range figures {
		if c := f.Contestant; c.Note != "" && !slices.Contains(said, c.Name) {
			said = append(said, c.Name)
			fmt.Fprintf(w, "\n%s: %s.\n", c.Name, c.Note)
		}
	}
}

func writeSizes(w io.Writer, sizes []Size) error {
	fmt.Fprintf(w, "\n## bytes a key, with %s keys\n\n", table.Count(int64(sizes[0].Keys)))
	var rows [][]string
	for _, s := range sizes {
		c := s.Contestant
		rows = append(rows, []string{
			c.Name, whole(s.Once.Usage), whole(s.Exhausted.Usage), whole(s.Once.Grown), whole(s.Exhausted.Grown), c.Key, c.Promise,
		})
	}
	if err := table.Write(w, []string{
		"contestant", "seen once", "100 units", "grown, once", "grown, 100 units", "<what is kept", "<what it promises",
	}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, "\nBy MEMORY USAGE, which is keys and values; grown is used_memory, with a key's share of\nthe tables of keys and of expiries, and what to size a server by.\n")
	return err
}

func whole(x float64) string { return fmt.Sprintf("%.0f", x) }

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

// WriteSummary writes one table: every contestant, every scenario as a ratio to
// redis_rate, and what the first scenario costs the server.
func WriteSummary(w io.Writer, r Results) error {
	all := scenarios(r.Figures)
	header := []string{"time × redis_rate"}
	for _, sc := range all {
		header = append(header, sc.short())
	}
	header = append(header, "server µs", "bytes a key")
	var rows [][]string
	for i, s := range r.Sizes {
		row, server := []string{s.Contestant.Name}, 0.0
		for j := range all {
			// The figures come scenario by scenario, in the order of the sizes.
			f := r.Figures[j*len(r.Sizes)+i]
			row = append(row, fmt.Sprintf("%.2f", f.ToRedisRate))
			if j == 0 {
				server = f.Server
			}
		}
		rows = append(rows, append(row, fmt.Sprintf("%.1f", server), whole(s.Once.Usage)))
	}
	if err := table.Write(w, header, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s, where not one; admitted, where not refused. Below 1.00 is faster than\nredis_rate on a pool of connections, as people run it. Server µs and bytes are those of %s.\n",
		count(all[0].Callers, "caller"), count(all[0].Keys, "key"))
	return err
}
