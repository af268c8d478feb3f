// Package log drives sliding logs up to the largest N on a Redis that it starts, and
// finds the slowest call of each phase, by SLOWLOG.
package log

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/redis"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

const (
	callers = 24
	period  = time.Hour
)

type options struct {
	sizes []int64 // values of N
	some  int64   // requests of a phase that need not be N
}

var (
	full  = options{[]int64{1_000, 10_000, 100_000, 1_000_000}, 20_000}
	quick = options{[]int64{1_000, 10_000}, 20_000}
)

// Run writes the table.
func Run(r *bench.Run) { run(r, bench.Pick(r, full, quick)) }

func run(r *bench.Run, o options) {
	addr := testredis.Start(r).Addr
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	table := bench.NewTable("N", "<phase", "script calls", "allowed", "mean µs", "slowest µs", "over 5 ms", "timed out", "bytes a unit")
	for _, n := range o.sizes {
		d := newDrive(ctx, r, addr, n, o.some)
		for i, p := range phases {
			d.Step(i, len(phases), fmt.Sprintf("N = %s, %s", bench.Count(n), p.name))
			d.late.Store(0)
			var allowed int64
			var err error
			calls := d.redis.Measure(func() { allowed, err = p.run(d) })
			if err != nil {
				d.Fatalf("N = %d, %s: %v", n, p.name, err)
			}
			table.Row("%s|%s|%s|%s|%d|%d|%s|%s|%s", bench.Count(n), p.name, bench.Count(calls.Count), bench.Count(allowed), calls.Mean,
				calls.Slowest.Microseconds(), bench.Count(calls.Over), bench.Count(d.late.Load()), d.bytes())
		}
		for _, s := range d.stores {
			s.Close()
		}
	}
	r.Write("log.txt", "# Large sliding logs in Redis", bench.Describe(),
		fmt.Sprintf("%d callers, each with a store of its own; in the last phase of each N they share one.", callers), table)
}

// drive is one log of N units. Its clock goes on by a microsecond a call, so that each
// charge is an entry, and leaps when a phase says so.
type drive struct {
	*bench.Run
	ctx    context.Context
	addr   string
	n      int64
	some   int64
	redis  *bench.Server
	stores []*redis.Store // one a caller, so that no two share a call
	clock  atomic.Int64
	late   atomic.Int64 // checks of the phase that timed out

	mu       sync.Mutex
	receipts []weir.Op // of charges that may be given back
}

func newDrive(ctx context.Context, r *bench.Run, addr string, n, some int64) *drive {
	d := &drive{Run: r, ctx: ctx, addr: addr, n: n, some: some, redis: bench.NewServer(r, addr)}
	d.clock.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	for range callers {
		d.stores = append(d.stores, testkit.Must(d.open(func() weir.Micros { return weir.Micros(d.clock.Add(1)) }, time.Second))(r))
	}
	d.redis.Do("FLUSHALL")
	return d
}

func (d *drive) open(clock func() weir.Micros, timeout time.Duration) (*redis.Store, error) {
	config, err := redis.ParseURL("redis://" + d.addr)
	if err != nil {
		return nil, err
	}
	config.Options.Clock, config.Options.Timeout = clock, timeout
	return config.Open()
}

// op is a charge of the one key, whose state all limits share: logs of so many units an hour.
func op(n, cost int64) weir.Op {
	return weir.Op{Key: "k", Limit: weir.MustCompile(fmt.Sprintf("sliding_log %d/1h", max(1, n))), Cost: cost}
}

// pass lets time pass before the next call.
func (d *drive) pass(t time.Duration) { d.clock.Add(t.Microseconds()) }

// take has the callers ask for so many requests in all, and returns how many were
// allowed. Every so many, a receipt is kept.
func (d *drive) take(stores []*redis.Store, requests int64, op weir.Op) (int64, error) {
	var allowed atomic.Int64
	err := bench.All(callers, int(requests), func(i int) error {
		decisions, err := stores[i%len(stores)].Take(d.ctx, nil, op)
		if (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, weir.ErrUnavailable)) && d.ctx.Err() == nil {
			d.late.Add(1)
			return nil
		}
		if err != nil || !decisions[0].Allowed {
			return err
		}
		if n := allowed.Add(1); n%max(1, requests/2000) == 0 {
			kept := op
			kept.Receipt = decisions[0].Receipt
			d.mu.Lock()
			d.receipts = append(d.receipts, kept)
			d.mu.Unlock()
		}
		return nil
	})
	return allowed.Load(), err
}

