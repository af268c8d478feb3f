package peers

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// fullRedis takes about four minutes, on any machine: it is time that is given out.
var (
	fullRedis  = options{keys: []int{10_000}, callers: []int{1, Callers}, rounds: 5, round: 500 * time.Millisecond}
	quickRedis = options{keys: []int{1_000}, callers: []int{1, Callers}, rounds: 3, round: 120 * time.Millisecond}
)

// few are the numbers of callers between one and many. There, the question is only whether
// callers wait for each other's call.
var few = []int{2, 4, 8, 32}

var measuredAmongFew = []string{RawIncr, RedisRate, WeirHeadline}

// onRedis is a harness with the Redis that everybody shares.
type onRedis struct {
	harness
	server *bench.Server
}

// RunRedis measures all contestants on a Redis, and writes the tables.
func RunRedis(r *bench.Run) { runRedis(r, bench.Pick(r, fullRedis, quickRedis)) }

func runRedis(r *bench.Run, o options) *onRedis {
	addr := testredis.Start(r).Addr
	server := bench.NewServer(r, addr)
	h := &onRedis{server: server, harness: harness{
		Run: r, options: o, contestants: OnRedis(addr), load: bench.Load{Length: o.round, Timed: true}, warmUp: min(o.round, 100*time.Millisecond),
		visits: 20, // what is asked about is somebody who comes again and again
		order:  bench.Short, empty: func() { server.Do("FLUSHALL", "SYNC") }, busy: server.Busy,
	}}
	h.harness.bytes = h.bytesInRedis
	many, all := o.keys[0], o.callers[len(o.callers)-1]
	h.measureSizes()
	h.perform(many, Allowed, []int{all, 1}, few, measuredAmongFew...)
	h.perform(1, Allowed, []int{all}, nil)
	h.perform(1, Denied, []int{all}, nil)
	h.empty()
	h.writeRedis()
	return h
}

// bytesInRedis uses every key once, alone on the server.
func (h *onRedis) bytesInRedis(c Contestant, keys []string, use func(Limiter, string)) kept {
	l := c.New(Exhaustible, len(keys))
	defer l.Close()
	use(l, "somebody") // connects, and loads the script
	h.empty()
	// What the server has allocated, without the buffers of connections, which come and go.
	memory := func() float64 {
		return h.server.Number("memory", "used_memory") - h.server.Number("memory", "mem_clients_normal")
	}
	before := memory()
	for _, key := range keys {
		use(l, key)
	}
	// Comes first, since looking at every key also ends a rehash, during which
	// there are two tables.
	used, n := h.usage(), float64(len(keys))
	return kept{float64(used) / n, (memory() - before) / n}
}

// usage is the sum of MEMORY USAGE over all keys.
func (h *onRedis) usage() int64 {
	return h.server.Do("EVAL", `
		local sum = 0
		for _, key in ipairs(redis.call('KEYS', '*')) do
			sum = sum + redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0')
		end
		return sum`, "0").(int64)
}

// short is the title of a column: what is special about the scenario.
func (s scenario) short() string {
	switch {
	case s.callers == 1:
		return "one caller"
	case s.allowed == Allowed:
		return bench.Things(s.keys, "key")
	}
	return bench.Things(s.keys, "key") + ", denied"
}

// micros is the time of a check, and times are its ratio to that of another contestant.
func (s stage) micros(name string) float64    { return s.MedianOf(name, bench.Round.Micros) }
func (s stage) times(name, to string) float64 { return s.micros(name) / s.micros(to) }

// full are the stages of all contestants.
func (h *onRedis) full() (out []stage) {
	for _, s := range h.stages {
		if len(s.Names) == len(h.contestants) {
			out = append(out, s)
		}
	}
	return out
}

const heading = `µs: wall time by checks, of all callers together; median of the rounds.
×: ratio in the same table to redis_rate with its usual pool of connections.
server µs: what a check takes of the server's processor, which is one core.
`

// writeRedis writes what a person reads, a table for each scenario, what each contestant keeps and
// promises, whether weir's aims are met, and the summary; and everything that was measured, every
// round of it, as lines of JSON, each of which stands for itself.
func (h *onRedis) writeRedis() {
	const file, summary = "redis.txt", "redis-summary.txt"
	version := h.server.Field("server", "redis_version")
	h.Write(file, fmt.Sprintf("%v, Redis %s on the same machine\n%s", bench.Describe(), version, heading))
	for _, s := range h.full() {
		h.Write(file, fmt.Sprintf("## %s", s.scenario), s.table())
	}
	first := h.stages[0].scenario
	h.Write(file, fmt.Sprintf("## from one caller to many: %s, %s", bench.Things(first.keys, "key"), first.allowed), h.tableOfFew())
	h.writeSizes(file, bench.NewTable("contestant", "seen once", "100 units", "grown, once", "grown, 100 units", "<what is kept", "<what it promises"), func(s size) string {
		return fmt.Sprintf("%.0f|%.0f|%.0f|%.0f", s.once.bytes, s.exhausted.bytes, s.once.grown, s.exhausted.grown)
	})
	h.Write(file, "By MEMORY USAGE, which is keys and values; grown is used_memory, with a key's share of\nthe tables of keys and of expiries, and what to size a server by.",
		"## aims of "+WeirHeadline, bench.Aims("", h.aims()))
	h.writeSummary(summary)
	h.Write(file, "## Summary", h.File(summary))
	raw := h.File("redis.jsonl")
	stages := h.full()
	for _, s := range h.stages {
		if len(s.Names) < len(h.contestants) {
			stages = append(stages, s)
		}
	}
	for _, s := range stages {
		for i, name := range s.Names {
			var checks []int
			for _, r := range s.Rounds[i] {
				checks = append(checks, r.Done)
			}
			line := []any{"kind", "check", "contestant", name, "keys", s.keys, "outcome", s.allowed.String(), "callers", s.callers,
				"rounds_checks", checks, "rounds_us", s.rounds(i, bench.Round.Micros), "median_us", s.micros(name),
				"ratio_to_incr", s.times(name, RawIncr), "ratio_to_redis_rate", s.times(name, RedisRate),
				"server_us_per_check", s.Median(i, bench.Round.CPUMicros), "allocs_per_check", s.Median(i, bench.Round.Allocs)}
			if s.callers == 1 {
				line = append(line, "p50_us", s.Median(i, bench.Round.P50Nanos)/1000, "p99_us", s.Median(i, bench.Round.P99Nanos)/1000)
			}
			h.WriteLine(raw, append(line, "redis", version)...)
		}
	}
	for _, s := range h.sizes {
		h.WriteLine(raw, "kind", "bytes", "contestant", s.Name, "keys", s.keys, "memory_usage_per_key_once", s.once.bytes, "memory_usage_per_key_exhausted", s.exhausted.bytes,
			"used_memory_per_key_once", s.once.grown, "used_memory_per_key_exhausted", s.exhausted.grown, "redis", version)
	}
}

