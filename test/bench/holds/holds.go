// Package holds measures what it takes to reserve and settle, to take and give back a place in
// flight, to take of a calendar quota, and to leave units for others, beside a take.
package holds

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/internal/table"
)

// Options say how long to measure.
type Options struct {
	Keys   int
	Round  time.Duration
	Rounds int
}

// Full is what results/ holds, Quick a first look.
var (
	Full  = Options{Keys: 10_000, Round: 500 * time.Millisecond, Rounds: 15}
	Quick = Options{Keys: 10_000, Round: 100 * time.Millisecond, Rounds: 5}
)

const inMemory, inRedis = "memory", "Redis"

// The aims: how much longer than a take it may take.
var aims = map[string]float64{inMemory: 4, inRedis: 3}

const (
	calendarAim = 1.05
	sharesAim   = 1.03
)

// more is how many times as many rounds a calendar and shares have, for a difference of some percent.
const more = 8

// Figure is what one contestant took for a request.
type Figure struct {
	Store     string
	Callers   int
	Algorithm weir.Algorithm
	Shares    bool // it is about what an op leaves
	Name      string
	Micros    float64 // wall time by requests
	Allocs    float64
	Ratio     float64 // to a take in the same round
}

// contestant makes what one caller does for a client.
type contestant struct {
	name   string
	do     func(l *weir.Limiter, key string) error
	take   func(s weir.Store, limit *weir.Compiled, key string) error // instead of do, if it is set
	change func(*weir.Limit)                                          // nil if it has the limit of the others
}

const cost = 10

const (
	ofMonth  = "take, per calendar month"
	inFlight = "in flight: take and release"
	ofShare  = "take of an op that leaves 20 %"
)

// contestants are beside a take the holds and, for a token bucket, places in flight; or for a
// fixed window the same of the calendar; or ops of a share.
func contestants(f Figure) []contestant {
	if f.Shares {
		return []contestant{{name: "take of an op", take: takeOp(0)}, {name: ofShare, take: takeOp(20)}}
	}
	if f.Algorithm == weir.FixedWindow {
		return []contestant{{name: "take", do: take}, {name: ofMonth, do: take, change: func(l *weir.Limit) { l.Period, l.Starts = weir.Month, "15" }}}
	}
	all := []contestant{
		{name: "take", do: take},
		{name: "reserve, settle with half", do: reserve(cost / 2)},
		{name: "reserve, settle with double", do: reserve(2 * cost)},
	}
	if f.Algorithm == weir.TokenBucket {
		all = append(all, contestant{name: inFlight, do: takeAndRelease, change: func(l *weir.Limit) { l.Algorithm, l.N, l.Period = weir.InFlight, places, time.Minute }})
	}
	return all
}

// places are more than callers at the same time.
const places = 200

func take(l *weir.Limiter, key string) error {
	d, err := l.Take(context.Background(), key, cost)
	return allowed(d, err)
}

// takeOp takes one unit, as rules do, and leaves so many percent.
func takeOp(percent int64) func(weir.Store, *weir.Compiled, string) error {
	return func(s weir.Store, limit *weir.Compiled, key string) error {
		var room [1]weir.Decision
		d, err := s.Take(context.Background(), room[:0], weir.Op{Key: key, Limit: limit, Cost: 1, Leave: limit.Capacity() / 100 * percent})
		if err != nil {
			return err
		}
		return allowed(d[0], nil)
	}
}

func takeAndRelease(l *weir.Limiter, key string) error {
	d, err := l.Take(context.Background(), key, 1)
	if err := allowed(d, err); err != nil {
		return err
	}
	return l.Refund(context.Background(), key, 1, d.Receipt)
}

func allowed(d weir.Decision, err error) error {
	if err == nil && !d.Allowed {
		err = fmt.Errorf("denied: %+v", d)
	}
	return err
}

func reserve(used int64) func(*weir.Limiter, string) error {
	return func(l *weir.Limiter, key string) error {
		hold, d, err := l.Reserve(context.Background(), key, cost, 0)
		if err := allowed(d, err); err != nil {
			return err
		}
		s, err := hold.Settle(context.Background(), used)
		if err == nil && (s.State != weir.HoldSettled || s.Parts[0].Used != used) {
			err = fmt.Errorf("not settled: %+v", s)
		}
		return err
	}
}

// Run lets all take turns, on each store.
func Run(t testing.TB, o Options, progress command.Progress) (out []Figure) {
	addr := testredis.Start(t).Addr
	settings := []Figure{
		{Store: inMemory, Callers: 1, Algorithm: weir.TokenBucket}, {Store: inMemory, Callers: 2, Algorithm: weir.TokenBucket},
		{Store: inMemory, Callers: 2, Algorithm: weir.SlidingWindow},
		{Store: inRedis, Callers: 128, Algorithm: weir.TokenBucket}, {Store: inRedis, Callers: 128, Algorithm: weir.SlidingWindow},
		{Store: inRedis, Callers: 1, Algorithm: weir.TokenBucket},
		{Store: inMemory, Callers: 1, Algorithm: weir.FixedWindow}, {Store: inRedis, Callers: 128, Algorithm: weir.FixedWindow},
		{Store: inMemory, Callers: 1, Algorithm: weir.TokenBucket, Shares: true}, {Store: inRedis, Callers: 128, Algorithm: weir.TokenBucket, Shares: true},
	}
	for step, setting := range settings {
		out = append(out, run(t, addr, o, setting, func() { progress(step, len(settings), fmt.Sprint(setting.Store, ", ", setting.Callers)) })...)
	}
	return out
}

