package peers

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/test/bench/internal/bench"
)

// write writes what a person reads, a table for each outcome and GOMAXPROCS, then what each
// contestant keeps and promises, then the summary; and everything that was measured, every round
// of it, as lines of JSON, each of which stands for itself.
func (r results) write(run *bench.Run) {
	w, summary, raw, machine := run.File("peers.txt"), run.File("summary.txt"), run.File("peers.jsonl"), bench.Describe()
	fmt.Fprintln(w, machine)
	fmt.Fprintln(w, "ns: what one check takes for the goroutine that asks; median of the rounds.")
	fmt.Fprintln(w, "×: ratio to the fastest peer in the same column; below 1.00 is faster than all of them.")
	for _, group := range r.groups() {
		fmt.Fprintf(w, "\n## %s, GOMAXPROCS %d\n\n", group.Allowed, group.Procs)
		r.writeGroup(w, group)
	}
	r.writeSizes(w)
	r.writeSummary(summary)
	fmt.Fprintf(w, "\n## Summary\n\n%s", summary.Bytes())
	for _, f := range r.figures {
		run.WriteLine(raw, map[string]string{"kind": "check"}, f, machine)
	}
	for _, s := range r.sizes {
		run.WriteLine(raw, map[string]string{"kind": "bytes"}, s, machine)
	}
}

// groups are the scenarios that share a table: all but for the number of keys.
func (r results) groups() (out []scenario) {
	for _, f := range r.figures {
		sc := f.scenario
		sc.Keys = 0
		if !slices.Contains(out, sc) {
			out = append(out, sc)
		}
	}
	return out
}

// in are a contestant's figures in a group, by ascending number of keys.
func (r results) in(group scenario, name string) (out []figure) {
	for _, f := range r.figures {
		if f.Contestant.Name == name && f.Allowed == group.Allowed && f.Procs == group.Procs {
			out = append(out, f)
		}
	}
	return out
}

func (r results) writeGroup(w *bytes.Buffer, group scenario) {
	header := []string{"contestant"}
	for _, f := range r.in(group, idleName) {
		header = append(header, "ns, keys: "+bench.Count(f.Keys), "×")
	}
	t := bench.NewTable(append(header, "allocs", "bytes a key")...)
	for _, s := range append(r.sizes, size{Contestant: idle}) {
		row, allocs := []string{s.Contestant.Name}, 0.0
		for _, f := range r.in(group, s.Contestant.Name) {
			row = append(row, fmt.Sprintf("%.0f", f.Median), fmt.Sprintf("%.2f", f.Ratio))
			allocs = max(allocs, f.Allocs)
		}
		t.Cells(append(row, fmt.Sprintf("%.2f", allocs), s.after(group.Allowed)))
	}
	t.Write(w)
}

// after is what is kept of a key that was used like this; the loop itself keeps nothing.
func (s size) after(allowed Outcome) string {
	switch {
	case s.Keys == 0:
		return "-"
	case bool(allowed):
		return fmt.Sprintf("%.0f", s.Once)
	}
	return fmt.Sprintf("%.0f", s.Exhausted)
}

func (r results) writeSizes(w *bytes.Buffer) {
	t := bench.NewTable("contestant", "seen once", "100 units", "<the key's text", "<what it promises")
	for _, s := range r.sizes {
		c := s.Contestant
		c.WriteNote(w)
		t.Row("%s|%.0f|%.0f|%s|%s", c.Name, s.Once, s.Exhausted, c.Key, c.Promise)
	}
	fmt.Fprintf(w, "\n## bytes a key, with %s keys\n\n", bench.Count(r.sizes[0].Keys))
	t.Write(w)
}

// writeSummary writes one table of ratios: every contestant, every scenario.
func (r results) writeSummary(w *bytes.Buffer) {
	header := []string{"time × fastest peer"}
	for _, group := range r.groups() {
		header = append(header, fmt.Sprintf("%s, %d CPU", group.Allowed, group.Procs))
	}
	t := bench.NewTable(append(header, "allocs", "bytes a key")...)
	var keys []string
	for _, s := range r.sizes {
		row, allocs := []string{s.Contestant.Name}, 0.0
		for _, group := range r.groups() {
			var ratios []string
			keys = nil
			for _, f := range r.in(group, s.Contestant.Name) {
				keys = append(keys, bench.Count(f.Keys))
				ratios = append(ratios, fmt.Sprintf("%.2f", f.Ratio))
				allocs = max(allocs, f.Allocs)
			}
			row = append(row, strings.Join(ratios, "  "))
		}
		t.Cells(append(row, fmt.Sprintf("%.2f", allocs), s.after(Allowed)))
	}
	t.Write(w)
	fmt.Fprintf(w, "\nEach cell has three figures: for %s keys. Below 1.00 is faster than every peer.\n", strings.Join(keys, ", "))
}