// takeSome asks for some requests of one unit.
func (d *drive) takeSome() (int64, error) { return d.take(d.stores, d.some, op(d.n, 1)) }

// exactly fails unless so many were allowed; a late check may have been charged, or not.
func (d *drive) exactly(stores []*redis.Store, want, requests int64, op weir.Op) (int64, error) {
	got, err := d.take(stores, requests, op)
	if err == nil && (got > want || got+d.late.Load() < want) {
		err = fmt.Errorf("%d were allowed, want %d", got, want)
	}
	return got, err
}

// refund gives the kept receipts back, those in the middle first.
func (d *drive) refund() error {
	ops := append(d.receipts[len(d.receipts)/2:], d.receipts[:len(d.receipts)/2]...)
	d.receipts = nil
	return bench.All(callers, len(ops), func(i int) error { return d.stores[i%callers].Refund(d.ctx, ops[i]) })
}

// bytes is what a unit takes, if all of N are there.
func (d *drive) bytes() string {
	keys := d.redis.Do("KEYS", "*").([]any)
	if len(keys) != 1 {
		return ""
	}
	used := d.redis.Do("MEMORY", "USAGE", keys[0].(string), "SAMPLES", "0").(int64)
	if testkit.Must(d.stores[0].Peek(d.ctx, nil, op(d.n, 1)))(d)[0].Remaining > 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", float64(used)/float64(d.n))
}

// phase is something that happens to a log, after what happened before.
type phase struct {
	name string
	run  func(*drive) (allowed int64, err error)
}

var phases = []phase{
	{"a script that only counts", func(d *drive) (int64, error) { // what the machine does to a call of this length, whatever it is for
		return 0, bench.All(callers, int(d.some), func(int) error {
			d.redis.Do("EVAL", "for _ = 1, 4000 do end return 1", "0")
			return nil
		})
	}},
	{"grows by cost 1", func(d *drive) (int64, error) { return d.exactly(d.stores, d.n, d.n+1000, op(d.n, 1)) }},
	{"is full, cost 1", func(d *drive) (int64, error) { return d.exactly(d.stores, 0, d.some, op(d.n, 1)) }},
	{"is full, cost N/2", func(d *drive) (int64, error) { return d.exactly(d.stores, 0, d.some, op(d.n, d.n/2)) }},
	{"N lowered to N/10", func(d *drive) (int64, error) { return d.exactly(d.stores, 0, d.some, op(d.n/10, 1)) }},
	{"refunds", func(d *drive) (int64, error) { return 0, d.refund() }},
	{"grows again", (*drive).takeSome},
	{"slides", func(d *drive) (int64, error) {
		// As many units stop counting as are taken.
		d.pass(period - time.Duration(d.n)*time.Microsecond)
		return d.takeSome()
	}},
	{"half expires", func(d *drive) (int64, error) {
		d.pass(time.Duration(d.n/2) * time.Microsecond)
		return d.takeSome()
	}},
	{"the newest half refunded", func(d *drive) (int64, error) {
		newest := op(d.n, max(1, d.n/4))
		newest.Receipt = weir.Latest
		return 0, d.stores[0].Refund(d.ctx, newest)
	}},
	{"all expires", func(d *drive) (int64, error) {
		d.pass(2 * period)
		return d.takeSome()
	}},
	{"large costs", func(d *drive) (int64, error) {
		d.pass(2 * period)
		return d.exactly(d.stores, 100, d.some, op(d.n, d.n/100))
	}},
	{"reset of a full log", func(d *drive) (int64, error) { return 0, d.stores[0].Reset(d.ctx, op(d.n, 1)) }},
	{"one store, real clock", func(d *drive) (int64, error) { // as in a process, whose callers share a store with the usual timeout
		s, err := d.open(nil, redis.DefaultTimeout)
		if err != nil {
			return 0, err
		}
		defer s.Close()
		return d.exactly([]*redis.Store{s}, d.n, d.n+d.some, op(d.n, 1))
	}},
}
