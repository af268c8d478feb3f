package peers

import (
	"fmt"
	"runtime"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

type options struct {
	keys   []int         // numbers of keys, ascending; the last one is also for bytes a key
	procs  []int         // values of GOMAXPROCS
	rounds int           // of each contestant in each scenario
	round  time.Duration // what a round should last on average
	trial  int           // checks by which to find out how many that takes
	limit  time.Duration // after which scenarios make do with three rounds
}

// full takes about five minutes, six at most on a machine that is idle otherwise.
var (
	full = options{
		keys: []int{1, 1_000, 1_000_000}, procs: []int{1, 2},
		rounds: 5, round: 220 * time.Millisecond, trial: 20_000, limit: 270 * time.Second,
	}
	quick = options{
		keys: []int{1, 1_000, 100_000}, procs: []int{1, 2},
		rounds: 3, round: 40 * time.Millisecond, trial: 10_000, limit: 30 * time.Second,
	}
)

// scenario is one question to all contestants.
type scenario struct {
	Keys    int     `json:"keys"`
	Allowed Outcome `json:"outcome"`    // everything is, or everything is denied
	Procs   int     `json:"gomaxprocs"` // and as many goroutines
}

func (s scenario) String() string {
	return fmt.Sprintf("%s, GOMAXPROCS %d, %s", s.Allowed, s.Procs, bench.Things(s.Keys, "key"))
}

// figure is what was measured of one contestant in one scenario.
type figure struct {
	Contestant Contestant `json:"contestant"`
	scenario
	Checks int       `json:"checks_per_goroutine"` // in each round
	Rounds []float64 `json:"rounds_ns"`            // a check
	Median float64   `json:"median_ns"`
	Ratio  float64   `json:"ratio_to_fastest_peer"` // of Median
	Allocs float64   `json:"allocs_per_check"`      // in the median round
}

// size is what a contestant keeps of each of many keys, in bytes on the heap.
// The text of a key is not counted where the contestant only refers to it.
type size struct {
	Contestant Contestant `json:"contestant"`
	Keys       int        `json:"keys"`
	Once       float64    `json:"bytes_per_key_once"`      // after one check of each key
	Exhausted  float64    `json:"bytes_per_key_exhausted"` // after all hundred units of each key
}

// results are all that a run has found out.
type results struct {
	figures []figure
	sizes   []size
}

// Run measures all contestants in all scenarios, and writes the tables.
func Run(r *bench.Run) { measure(r, bench.Pick(r, full, quick)).write(r) }

func measure(r *bench.Run, o options) (out results) {
	for _, c := range InMemory() {
		r.Step(0, 1, "bytes a key")
		keys := bench.Keys(o.keys[len(o.keys)-1])
		out.sizes = append(out.sizes, size{
			Contestant: c,
			Keys:       len(keys),
			Once:       bytesPerKey(c, keys, func(l Limiter, key string) { l.Take(key) }),
			Exhausted:  bytesPerKey(c, keys, func(l Limiter, key string) { l.Drain(key) }),
		})
		runtime.KeepAlive(keys)
	}
	begin, done, total := time.Now(), 0, len(o.keys)*2*len(o.procs)
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, n := range o.keys {
		filled, asked := bench.Keys(n), bench.Keys(n)
		for _, outcome := range []Outcome{Allowed, Denied} {
			sc := scenario{Keys: n, Allowed: outcome}
			r.Step(done, total, fmt.Sprintf("filling %s, %s", bench.Things(n, "key"), outcome))
			contestants := append(InMemory(), idle)
			limiters := make([]Limiter, len(contestants))
			for i, c := range contestants {
				limiters[i] = sc.build(c, filled)
			}
			for _, sc.Procs = range o.procs {
				runtime.GOMAXPROCS(sc.Procs)
				done++
				out.figures = append(out.figures, sc.measure(r, o, contestants, limiters, asked, begin.Add(o.limit*time.Duration(done)/time.Duration(total)))...)
			}
			for _, l := range limiters {
				l.Close()
			}
		}
	}
	return out
}

// build makes a contestant that knows all keys, and is exhausted for each of
// them if the scenario is about denials.
func (s scenario) build(c Contestant, keys []string) Limiter {
	l := c.New(c.Limit(s.Keys, s.Allowed), len(keys))
	for _, key := range keys {
		if s.Allowed {
			l.Take(key)
		} else {
			l.Drain(key)
		}
	}
	return l
}

// measure lets contestants take turns, all with as many checks.
func (s scenario) measure(r *bench.Run, o options, contestants []Contestant, limiters []Limiter, keys []string, deadline time.Time) []figure {
	walks := bench.Walks(s.Procs, s.Keys, walkLen)
	turns := bench.Turns{What: s.String(), Rounds: o.rounds, Seed: [2]uint64{uint64(s.Keys), uint64(s.Procs)}, Deadline: deadline}
	sum := 0.0 // what a check takes in a trial
	for i, c := range contestants {
		turns.Names = append(turns.Names, c.Name)
		sum += testkit.Must(round(limiters[i], keys, walks, o.trial, s.Allowed))(r).CallerNanos()
	}
	checks := max(o.trial, int(float64(o.round.Nanoseconds())*float64(len(contestants))/sum))
	return figures(contestants, s, checks, bench.Take(r, turns, func(turn, i int) (bench.Round, error) {
		// With large stores a collection takes longer than a round, and nothing
		// allocates enough to start another within a turn of all.
		if turn == 0 || s.Keys < 100_000 {
			runtime.GC()
		}
		return round(limiters[i], keys, walks, checks, s.Allowed)
	}))
}

// figures sums up the rounds of one scenario.
func figures(contestants []Contestant, sc scenario, checks int, measured bench.Results[bench.Round]) []figure {
	out, fastest := make([]figure, len(contestants)), 0.0
	for i, c := range contestants {
		f := figure{Contestant: c, scenario: sc, Checks: checks}
		for _, r := range measured.Rounds[i] {
			f.Rounds = append(f.Rounds, r.CallerNanos())
		}
		middle := bench.Median(measured.Rounds[i], bench.Round.CallerNanos)
		f.Median, f.Allocs = middle.CallerNanos(), middle.Allocs()
		if !c.Weir && c.Name != idleName && (fastest == 0 || f.Median < fastest) {
			fastest = f.Median
		}
		out[i] = f
	}
	for i := range out {
		out[i].Ratio = out[i].Median / fastest
	}
	return out
}

const idleName = "(the loop itself)"

// idle is no limiter but the harness itself: what the loop, the interface call
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

// walkLen is a power of two, long enough for no branch predictor to learn it.
const walkLen = 1 << 20

// round has each walk done by a goroutine of its own, so many checks each,
// and requires that all are allowed or that all are denied.
func round(l Limiter, keys []string, walks [][]uint32, checks int, want Outcome) (bench.Round, error) {
	allowed := make([]int, len(walks))
	r := bench.AtOnce(len(walks), func(g int) { allowed[g] = ask(l, keys, walks[g], checks) })
	got := 0
	for _, n := range allowed {
		got += n
	}
	r.Done = checks * len(walks)
	return r, want.Of(got, r.Done)
}

// ask is the measured loop.
func ask(l Limiter, keys []string, walk []uint32, checks int) (allowed int) {
	for i := range checks {
		if l.Take(keys[walk[i&(walkLen-1)]]) {
			allowed++
		}
	}
	return allowed
}

func bytesPerKey(c Contestant, keys []string, use func(Limiter, string)) float64 {
	before := heap()
	l := c.New(Exhaustible, len(keys))
	for _, key := range keys {
		use(l, key)
	}
	after := heap()
	l.Close()
	runtime.KeepAlive(l) // Close alone keeps nothing of a contestant without background work
	return float64(after-before) / float64(len(keys))
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
