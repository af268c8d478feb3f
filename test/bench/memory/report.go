package memory

import (
	"fmt"
	"io"
	"slices"

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