func run(t testing.TB, addr string, o Options, setting Figure, progress func()) []Figure {
	// A store in memory remembers the holds of a minute, so each round has a store of its own.
	open := func() weir.Store { return memory.New(memory.Options{MaxKeys: 1 << 24}) }
	if setting.Store == inRedis {
		store := testcall.Must(redis.Open("redis://" + addr + "?timeout=1m"))(t)
		defer store.Close()
		open = func() weir.Store { return store }
	}
	all, keys := contestants(setting), clients.Keys(o.Keys)
	if setting.Algorithm == weir.FixedWindow || setting.Shares {
		o.Round, o.Rounds = o.Round/4, o.Rounds*more
	}
	missing := slices.Repeat([]int{len(keys)}, len(all))
	turns := rounds.Turns{Contestants: len(all), Rounds: o.Rounds, Seed: [2]uint64{7, 9}}
	measured := testcall.Must(rounds.Take(turns, func(_, i int) (Figure, error) {
		progress()
		limit := weir.Limit{Name: fmt.Sprint("c", i), Algorithm: setting.Algorithm, N: 1_000_000_000, Period: time.Hour}
		if all[i].change != nil {
			all[i].change(&limit)
		}
		store := open()
		l, err := weir.NewLimiter(store, limit)
		if err != nil {
			return Figure{}, err
		}
		c := all[i]
		if c.take != nil {
			compiled, err := limit.Compile()
			if err != nil {
				return Figure{}, err
			}
			c.do = func(_ *weir.Limiter, key string) error { return c.take(store, compiled, key) }
		}
		for _, key := range keys[:missing[i]] { // which are there before
			if _, err := l.Take(context.Background(), key, 1); err != nil {
				return Figure{}, err
			}
		}
		if setting.Store == inRedis {
			missing[i] = 0
		}
		runtime.GC()
		return measure(setting, c, l, keys, o.Round)
	}))(t)
	var figures []Figure
	for _, m := range measured {
		f := rounds.Median(m, func(f Figure) float64 { return f.Micros })
		for k := range m {
			m[k].Ratio = m[k].Micros / measured[0][k].Micros
		}
		f.Ratio = rounds.Median(m, func(f Figure) float64 { return f.Ratio }).Ratio
		figures = append(figures, f)
	}
	return figures
}

// measure lets callers do the same over and over for as long as a round lasts.
func measure(f Figure, c contestant, l *weir.Limiter, keys []string, round time.Duration) (Figure, error) {
	const walkLen = 1 << 12
	walks, errs, done := make([][]uint32, f.Callers), make([]error, f.Callers), make([]int, f.Callers)
	for g := range walks {
		walks[g] = clients.Walk(g, len(keys), walkLen)
	}
	var over atomic.Bool
	timer := time.AfterFunc(round, func() { over.Store(true) })
	defer timer.Stop()
	took := rounds.AtOnce(f.Callers, func(g int) {
		for n := 0; errs[g] == nil; n++ {
			errs[g] = c.do(l, keys[walks[g][n%walkLen]])
			if done[g] = n + 1; over.Load() {
				return
			}
		}
	})
	n := 0
	for g := range done {
		if errs[g] != nil {
			return f, fmt.Errorf("holds: %s in %s: %w", c.name, f.Store, errs[g])
		}
		n += done[g]
	}
	f.Name, f.Micros, f.Allocs = c.name, took.Wall.Seconds()*1e6/float64(n), float64(took.Mallocs)/float64(n)
	return f, nil
}

// WriteTable writes what a person reads.
func WriteTable(w io.Writer, m machine.Description, o Options, figures []Figure) error {
	fmt.Fprintf(w, "%v\n\nµs: wall time divided by requests, of a limiter with one limit and %s; median of %d rounds that take turns (of fixed windows and of ops, %d shorter ones).\n×: ratio to a take in the same round; median of the rounds.\n\n", m, table.Things(o.Keys, "key"), o.Rounds, o.Rounds*more)
	var rows [][]string
	for _, f := range figures {
		rows = append(rows, []string{f.Store, fmt.Sprint(f.Callers), f.Algorithm.String(), f.Name, fmt.Sprintf("%.2f", f.Micros), fmt.Sprintf("%.2f", f.Ratio), fmt.Sprintf("%.1f", f.Allocs)})
	}
	if err := table.Write(w, []string{"<store", "callers", "<algorithm", "<request", "µs", "×", "allocs"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return table.WriteAims(w, "", judge(figures))
}

// judge compares the worst of each store with its aim: all in memory, and many callers in Redis.
func judge(figures []Figure) (out []table.Aim) {
	for _, store := range []string{inMemory, inRedis} {
		a := table.Aim{What: "reserve and settle in " + store + " ÷ a take", Bound: aims[store]}
		place := table.Aim{What: "take and release a place in " + store + " ÷ a take of a token bucket", Bound: aims[store]}
		month := table.Aim{What: "a take of a calendar month in " + store + " ÷ one of a fixed window", Bound: calendarAim}
		shares := table.Aim{What: "a take of a token bucket that leaves units for others in " + store + " ÷ one that leaves none", Bound: sharesAim}
		for _, f := range figures {
			switch {
			case f.Store != store:
			case f.Name == ofMonth:
				month.Measured = f.Ratio
			case f.Name == ofShare:
				shares.Measured = f.Ratio
			case store == inRedis && f.Callers == 1:
			case f.Name == inFlight:
				place.Measured = max(place.Measured, f.Ratio)
			default:
				a.Measured = max(a.Measured, f.Ratio)
			}
		}
		out = append(out, a, place, month, shares)
	}
	return out
}
