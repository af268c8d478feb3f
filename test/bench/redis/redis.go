// Package redis measures what one check costs when the limits are in Redis, for
// weir and its peers side by side, on one server of this machine.
//
// Callers are a closed loop: each asks again as soon as it was answered. All
// contestants get the same keys, limits, goroutines and walks, and as much time;
// their rounds take turns, in another order each time, and a figure is the median
// of the rounds. Every answer is counted, and one that is not as expected fails
// the run.
package redis

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/test/bench/internal/bench"
	"github.com/weirhq/weir/test/bench/peers"
)

type options struct {
	keys    int           // where there are many
	callers int           // where there are many
	rounds  int           // of each contestant in each scenario
	round   time.Duration // how long each of them lasts
	warmUp  time.Duration // how long each asks before the first one
}

// full takes about four minutes, on any machine: it is time that is given out.
var (
	full = options{
		keys: 10_000, callers: peers.Callers,
		rounds: 5, round: 500 * time.Millisecond, warmUp: 100 * time.Millisecond,
	}
	quick = options{
		keys: 1_000, callers: peers.Callers,
		rounds: 3, round: 120 * time.Millisecond, warmUp: 50 * time.Millisecond,
	}
)

// few are the numbers of callers between one and many. There, the question is only whether
// callers wait for each other's call.
var few = []int{2, 4, 8, 32}

var measuredAmongFew = []string{peers.RawIncr, peers.RedisRate, peers.WeirHeadline}

// scenario is one question to all contestants.
type scenario struct {
	Keys    int           `json:"keys"`
	Allowed peers.Outcome `json:"outcome"` // everything is, or everything is denied
	Callers int           `json:"callers"` // goroutines that ask all the time
}

func (s scenario) String() string {
	return fmt.Sprintf("%s, %s, %s", bench.Things(s.Callers, "caller"), bench.Things(s.Keys, "key"), s.Allowed)
}

// short is the title of a column: what is special about the scenario.
func (s scenario) short() string {
	switch {
	case s.Callers == 1:
		return "one caller"
	case s.Allowed == peers.Allowed:
		return bench.Things(s.Keys, "key")
	}
	return bench.Things(s.Keys, "key") + ", denied"
}

// figure is what was measured of one contestant in one scenario. Times are in
// microseconds.
type figure struct {
	Contestant peers.Contestant `json:"contestant"`
	scenario
	Checks      []int     `json:"rounds_checks"`
	Rounds      []float64 `json:"rounds_us"` // wall time by checks
	Median      float64   `json:"median_us"`
	ToIncr      float64   `json:"ratio_to_incr"`       // of Median to that of the yardstick
	ToRedisRate float64   `json:"ratio_to_redis_rate"` // on a pool of connections, as people run it
	Server      float64   `json:"server_us_per_check"` // of the server's processor
	Allocs      float64   `json:"allocs_per_check"`    // in this process
	P50         float64   `json:"p50_us,omitzero"`     // what one check took; 0 unless there is one caller
	P99         float64   `json:"p99_us,omitzero"`
}

// size is what a contestant keeps of each of many clients, in bytes: after one check of
// each key, and after all hundred units. Usage is by MEMORY USAGE, its keys and values.
// Grown is of used_memory, with its share of the tables, also of that of expiries.
type size struct {
	Contestant     peers.Contestant `json:"contestant"`
	Keys           int              `json:"keys"`
	UsageOnce      float64          `json:"memory_usage_per_key_once"`
	UsageExhausted float64          `json:"memory_usage_per_key_exhausted"`
	GrownOnce      float64          `json:"used_memory_per_key_once"`
	GrownExhausted float64          `json:"used_memory_per_key_exhausted"`
}

// results are all that a run has found out.
type results struct {
	redis   string // the server's version
	figures []figure
	few     []figure // of few callers, and not of all contestants
	sizes   []size
}

type suite struct {
	options
	*bench.Run
	server
	contestants []peers.Contestant
	results
}

