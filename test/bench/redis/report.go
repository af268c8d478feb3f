package redis

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/weirhq/weir/test/bench/internal/bench"
	"github.com/weirhq/weir/test/bench/peers"
)

const heading = `µs: wall time by checks, of all callers together; median of the rounds.
×: ratio in the same table to redis_rate with its usual pool of connections.
server µs: what a check takes of the server's processor, which is one core.
`

// write writes what a person reads, a table for each scenario, what each contestant keeps and
// promises, whether weir's aims are met, and the summary; and everything that was measured, every
// round of it, as lines of JSON, each of which stands for itself.
func (r results) write(run *bench.Run) {
	w, summary, raw, machine := run.File("redis.txt"), run.File("redis-summary.txt"), run.File("redis.jsonl"), bench.Describe()
	fmt.Fprintf(w, "%v, Redis %s on the same machine\n%s", machine, r.redis, heading)
	for _, sc := range r.scenarios() {
		fmt.Fprintf(w, "\n## %s\n\n", sc)
		r.writeScenario(w, sc)
	}
	r.writeFew(w)
	r.writeSizes(w)
	r.writeAims(w)
	r.writeSummary(summary)
	fmt.Fprintf(w, "\n## Summary\n\n%s", summary.Bytes())
	redis := map[string]string{"redis": r.redis}
	for _, f := range slices.Concat(r.figures, r.few) {
		run.WriteLine(raw, map[string]string{"kind": "check"}, f, redis, machine)
	}
	for _, s := range r.sizes {
		run.WriteLine(raw, map[string]string{"kind": "bytes"}, s, redis, machine)
	}
}

func (r results) scenarios() (out []scenario) {
	for _, f := range r.figures {
		if !slices.Contains(out, f.scenario) {
			out = append(out, f.scenario)
		}
	}
	return out
}

// of is what was measured of a contestant in a scenario.
func (r results) of(sc scenario, name string) figure {
	for _, f := range slices.Concat(r.figures, r.few) {
		if f.scenario == sc && f.Contestant.Name == name {
			return f
		}
	}
	return figure{}
}

func (r results) writeScenario(w *bytes.Buffer, sc scenario) {
	header := []string{"contestant", "µs", "× INCR", "× redis_rate", "server µs", "allocs"}
	if sc.Callers == 1 {
		header = append(header, "p50 µs", "p99 µs")
	}
	t := bench.NewTable(header...)
	for _, f := range r.figures {
		switch {
		case f.scenario != sc:
		case sc.Callers == 1:
			t.Row("%s|%.2f|%.2f|%.2f|%.2f|%.1f|%.1f|%.1f", f.Contestant.Name, f.Median, f.ToIncr, f.ToRedisRate, f.Server, f.Allocs, f.P50, f.P99)
		default:
			t.Row("%s|%.2f|%.2f|%.2f|%.2f|%.1f", f.Contestant.Name, f.Median, f.ToIncr, f.ToRedisRate, f.Server, f.Allocs)
		}
	}
	t.Write(w)
}

// writeFew writes how the time changes from one caller to many.
func (r results) writeFew(w *bytes.Buffer) {
	first := r.figures[0].scenario
	callers := slices.Concat([]int{1, first.Callers}, few)
	slices.Sort(callers)
	t := bench.NewTable(slices.Concat([]string{"callers"}, measuredAmongFew, []string{"× INCR", "× redis_rate"})...)
	for _, n := range slices.Compact(callers) {
		sc := scenario{first.Keys, first.Allowed, n}
		row := []string{fmt.Sprint(n)}
		for _, name := range measuredAmongFew {
			row = append(row, fmt.Sprintf("%.2f", r.of(sc, name).Median))
		}
		f := r.of(sc, peers.WeirHeadline)
		t.Cells(append(row, fmt.Sprintf("%.2f", f.ToIncr), fmt.Sprintf("%.2f", f.ToRedisRate)))
	}
	fmt.Fprintf(w, "\n## from one caller to many: %s, %s\n\n", bench.Things(first.Keys, "key"), first.Allowed)
	t.Write(w)
}