func (s stage) table() *bench.Table {
	header := []string{"contestant", "µs", "× INCR", "× redis_rate", "server µs", "allocs"}
	if s.callers == 1 {
		header = append(header, "p50 µs", "p99 µs")
	}
	t := bench.NewTable(header...)
	for i, name := range s.Names {
		row := fmt.Sprintf("%s|%.2f|%.2f|%.2f|%.2f|%.1f", name, s.micros(name), s.times(name, RawIncr), s.times(name, RedisRate), s.Median(i, bench.Round.CPUMicros), s.Median(i, bench.Round.Allocs))
		if s.callers == 1 {
			row += fmt.Sprintf("|%.1f|%.1f", s.Median(i, bench.Round.P50Nanos)/1000, s.Median(i, bench.Round.P99Nanos)/1000)
		}
		t.Row("%s", row)
	}
	return t
}

// tableOfFew has how the time changes from one caller to many.
func (h *onRedis) tableOfFew() *bench.Table {
	first := h.stages[0].scenario
	t := bench.NewTable(slices.Concat([]string{"callers"}, measuredAmongFew, []string{"× INCR", "× redis_rate"})...)
	for _, n := range slices.Sorted(slices.Values(slices.Concat(h.callers, few))) {
		s, row := h.of(scenario{first.keys, first.allowed, n}), []string{strconv.Itoa(n)}
		for _, name := range measuredAmongFew {
			row = append(row, fmt.Sprintf("%.2f", s.micros(name)))
		}
		t.Cells(append(row, fmt.Sprintf("%.2f", s.times(WeirHeadline, RawIncr)), fmt.Sprintf("%.2f", s.times(WeirHeadline, RedisRate))))
	}
	return t
}

// writeSummary writes one table: every contestant, every scenario as a ratio to
// redis_rate, and what the first scenario costs the server.
func (h *onRedis) writeSummary(file string) {
	all, header := h.full(), []string{"time × redis_rate"}
	for _, s := range all {
		header = append(header, s.short())
	}
	t := bench.NewTable(append(header, "server µs", "bytes a key")...)
	for _, z := range h.sizes {
		row := []string{z.Name}
		for _, s := range all {
			row = append(row, fmt.Sprintf("%.2f", s.times(z.Name, RedisRate)))
		}
		t.Cells(append(row, fmt.Sprintf("%.1f", all[0].MedianOf(z.Name, bench.Round.CPUMicros)), fmt.Sprintf("%.0f", z.once.bytes)))
	}
	h.Write(file, t, fmt.Sprintf("%s unless the column says one; requests are allowed unless it says denied. Below 1.00\nis faster than redis_rate with its usual pool of connections. Server µs and bytes are for %s.",
		bench.Things(all[0].callers, "caller"), bench.Things(all[0].keys, "key")))
}

// aims are those of the scenarios that were measured. Among few callers, weir is never slower
// than redis_rate, nor much slower than the yardstick.
func (h *onRedis) aims() (out []bench.Aim) {
	below := func(what string, bound, measured float64) {
		out = append(out, bench.Aim{What: what, Bound: bound, Measured: measured})
	}
	for _, s := range h.full() {
		switch {
		case s.callers == 1:
			below("one caller: p50 × redis_rate's", 1.1, s.MedianOf(WeirHeadline, bench.Round.P50Nanos)/s.MedianOf(RedisRate, bench.Round.P50Nanos))
		case s.keys > 1:
			below(s.short()+": time × INCR", 1.2, s.times(WeirHeadline, RawIncr))
			below(s.short()+": time × redis_rate", 0.35, s.times(WeirHeadline, RedisRate))
		case s.allowed == Allowed:
			below(s.short()+": time × INCR", 0.6, s.times(WeirHeadline, RawIncr))
		}
		below(s.short()+": time on go-redis × on its own client", 1.5, s.times(WeirOnGoRedis, WeirHeadline))
	}
	for _, n := range few {
		s := h.of(scenario{h.keys[0], Allowed, n})
		below(fmt.Sprintf("%d callers: time × INCR", n), 1.3, s.times(WeirHeadline, RawIncr))
		below(fmt.Sprintf("%d callers: time × redis_rate", n), 1, s.times(WeirHeadline, RedisRate))
	}
	return out
}
