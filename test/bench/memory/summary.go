package memory

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weirhq/weir/test/bench/internal/table"
)

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
