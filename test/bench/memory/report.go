package memory

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/table"
	"github.com/weirhq/weir/test/bench/peers"
)

// WriteTables writes what a person reads: a table for each outcome and
// GOMAXPROCS, then what each contestant keeps and promises.
func (r Results) WriteTables(w io.Writer, m machine.Description) error {
	fmt.Fprintln(w, m)
	fmt.Fprintln(w, "ns: what one check takes for the goroutine that asks; median of the rounds.")
	fmt.Fprintln(w, "×: ratio to the fastest peer in the same column; below 1.00 is faster than all of them.")
	for _, group := range r.groups() {
		fmt.Fprintf(w, "\n## %s, GOMAXPROCS %d\n\n", group.Allowed, group.Procs)
		if err := r.writeGroup(w, group); err != nil {
			return err
		}
	}
	return r.writeSizes(w)
}

// groups are the scenarios that share a table: all but for the number of keys.
func (r Results) groups() (out []Scenario) {
	for _, f := range r.Figures {
		sc := f.Scenario
		sc.Keys = 0
		if !slices.Contains(out, sc) {
			out = append(out, sc)
		}
	}
	return out
}

// in are a contestant's figures in a group, by ascending number of keys.
func (r Results) in(group Scenario, name string) (out []Figure) {
	for _, f := range r.Figures {
		if f.Contestant.Name == name && f.Allowed == group.Allowed && f.Procs == group.Procs {
			out = append(out, f)
		}
	}
	return out
}

func (r Results) writeGroup(w io.Writer, group Scenario) error {
	header := []string{"contestant"}
	for _, f := range r.in(group, idle().Name) {
		header = append(header, "ns, keys: "+table.Count(int64(f.Keys)), "×")
	}
	var rows [][]string
	for _, s := range append(r.Sizes, Size{Contestant: idle()}) {
		row, allocs := []string{s.Contestant.Name}, 0.0
		for _, f := range r.in(group, s.Contestant.Name) {
			row = append(row, fmt.Sprintf("%.0f", f.Median), fmt.Sprintf("%.2f", f.Ratio))
			allocs = max(allocs, f.Allocs)
		}
		rows = append(rows, append(row, fmt.Sprintf("%.2f", allocs), s.after(group.Allowed)))
	}
	return table.Write(w, append(header, "allocs", "bytes a key"), rows)
}

// after is what is kept of a key that was used like this; the loop itself keeps nothing.
func (s Size) after(allowed peers.Outcome) string {
	switch {
	case s.Keys == 0:
		return "-"
	case bool(allowed):
		return fmt.Sprintf("%.0f", s.Once)
	}
	return fmt.Sprintf("%.0f", s.Exhausted)
}

func (r Results) writeSizes(w io.Writer) error {
	var rows [][]string
	for _, s := range r.Sizes {
		c := s.Contestant
		c.WriteNote(w)
		rows = append(rows, []string{c.Name, fmt.Sprintf("%.0f", s.Once), fmt.Sprintf("%.0f", s.Exhausted), c.Key, c.Promise})
	}
	fmt.Fprintf(w, "\n## bytes a key, with %s keys\n\n", table.Count(int64(r.Sizes[0].Keys)))
	return table.Write(w, []string{"contestant", "seen once", "100 units", "<the key's text", "<what it promises"}, rows)
}

// WriteRaw writes everything that was measured, every round of it, as lines of
// JSON, each of which stands for itself.
func (r Results) WriteRaw(w io.Writer, m machine.Description) error {
	out := json.NewEncoder(w)
	for _, f := range r.Figures {
		if err := out.Encode(struct {
			Kind string `json:"kind"`
			Figure
			machine.Description
		}{"check", f, m}); err != nil {
			return err
		}
	}
	for _, s := range r.Sizes {
		if err := out.Encode(struct {
			Kind string `json:"kind"`
			Size
			machine.Description
		}{"bytes", s, m}); err != nil {
			return err
		}
	}
	return nil
}

// WriteSummary writes one table of ratios: every contestant, every scenario.
func (r Results) WriteSummary(w io.Writer) error {
	header := []string{"time × fastest peer"}
	for _, group := range r.groups() {
		header = append(header, fmt.Sprintf("%s, %d CPU", group.Allowed, group.Procs))
	}
	var rows [][]string
	var keys []string
	for _, s := range r.Sizes {
		row, allocs := []string{s.Contestant.Name}, 0.0
		for _, group := range r.groups() {
			var ratios []string
			keys = nil
			for _, f := range r.in(group, s.Contestant.Name) {
				keys = append(keys, table.Count(int64(f.Keys)))
				ratios = append(ratios, fmt.Sprintf("%.2f", f.Ratio))
				allocs = max(allocs, f.Allocs)
			}
			row = append(row, strings.Join(ratios, "  "))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.2f", allocs), s.after(peers.Allowed)))
	}
	if err := table.Write(w, append(header, "allocs", "bytes a key"), rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nEach cell has three figures: for %s keys. Below 1.00 is faster than every peer.\n", strings.Join(keys, ", "))
	return err
}