// Run measures all contestants on a Redis, and writes the tables.
func Run(r *bench.Run) {
	measure(r, testredis.Start(r), bench.Pick(r, full, quick)).write(r)
}

func measure(r *bench.Run, on *testredis.Server, o options) results {
	s := &suite{options: o, Run: r, server: server{on}, contestants: peers.OnRedis(on.Addr)}
	s.redis = testkit.Must(on.Info("server", "redis_version"))(r)
	s.measureSizes()
	s.stage(o.keys, peers.Allowed, []int{o.callers, 1}, few)
	s.stage(1, peers.Allowed, []int{o.callers}, nil)
	s.stage(1, peers.Denied, []int{o.callers}, nil)
	s.empty()
	return s.results
}

// stage sets everybody up on an empty server, and measures with each number of callers: all
// contestants, and with few callers some of them.
func (s *suite) stage(many int, allowed peers.Outcome, callers, few []int) {
	s.Step(0, 1, "filling "+bench.Things(many, "key"))
	s.empty()
	keys := bench.Keys(many)
	limiters := make([]peers.Limiter, len(s.contestants))
	var all, some []int
	for i, c := range s.contestants {
		limiters[i] = c.New(c.Limit(many, allowed), many)
		defer limiters[i].Close()
		s.fill(limiters[i], keys, allowed)
		if all = append(all, i); slices.Contains(measuredAmongFew, c.Name) {
			some = append(some, i)
		}
	}
	for _, n := range callers {
		s.figures = append(s.figures, s.take(scenario{many, allowed, n}, all, limiters, keys)...)
	}
	for _, n := range few {
		s.results.few = append(s.results.few, s.take(scenario{many, allowed, n}, some, limiters, keys)...)
	}
}

// visits is how often a client was there before it is measured: what is asked about
// is somebody who comes again and again.
const visits = 20

// fill makes all keys those of busy clients, or exhausts them. All callers share the
// work, which opens their connections too.
func (s *suite) fill(l peers.Limiter, keys []string, allowed peers.Outcome) {
	bench.AtOnce(s.callers, func(g int) {
		for i := g; i < len(keys); i += s.callers {
			if !allowed {
				l.Drain(keys[i])
				continue
			}
			for range visits {
				l.Take(keys[i])
			}
		}
	})
}

// take lets some of the contestants take turns.
func (s *suite) take(sc scenario, among []int, limiters []peers.Limiter, keys []string) []figure {
	var contestants []peers.Contestant
	turns := bench.Turns{What: sc.String(), Rounds: s.rounds, Seed: [2]uint64{uint64(sc.Keys), uint64(sc.Callers)}}
	for _, i := range among {
		contestants, turns.Names = append(contestants, s.contestants[i]), append(turns.Names, s.contestants[i].Name)
		testkit.Must(round(s.server, limiters[i], keys, sc, s.warmUp))(s)
	}
	return figures(contestants, sc, bench.Take(s.Run, turns, func(_, i int) (bench.Round, error) {
		runtime.GC()
		return round(s.server, limiters[among[i]], keys, sc, s.round)
	}))
}

// walkLen is a power of two; the walks of all callers stay in the cache.
const walkLen = 1 << 14

