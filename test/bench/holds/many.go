package holds

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/redis"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// manyOptions are how many holds of a key are open, how many callers reserve at once, and how many
// pairs of reserve and settle are measured.
type manyOptions struct {
	open, burst, pairs int
	agrees             bool // the store waits until it may have many
}

var (
	fullMany  = manyOptions{open: 100_000, burst: 1000, pairs: 2000, agrees: true}
	quickMany = manyOptions{open: 10_000, burst: 1000, pairs: 500, agrees: true}
)

const (
	few     = 10
	callers = 128
)

// RunMany writes the table of many open holds of one key in Redis.
func RunMany(r *bench.Run) { runMany(r, bench.Pick(r, fullMany, quickMany)) }

func runMany(r *bench.Run, o manyOptions) {
	server := testredis.Start(r)
	admin := bench.NewServer(r, server.Addr)
	open := func(timeout string) *redis.Store {
		store := testkit.Must(redis.Open("redis://" + server.Addr + timeout))(r)
		r.Cleanup(store.Close)
		return store
	}
	d := manyDrive{Run: r, usual: open(""), store: open("?timeout=5s"), admin: admin, manyOptions: o}
	if o.agrees {
		d.waitUntilAgreed()
	}
	table := bench.NewTable("<algorithm", fmt.Sprintf("%d open", few), bench.Count(o.open)+" open", "×", "bytes a hold", fmt.Sprintf("failed of %d at once", o.burst), "slowest call, ms", "when all expire, ms")
	for i, algorithm := range weir.Algorithms() {
		r.Step(i, len(weir.Algorithms()), algorithm.String())
		d.row(table, algorithm)
	}
	r.Write("holds-many.txt", "# Many open holds of one key in Redis", bench.Describe(),
		fmt.Sprintf("open: processor time of Redis to reserve and settle, in µs, with so many open holds of the key; %s, %d callers.\n×: the latter ÷ the former.", bench.Things(o.pairs, "pair"), callers), table)
}

// manyDrive opens holds of one key.
type manyDrive struct {
	*bench.Run
	usual *redis.Store // with the usual timeout
	store *redis.Store
	admin *bench.Server
	manyOptions
}

// waitUntilAgreed waits until both stores may have many.
func (d *manyDrive) waitUntilAgreed() {
	begun, op := time.Now(), weir.Op{Limit: weir.MustCompile("token_bucket 1000000/1h"), Cost: 1}
	for i, store := range []*redis.Store{d.usual, d.store} {
		op.Key = fmt.Sprint("agrees", i)
		for d.admin.Do("EXISTS", "weir:%many:T1h{"+op.Key+"}") == int64(0) {
			d.Step(int(time.Since(begun)/time.Second), 90, "waiting until the stores may have many")
			time.Sleep(time.Second)
			for range few {
				_ = testkit.Must(store.Reserve(context.Background(), nil, weir.Reservation{ID: weir.NewHoldID(), TTL: time.Hour}, op))(d)
			}
		}
	}
}

func (d *manyDrive) row(table *bench.Table, algorithm weir.Algorithm) {
	d.admin.Do("FLUSHALL")
	l := weir.Limit{Algorithm: algorithm, N: 1_000_000, Period: time.Hour, Release: true}
	op := weir.Op{Key: "k", Limit: testkit.Must(l.Compile())(d), Cost: 2}
	alone := op
	alone.Key = "alone"
	d.reserve(alone, few, time.Hour)
	before := d.pair(alone)
	begun, memory := time.Now(), d.admin.Number("memory", "used_memory")
	const ttl = 40 * time.Second // more than it takes to open all
	calls := d.admin.Measure(func() { d.reserve(op, d.open, ttl) })
	memory = d.admin.Number("memory", "used_memory") - memory
	after := d.pair(op)
	var failed atomic.Int64
	burst := d.admin.Measure(func() {
		bench.AtOnce(d.burst, func(int) {
			if _, err := d.usual.Reserve(context.Background(), nil, weir.Reservation{ID: weir.NewHoldID(), TTL: time.Second}, op); err != nil {
				failed.Add(1)
			}
		})
	})
	if d.agrees {
		time.Sleep(time.Until(begun.Add(ttl + 2*time.Second)))
	}
	expiry := d.admin.Measure(func() {
		for range 100 {
			if _, err := d.store.Peek(context.Background(), nil, op); err == nil {
				break
			}
		}
	})
	table.Row("%s|%.1f|%.1f|%.2f|%.0f|%d|%.1f|%.1f", algorithm, before, after, after/before, memory/float64(d.open), failed.Load(), max(calls.Slowest, burst.Slowest).Seconds()*1e3, expiry.Slowest.Seconds()*1e3)
}

// reserve opens holds, so many callers at once.
func (d *manyDrive) reserve(op weir.Op, n int, ttl time.Duration) {
	testkit.OK(d, bench.All(min(n, callers), n, func(int) error {
		return testkit.Err(d.store.Reserve(context.Background(), nil, weir.Reservation{ID: weir.NewHoldID(), TTL: ttl}, op))
	}))
}

// pair is the processor time of Redis to reserve and settle, in microseconds.
func (d *manyDrive) pair(op weir.Op) float64 {
	begun := d.admin.Busy()
	testkit.OK(d, bench.All(callers, d.pairs, func(int) error {
		id := weir.NewHoldID()
		if _, err := d.store.Reserve(context.Background(), nil, weir.Reservation{ID: id}, op); err != nil {
			return err
		}
		return testkit.Err(d.store.Settle(context.Background(), weir.Settlement{ID: id, Used: func(string, int64) int64 { return 1 }}))
	}))
	return (d.admin.Busy() - begun).Seconds() * 1e6 / float64(d.pairs)
}
