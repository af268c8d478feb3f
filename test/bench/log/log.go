// Package log drives sliding logs up to the largest N on a Redis that it starts, and
// finds the slowest call of each phase, by SLOWLOG.
package log

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
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
	server := testredis.Start(r)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	table := bench.NewTable("N", "<phase", "script calls", "allowed", "mean µs", "slowest µs", "over 5 ms", "timed out", "bytes a unit")
	for _, n := range o.sizes {
		d := newDrive(ctx, r, server.Addr, n, o.some)
		for i, p := range phases {
			d.phase = fmt.Sprintf("N = %s, %s", bench.Count(n), p.name)
			r.Step(i, len(phases), d.phase)
			f := d.measure(p)
			table.Row("%s|%s|%s|%s|%d|%d|%s|%s|%s", bench.Count(n), p.name, bench.Count(f.Count), bench.Count(f.allowed), f.Mean,
				f.Slowest.Microseconds(), bench.Count(f.Over), bench.Count(f.late), f.bytes)
		}
		d.close()
	}
	out := r.File("log.txt")
	fmt.Fprintf(out, "# Large sliding logs in Redis\n\n%s\n\n%d callers, each with a store of its own; in the last phase of each N they share one.\n\n", bench.Describe(), callers)
	table.Write(out)
}

// drive is one log of N units. Its clock goes on by a microsecond a call, so that each
// charge is an entry, and leaps when a phase says so.
type drive struct {
	testing.TB
	phase  string
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

func newDrive(ctx context.Context, t testing.TB, addr string, n, some int64) *drive {
	d := &drive{TB: t, phase: "start", ctx: ctx, addr: addr, n: n, some: some}
	d.clock.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	d.redis = bench.NewServer(t, addr)
	for range callers {
		s := testkit.Must(d.open(func() weir.Micros { return weir.Micros(d.clock.Add(1)) }, time.Second))(t)
		d.stores = append(d.stores, s)
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

// require ends the run if something has failed.
func (d *drive) require(err error) {
	if err != nil {
		d.Fatalf("log: %s: %v", d.phase, err)
	}
}

func (d *drive) close() {
	for _, s := range d.stores {
		s.Close()
	}
}

// limit is a log of so many units an hour; all share the state of the one key.
func limit(n int64) *weir.Compiled {
	return weir.MustCompile(fmt.Sprintf("sliding_log %d/1h", max(1, n)))
}

// pass lets time pass before the next call.
func (d *drive) pass(t time.Duration) { d.clock.Add(t.Microseconds()) }

// take has the callers ask for so many requests in all, and returns how many were
// allowed. Every so many, a receipt is kept.
func (d *drive) take(stores []*redis.Store, requests int64, limit *weir.Compiled, cost int64) (int64, error) {
	var left, allowed atomic.Int64
	left.Store(requests)
	err := d.each(stores, func(s *redis.Store) error {
		var decisions []weir.Decision
		for left.Add(-1) >= 0 {
			op := weir.Op{Key: "k", Limit: limit, Cost: cost}
			var err error
			decisions, err = s.Take(d.ctx, decisions[:0], op)
			if (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, weir.ErrUnavailable)) && d.ctx.Err() == nil {
				d.late.Add(1)
				continue
			}
			if err != nil {
				return err
			}
			if !decisions[0].Allowed {
				continue
			}
			if i := allowed.Add(1); i%max(1, requests/2000) == 0 {
				op.Receipt = decisions[0].Receipt
				d.mu.Lock()
				d.receipts = append(d.receipts, op)
				d.mu.Unlock()
			}
		}
		return nil
	})
	return allowed.Load(), err
}

// refund gives the kept receipts back, those in the middle first.
func (d *drive) refund() error {
	ops := append(d.receipts[len(d.receipts)/2:], d.receipts[:len(d.receipts)/2]...)
	d.receipts = nil
	var next atomic.Int64
	return d.each(d.stores, func(s *redis.Store) error {
		for i := next.Add(1) - 1; i < int64(len(ops)); i = next.Add(1) - 1 {
			if err := s.Refund(d.ctx, ops[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *drive) each(stores []*redis.Store, do func(*redis.Store) error) error {
	errs := make([]error, callers)
	bench.AtOnce(callers, func(i int) { errs[i] = do(stores[i%len(stores)]) })
	return errors.Join(errs...)
}

// figures of a phase.
type figures struct {
	bench.Calls
	allowed int64
	late    int64
	bytes   string
}

func (d *drive) measure(p phase) (f figures) {
	d.late.Store(0)
	f.Calls = d.redis.Measure(func() {
		var err error
		f.allowed, err = p.run(d)
		d.require(err)
	})
	f.late = d.late.Load()
	f.bytes = d.bytes()
	return f
}

// bytes is what a unit takes, if all of N are there.
func (d *drive) bytes() string {
	keys := d.redis.Do("KEYS", "*").([]any)
	if len(keys) != 1 {
		return ""
	}
	used := d.redis.Do("MEMORY", "USAGE", keys[0].(string), "SAMPLES", "0").(int64)
	decisions, err := d.stores[0].Peek(d.ctx, nil, weir.Op{Key: "k", Limit: limit(d.n), Cost: 1})
	if d.require(err); decisions[0].Remaining > 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", float64(used)/float64(d.n))
}