func (r results) writeSizes(w *bytes.Buffer) {
	t := bench.NewTable("contestant", "seen once", "100 units", "grown, once", "grown, 100 units", "<what is kept", "<what it promises")
	for _, s := range r.sizes {
		c := s.Contestant
		c.WriteNote(w)
		t.Row("%s|%.0f|%.0f|%.0f|%.0f|%s|%s", c.Name, s.UsageOnce, s.UsageExhausted, s.GrownOnce, s.GrownExhausted, c.Key, c.Promise)
	}
	fmt.Fprintf(w, "\n## bytes a key, with %s keys\n\n", bench.Count(r.sizes[0].Keys))
	t.Write(w)
	fmt.Fprint(w, "\nBy MEMORY USAGE, which is keys and values; grown is used_memory, with a key's share of\nthe tables of keys and of expiries, and what to size a server by.\n")
}

// writeSummary writes one table: every contestant, every scenario as a ratio to
// redis_rate, and what the first scenario costs the server.
func (r results) writeSummary(w *bytes.Buffer) {
	all := r.scenarios()
	header := []string{"time × redis_rate"}
	for _, sc := range all {
		header = append(header, sc.short())
	}
	t := bench.NewTable(append(header, "server µs", "bytes a key")...)
	for _, s := range r.sizes {
		row := []string{s.Contestant.Name}
		for _, sc := range all {
			row = append(row, fmt.Sprintf("%.2f", r.of(sc, s.Contestant.Name).ToRedisRate))
		}
		t.Cells(append(row, fmt.Sprintf("%.1f", r.of(all[0], s.Contestant.Name).Server), fmt.Sprintf("%.0f", s.UsageOnce)))
	}
	t.Write(w)
	fmt.Fprintf(w, "\n%s unless the column says one; requests are allowed unless it says denied. Below 1.00\nis faster than redis_rate with its usual pool of connections. Server µs and bytes are for %s.\n",
		bench.Things(all[0].Callers, "caller"), bench.Things(all[0].Keys, "key"))
}

func (r results) writeAims(w *bytes.Buffer) {
	fmt.Fprintf(w, "\n## aims of %s\n\n", peers.WeirHeadline)
	bench.WriteAims(w, "", r.aims())
}

// aims are those of the scenarios that were measured. Among few callers, weir is never slower
// than redis_rate, nor much slower than the yardstick.
func (r results) aims() (out []bench.Aim) {
	below := func(what string, bound, measured float64) {
		out = append(out, bench.Aim{What: what, Bound: bound, Measured: measured})
	}
	for _, f := range r.figures {
		sc := f.scenario
		if f.Contestant.Name == peers.WeirOnGoRedis {
			below(sc.short()+": time on go-redis × on its own client", 1.5, f.Median/r.of(sc, peers.WeirHeadline).Median)
		}
		if f.Contestant.Name != peers.WeirHeadline {
			continue
		}
		switch {
		case sc.Callers == 1:
			below("one caller: p50 × redis_rate's", 1.1, f.P50/r.of(sc, peers.RedisRate).P50)
		case sc.Keys > 1:
			below(sc.short()+": time × INCR", 1.2, f.ToIncr)
			below(sc.short()+": time × redis_rate", 0.35, f.ToRedisRate)
		case bool(sc.Allowed):
			below(sc.short()+": time × INCR", 0.6, f.ToIncr)
		}
	}
	for _, f := range r.few {
		if f.Contestant.Name == peers.WeirHeadline {
			below(fmt.Sprintf("%d callers: time × INCR", f.Callers), 1.3, f.ToIncr)
			below(fmt.Sprintf("%d callers: time × redis_rate", f.Callers), 1, f.ToRedisRate)
		}
	}
	return out
}
