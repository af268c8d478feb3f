package redis

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/table"
	"github.com/weirhq/weir/test/bench/peers"
)

const heading = `µs: wall time by checks, of all callers together; median of the rounds.
×: ratio in the same table to redis_rate with its usual pool of connections.
server µs: what a check takes of the server's processor, which is one core.
`

// WriteTables writes what a person reads: a table for each scenario, what each
// contestant keeps and promises, and whether weir's aims are met.
func (r Results) WriteTables(w io.Writer, m machine.Description) error {
	fmt.Fprintf(w, "%v, Redis %s on the same machine\n%s", m, r.Redis, heading)
	for _, sc := range scenarios(r.Figures) {
		fmt.Fprintf(w, "\n## %s\n\n", sc)
		if err := writeScenario(w, sc, r.Figures); err != nil {
			return err
		}
	}
	if err := r.writeFew(w); err != nil {
		return err
	}
	if err := writeSizes(w, r.Sizes); err != nil {
		return err
	}
	return writeAims(w, r.Figures, r.Few)
}

// writeFew writes how the time changes from one caller to many.
func (r Results) writeFew(w io.Writer) error {
	all := slices.Concat(r.Figures, r.Few)
	first := r.Figures[0].Scenario
	same := func(sc Scenario) bool { return sc.Keys == first.Keys && sc.Allowed == first.Allowed }
	var callers []int
	for _, f := range all {
		if same(f.Scenario) && !slices.Contains(callers, f.Scenario.Callers) {
			callers = append(callers, f.Scenario.Callers)
		}
	}
	slices.Sort(callers)
	var rows [][]string
	for _, n := range callers {
		sc := Scenario{first.Keys, first.Allowed, n}
		row := []string{fmt.Sprint(n)}
		for _, name := range measuredAmongFew {
			row = append(row, fmt.Sprintf("%.2f", of(all, sc, name).Median))
		}
		f := of(all, sc, peers.WeirHeadline)
		rows = append(rows, append(row, fmt.Sprintf("%.2f", f.ToIncr), fmt.Sprintf("%.2f", f.ToRedisRate)))
	}
	fmt.Fprintf(w, "\n## from one caller to many: %s, %s\n\n", table.Things(first.Keys, "key"), first.Allowed)
	header := append([]string{"callers"}, measuredAmongFew...)
	return table.Write(w, append(header, "× INCR", "× redis_rate"), rows)
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

func writeSizes(w io.Writer, sizes []Size) error {
	var rows [][]string
	for _, s := range sizes {
		c := s.Contestant
		c.WriteNote(w)
		rows = append(rows, []string{
			c.Name, whole(s.UsageOnce), whole(s.UsageExhausted), whole(s.GrownOnce), whole(s.GrownExhausted), c.Key, c.Promise,
		})
	}
	fmt.Fprintf(w, "\n## bytes a key, with %s keys\n\n", table.Count(int64(sizes[0].Keys)))
	if err := table.Write(w, []string{
		"contestant", "seen once", "100 units", "grown, once", "grown, 100 units", "<what is kept", "<what it promises",
	}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, "\nBy MEMORY USAGE, which is keys and values; grown is used_memory, with a key's share of\nthe tables of keys and of expiries, and what to size a server by.\n")
	return err
}

func whole(x float64) string { return fmt.Sprintf("%.0f", x) }

// WriteRaw writes everything that was measured, every round of it, as lines of
// JSON, each of which stands for itself.
func (r Results) WriteRaw(w io.Writer, m machine.Description) error {
	out := json.NewEncoder(w)
	for _, f := range slices.Concat(r.Figures, r.Few) {
		if err := out.Encode(struct {
			Kind string `json:"kind"`
			Figure
			Redis string `json:"redis"`
			machine.Description
		}{"check", f, r.Redis, m}); err != nil {
			return err
		}
	}
	for _, s := range r.Sizes {
		if err := out.Encode(struct {
			Kind string `json:"kind"`
			Size
			Redis string `json:"redis"`
			machine.Description
		}{"bytes", s, r.Redis, m}); err != nil {
			return err
		}
	}
	return nil
}

// WriteSummary writes one table: every contestant, every scenario as a ratio to
// redis_rate, and what the first scenario costs the server.
func (r Results) WriteSummary(w io.Writer) error {
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
		rows = append(rows, append(row, fmt.Sprintf("%.1f", server), whole(s.UsageOnce)))
	}
	if err := table.Write(w, header, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s unless the column says one; requests are allowed unless it says denied. Below 1.00\nis faster than redis_rate with its usual pool of connections. Server µs and bytes are for %s.\n",
		table.Things(all[0].Callers, "caller"), table.Things(all[0].Keys, "key"))
	return err
}
