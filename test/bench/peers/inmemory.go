package peers

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/test/bench/internal/bench"
)

// full takes about five minutes.
var (
	full  = options{keys: []int{1, 1_000, 1_000_000}, callers: []int{1, 2}, rounds: 5, round: 220 * time.Millisecond}
	quick = options{keys: []int{1, 1_000, 100_000}, callers: []int{1, 2}, rounds: 3, round: 40 * time.Millisecond}
)

// Run measures all contestants in memory, and writes the tables.
func Run(r *bench.Run) { run(r, bench.Pick(r, full, quick)) }

func run(r *bench.Run, o options) *harness {
	h := &harness{
		Run: r, options: o, contestants: InMemory(), load: bench.Load{Length: o.round, Counted: true},
		visits: 1, order: bench.Long, empty: func() {}, bytes: bytesOnHeap,
	}
	h.measureSizes()
	h.contestants = append(h.contestants, idle)
	for _, n := range o.keys {
		for _, outcome := range []Outcome{Allowed, Denied} {
			h.perform(n, outcome, o.callers, nil)
		}
	}
	h.writeMemory()
	return h
}

const idleName = "(the loop itself)"

// idle is no limiter but the harness itself: what the loop, the call
// and fetching the key from memory cost everybody.
var idle = Contestant{
	Name:    idleName,
	Promise: "nothing: reads the key and answers",
	Key:     "keeps nothing",
	New:     func(limit Limit, _ int) Limiter { return always(limit.N > 100) },
}

func always(answer bool) Limiter {
	return Limiter{
		Take:  func(key string) bool { return answer == (key[0] != 0) },
		Drain: func(string) {},
	}
}

// bytesOnHeap uses each key once. The text of a key is not counted where the contestant only refers to it.
func bytesOnHeap(c Contestant, keys []string, use func(Limiter, string)) kept {
	before := heap()
	l := c.New(Exhaustible, len(keys))
	for _, key := range keys {
		use(l, key)
	}
	after := heap()
	l.Close()
	runtime.KeepAlive(l) // Close alone keeps nothing of a contestant without background work
	return kept{bytes: float64(after-before) / float64(len(keys))}
}

// heap is what is alive. Finalizers and pools let go only in the second
// collection.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// ratio is the time of a contestant to that of the fastest peer.
func (s stage) ratio(name string) float64 {
	fastest := math.Inf(1)
	for i, c := range s.contestants {
		if !c.Weir && c.Name != idleName {
			fastest = min(fastest, s.Median(i, bench.Round.CallerNanos))
		}
	}
	return s.MedianOf(name, bench.Round.CallerNanos) / fastest
}

// writeMemory writes what a person reads, a table for each outcome and GOMAXPROCS, then what each
// contestant keeps and promises, then the summary; and everything that was measured, every round
// of it, as lines of JSON, each of which stands for itself.
func (h *harness) writeMemory() {
	const file, summary = "peers.txt", "summary.txt"
	h.Write(file, fmt.Sprintf(`%v
ns: what one check takes for the goroutine that asks; median of the rounds.
×: ratio to the fastest peer in the same column; below 1.00 is faster than all of them.`, bench.Describe()))
	for _, group := range h.groups() {
		h.Write(file, fmt.Sprintf("## %s, GOMAXPROCS %d", group[0].allowed, group[0].callers), h.tableOf(group))
	}
	h.writeSizes(file, bench.NewTable("contestant", "seen once", "100 units", "<the key's text", "<what it promises"), func(s size) string {
		return fmt.Sprintf("%.0f|%.0f", s.once.bytes, s.exhausted.bytes)
	})
	h.writeSummary(summary)
	h.Write(file, "## Summary", h.File(summary))
	raw := h.File("peers.jsonl")
	for _, s := range h.stages {
		for i, name := range s.Names {
			h.WriteLine(raw, "kind", "check", "contestant", name, "keys", s.keys, "outcome", s.allowed.String(), "gomaxprocs", s.callers,
				"checks_per_goroutine", s.Rounds[i][0].Done/s.callers, "rounds_ns", s.rounds(i, bench.Round.CallerNanos),
				"median_ns", s.Median(i, bench.Round.CallerNanos), "ratio_to_fastest_peer", s.ratio(name), "allocs_per_check", s.Median(i, bench.Round.Allocs))
		}
	}
	for _, s := range h.sizes {
		h.WriteLine(raw, "kind", "bytes", "contestant", s.Name, "keys", s.keys, "bytes_per_key_once", s.once.bytes, "bytes_per_key_exhausted", s.exhausted.bytes)
	}
}

// groups are the stages that share a table: all but for the number of keys.
func (h *harness) groups() (out [][]stage) {
	for _, s := range h.stages {
		i := slices.IndexFunc(out, func(g []stage) bool { return g[0].allowed == s.allowed && g[0].callers == s.callers })
		if i < 0 {
			i, out = len(out), append(out, nil)
		}
		out[i] = append(out[i], s)
	}
	return out
}

// cells are those of a group for a contestant: what one column has of each stage, the most allocations, and bytes.
func (h *harness) cells(group []stage, name string, one func(stage) []string) (row []string, allocs float64) {
	for _, s := range group {
		row, allocs = append(row, one(s)...), max(allocs, s.MedianOf(name, bench.Round.Allocs))
	}
	return row, allocs
}

// kept is what is kept of a key that was used like this; the loop itself keeps nothing.
func (h *harness) kept(name string, allowed Outcome) string {
	for _, s := range h.sizes {
		if s.Name == name && allowed == Allowed {
			return fmt.Sprintf("%.0f", s.once.bytes)
		} else if s.Name == name {
			return fmt.Sprintf("%.0f", s.exhausted.bytes)
		}
	}
	return "-"
}

func (h *harness) tableOf(group []stage) *bench.Table {
	header := []string{"contestant"}
	for _, s := range group {
		header = append(header, "ns, keys: "+bench.Count(s.keys), "×")
	}
	t := bench.NewTable(append(header, "allocs", "bytes a key")...)
	for _, name := range group[0].Names {
		row, allocs := h.cells(group, name, func(s stage) []string {
			return []string{fmt.Sprintf("%.0f", s.MedianOf(name, bench.Round.CallerNanos)), fmt.Sprintf("%.2f", s.ratio(name))}
		})
		t.Cells(append(append([]string{name}, row...), fmt.Sprintf("%.2f", allocs), h.kept(name, group[0].allowed)))
	}
	return t
}

// writeSummary writes one table of ratios: every contestant, every scenario.
func (h *harness) writeSummary(file string) {
	header := []string{"time × fastest peer"}
	for _, group := range h.groups() {
		header = append(header, fmt.Sprintf("%s, %d CPU", group[0].allowed, group[0].callers))
	}
	t := bench.NewTable(append(header, "allocs", "bytes a key")...)
	for _, s := range h.sizes {
		row, most := []string{s.Name}, 0.0
		for _, group := range h.groups() {
			ratios, allocs := h.cells(group, s.Name, func(one stage) []string { return []string{fmt.Sprintf("%.2f", one.ratio(s.Name))} })
			row, most = append(row, strings.Join(ratios, "  ")), max(most, allocs)
		}
		t.Cells(append(row, fmt.Sprintf("%.2f", most), h.kept(s.Name, Allowed)))
	}
	var keys []string
	for _, n := range h.keys {
		keys = append(keys, bench.Count(n))
	}
	h.Write(file, t, fmt.Sprintf("Each cell has three figures: for %s keys. Below 1.00 is faster than every peer.", strings.Join(keys, ", ")))
}