// round has all callers ask for as long as it lasts, and requires that all checks are allowed or
// that all are denied.
func round(s server, l peers.Limiter, keys []string, sc scenario, length time.Duration) (bench.Round, error) {
	before, err := s.processor()
	if err != nil {
		return bench.Round{}, err
	}
	r, err := bench.Load{Callers: sc.Callers, Length: length, Timed: sc.Callers == 1}.Run(func(g int) func(int) error {
		walk := bench.Walk(g, len(keys), walkLen)
		return func(n int) error {
			if allowed := l.Take(keys[walk[n&(walkLen-1)]]); allowed != bool(sc.Allowed) {
				return fmt.Errorf("check %d was not %s", n, sc.Allowed)
			}
			return nil
		}
	})
	if err != nil {
		return r, err
	}
	after, err := s.processor()
	r.CPU = after - before
	return r, err
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// figures sums up the rounds of one scenario.
func figures(contestants []peers.Contestant, sc scenario, measured bench.Results[bench.Round]) []figure {
	out := make([]figure, len(contestants))
	var incr, redisRate float64
	for i, c := range contestants {
		f := figure{Contestant: c, scenario: sc}
		for _, r := range measured.Rounds[i] {
			f.Checks = append(f.Checks, r.Done)
			f.Rounds = append(f.Rounds, r.Micros())
		}
		// Each by itself: a round may be in the middle by one figure and have
		// an outlier of another.
		f.Median = measured.Median(i, bench.Round.Micros)
		f.Server = measured.Median(i, func(r bench.Round) float64 { return micros(r.CPU) / float64(r.Done) })
		f.Allocs = measured.Median(i, bench.Round.Allocs)
		f.P50, f.P99 = measured.Median(i, bench.Round.P50Nanos)/1000, measured.Median(i, bench.Round.P99Nanos)/1000
		switch c.Name {
		case peers.RawIncr:
			incr = f.Median
		case peers.RedisRate:
			redisRate = f.Median
		}
		out[i] = f
	}
	for i := range out {
		out[i].ToIncr = out[i].Median / incr
		out[i].ToRedisRate = out[i].Median / redisRate
	}
	return out
}

// measureSizes measures one contestant after the other, each alone on the server.
func (s *suite) measureSizes() {
	keys := bench.Keys(s.keys)
	for i, c := range s.contestants {
		s.Step(i, len(s.contestants), "bytes a key")
		z := size{Contestant: c, Keys: len(keys)}
		z.UsageOnce, z.GrownOnce = s.bytes(c, keys, func(l peers.Limiter, key string) { l.Take(key) })
		z.UsageExhausted, z.GrownExhausted = s.bytes(c, keys, func(l peers.Limiter, key string) { l.Drain(key) })
		s.sizes = append(s.sizes, z)
	}
}

// bytes uses every key once, alone on the server.
func (s *suite) bytes(c peers.Contestant, keys []string, use func(peers.Limiter, string)) (usage, grown float64) {
	l := c.New(peers.Exhaustible, len(keys))
	defer l.Close()
	use(l, "somebody") // connects, and loads the script
	s.empty()
	before := testkit.Must(s.memory())(s)
	for _, key := range keys {
		use(l, key)
	}
	// Comes first, since looking at every key also ends a rehash, during which
	// there are two tables.
	used := testkit.Must(s.usage())(s)
	after := testkit.Must(s.memory())(s)
	n := float64(len(keys))
	return float64(used) / n, (after - before) / n
}

// server is the Redis that everybody shares, as the harness sees it.
type server struct{ *testredis.Server }

func (s server) empty() { s.Do("FLUSHALL", "SYNC") }

// sum adds up fields of a section of INFO.
func (s server) sum(section string, fields ...string) (sum float64, err error) {
	for _, field := range fields {
		text, err := s.Info(section, field)
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("redis: INFO %s: %s is %q", section, field, text)
		}
		sum += n
	}
	return sum, nil
}

// processor returns the processor time that the server has used.
func (s server) processor() (time.Duration, error) {
	seconds, err := s.sum("cpu", "used_cpu_user", "used_cpu_sys")
	return time.Duration(seconds * 1e9), err
}

// memory is what the server has allocated, without the buffers of connections,
// which come and go.
func (s server) memory() (float64, error) {
	all, err := s.sum("memory", "used_memory")
	if err != nil {
		return 0, err
	}
	connections, err := s.sum("memory", "mem_clients_normal")
	return all - connections, err
}

// usage is the sum of MEMORY USAGE over all keys.
func (s server) usage() (int64, error) {
	return strconv.ParseInt(s.Do("EVAL", `
		local sum = 0
		for _, key in ipairs(redis.call('KEYS', '*')) do
			sum = sum + redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0')
		end
		return sum`, "0"), 10, 64)
}
