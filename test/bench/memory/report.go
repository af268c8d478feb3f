package memory

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/table"
)

// WriteTables writes what a person reads: a table for each outcome and
// GOMAXPROCS, then what each contestant keeps and promises.
func WriteTables(w io.Writer, m machine.Description, figures []Figure, sizes []Size) error {
	fmt.Fprintln(w, m)
	fmt.Fprintln(w, "ns: what one check takes for the goroutine that asks; median of the rounds.")
	fmt.Fprintln(w, "×: ratio to the fastest peer in the same column; below 1.00 is faster than all of them.")
	for _, group := range groups(figures) {
		fmt.Fprintf(w, "\n## %s, GOMAXPROCS %d\n\n", group.outcome(), group.Procs)
		if err := writeGroup(w, group, figures, sizes); err != nil {
			return err
		}
	}
	writeNotes(w, figures)
	fmt.Fprintf(w, "\n## bytes a key, with %s keys\n\n", table.Count(int64(sizes[0].Keys)))
	return writeSizes(w, sizes)
}

// groups are the scenarios that share a table: all but for the number of keys.
func groups(figures []Figure) []Scenario {
	var out []Scenario
	for _, f := range figures {
		sc := f.Scenario
		sc.Keys = 0
		if !slices.Contains(out, sc) {
			out = append(out, sc)
		}
	}
	return out
}

func writeGroup(w io.Writer, group Scenario, figures []Figure, sizes []Size) error {
	header := []string{"contestant"}
	var names []string
	cells := map[string][]string{}
	allocs := map[string]float64{}
	keys := 0
	for _, f := range figures {
		sc := f.Scenario
		if sc.Admitted != group.Admitted || sc.Procs != group.Procs {
			continue
		}
		if sc.Keys != keys {
			keys = sc.Keys
			header = append(header, "ns, keys: "+table.Count(int64(keys)), "×")
		}
		name := f.Contestant.Name
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		cells[name] = append(cells[name], fmt.Sprintf("%.0f", f.Median), fmt.Sprintf("%.2f", f.Ratio))
		allocs[name] = max(allocs[name], f.Allocs)
	}
	header = append(header, "allocs", "bytes a key")
	var rows [][]string
	for _, name := range names {
		row := append([]string{name}, cells[name]...)
		rows = append(rows, append(row, fmt.Sprintf("%.2f", allocs[name]), bytesOf(name, group, sizes)))
	}
	return table.Write(w, header, rows)
}

func bytesOf(name string, group Scenario, sizes []Size) string {
	for _, s := range sizes {
		switch {
		case s.Contestant.Name != name:
		case group.Admitted:
			return fmt.Sprintf("%.0f", s.Once)
		default:
			return fmt.Sprintf("%.0f", s.Exhausted)
		}
	}
	return "-"
}

func writeNotes(w io.Writer, figures []Figure) {
	var said []string
	for _, f := range figures {
		c := f.Contestant
		if c.Note != "" && !slices.Contains(said, c.Name) {
			said = append(said, c.Name)
			fmt.Fprintf(w, "\n%s: %s.\n", c.Name, c.Note)
		}
	}
}

func writeSizes(w io.Writer, sizes []Size) error {
	var rows [][]string
	for _, s := range sizes {
		c := s.Contestant
		rows = append(rows, []string{c.Name, fmt.Sprintf("%.0f", s.Once), fmt.Sprintf("%.0f", s.Exhausted), c.Key, c.Promise})
	}
	return table.Write(w, []string{"contestant", "seen once", "100 units", "<the key's text", "<what it promises"}, rows)
}

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

// WriteSummary writes one table of ratios: every contestant, every scenario.
func WriteSummary(w io.Writer, figures []Figure, sizes []Size) error {
	var keys []string
	ratios := map[string]map[Scenario][]string{}
	allocs := map[string]float64{}
	var names []string
	for _, f := range figures {
		if f.Contestant.Name == idle().Name {
			continue
		}
		name, sc := f.Contestant.Name, f.Scenario
		if k := table.Count(int64(sc.Keys)); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
		sc.Keys = 0
		if ratios[name] == nil {
			ratios[name] = map[Scenario][]string{}
			names = append(names, name)
		}
		ratios[name][sc] = append(ratios[name][sc], fmt.Sprintf("%.2f", f.Ratio))
		allocs[name] = max(allocs[name], f.Allocs)
	}
	header := []string{"time × fastest peer"}
	for _, group := range groups(figures) {
		header = append(header, fmt.Sprintf("%s, %d CPU", group.outcome(), group.Procs))
	}
	header = append(header, "allocs", "bytes a key")
	var rows [][]string
	for _, name := range names {
		row := []string{name}
		for _, group := range groups(figures) {
			row = append(row, strings.Join(ratios[name][group], "  "))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.2f", allocs[name]), bytesOf(name, Scenario{Admitted: true}, sizes)))
	}
	if err := table.Write(w, header, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nThree figures each: %s keys. Below 1.00 is faster than every peer.\n", strings.Join(keys, ", "))
	return err
}
