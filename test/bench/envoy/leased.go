package envoy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/lease"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// leasedOptions are of services that lease units, beside one on memory and one that always asks.
type leasedOptions struct {
	base    options
	checks  int // of the engine, in each round
	demands []float64
	far     time.Duration // the round of those that are far from Redis
	ready   time.Duration // before each round, so that its keys have leases: those that are idle for a second have none
}

var (
	fullLeased = leasedOptions{
		base:   options{values: 1000, inFlight: []int{1, 4, 16, 64}, rounds: 5, round: 2 * time.Second, warmUp: 2 * time.Minute},
		checks: 400_000, demands: []float64{0.8, 1.6}, far: 60 * time.Second, ready: 2 * time.Second,
	}
	quickLeased = leasedOptions{
		base:   options{values: 1000, inFlight: []int{1, 16}, rounds: 3, round: 200 * time.Millisecond, warmUp: 2 * time.Minute},
		checks: 20_000, demands: []float64{0.8}, far: time.Second, ready: time.Second,
	}
)

const (
	weirLeased = "weir, leases"
	weirLonger = "weir, leases of 10s"
	nearTrip   = time.Millisecond
	farTrip    = 150 * time.Millisecond
	leasedRate = 500.0 // a second, of the limits of the open loop
)

// leasedConfiguration has a limit that nobody reaches, and some of one client: near Redis, far from it, and of
// each algorithm, as simulated.
const leasedConfiguration = configuration + `
  - key: near
    rate_limit: {unit: second, requests_per_unit: 500}
  - key: far
    rate_limit: {unit: minute, requests_per_unit: 30000}
  - {key: fixed_window, rate_limit: {unit: second, requests_per_unit: 500, algorithm: fixed_window}}
  - {key: sliding_window, rate_limit: {unit: second, requests_per_unit: 500, algorithm: sliding_window}}
  - {key: sliding_log, rate_limit: {unit: second, requests_per_unit: 500, algorithm: sliding_log}}
  - {key: sliding_buckets, rate_limit: {unit: second, requests_per_unit: 500, algorithm: sliding_buckets}}
  - {key: token_bucket, rate_limit: {unit: second, requests_per_unit: 500, algorithm: token_bucket}}
  - {key: leaky_bucket, rate_limit: {unit: second, requests_per_unit: 500, algorithm: leaky_bucket}}
`

// fleet are the services on one Redis, or none.
type fleet struct {
	field
	leasedOptions
}

// RunLeased writes a table of each kind.
func RunLeased(r *bench.Run) {
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Minute)
	r.Cleanup(cancel)
	f := newFleet(r, bench.Pick(r, fullLeased, quickLeased))
	f.startAll()
	leased := lease.New(bench.OpenRedis(f, f.redis.Addr), lease.Options{})
	f.Cleanup(func() { _ = leased.Close(context.Background()) })
	f.awaitLeases(ctx)
	f.awaitStore(ctx, leased)
	checks := f.checkEngines(leased)
	engines := bench.NewTable("<store", "ns", "×")
	for i, name := range checks.Names {
		engines.Row("%s|%.0f|%.2f", name, checks.Median(i, bench.Round.CallerNanos), checks.Ratio(i, 0, bench.Round.CallerNanos))
	}
	closed := bench.NewTable("requests", "<contestant", "requests/s", "×", "p50 ms", "p99 ms", "CPU µs")
	f.measureClosed(ctx, closed)
	open := bench.NewTable("<to Redis", "demand", "<contestant", "p50 ms", "p99 ms", "p99.9 ms", "p50 ×", "waited %")
	f.measureOpen(ctx, open)
	r.Write("leased.txt", bench.Describe(),
		"With leases, weir asks Redis for units, and decides in memory. ×: ratio to weir on memory, in the same round; figures are\nmedians of the rounds. Clients, services and Redis share the machine.",
		fmt.Sprintf("a check of the engine under one rule, with %s keys", bench.Count(f.values)), engines,
		fmt.Sprintf("Envoy's rate limit service by the stock client of grpc-go, one connection, with %s values of one descriptor; leases are of 1s if not said", bench.Count(f.values)), closed,
		"an open loop of one client, whose requests leave when a schedule says so; waited: for Redis; demand: ÷ the limit", open)
}

// newFleet has a Redis, and no services yet.
func newFleet(r *bench.Run, o leasedOptions) *fleet {
	f := &fleet{field: field{Run: r, options: o.base}, leasedOptions: o}
	f.Step(0, 1, "starting weir")
	f.config = filepath.Join(f.TempDir(), "config")
	testkit.OK(f, os.Mkdir(f.config, 0o755))
	testkit.OK(f, os.WriteFile(filepath.Join(f.config, "bench.yaml"), []byte(leasedConfiguration), 0o644))
	f.program, f.redis = bench.Build(f), testredis.Start(f)
	return f
}

// startAll starts all services. Those with leases also come at each distance from Redis.
func (f *fleet) startAll() {
	f.startWeir(weirMemory, inMemory)
	f.startWeir(weirRedis, "redis://"+f.redis.Addr+patience)
	f.startWeir(weirLeased, "redis://"+f.redis.Addr+patience, "--lease", "1s")
	f.startWeir(weirLonger, "redis://"+f.redis.Addr+patience, "--lease", "10s")
	for _, trip := range []time.Duration{nearTrip, farTrip} {
		store := f.storeAt(trip)
		f.startWeir(at(weirRedis, trip, 0), store)
		f.startWeir(at(weirLeased, trip, 0), store, "--lease", "2s")
	}
}

// storeAt is the Redis, so far away.
func (f *fleet) storeAt(trip time.Duration) string {
	line := testredis.NewProxy(f, f.redis)
	line.Latency(trip)
	return "redis://" + line.Addr + patience
}

func at(name string, trip time.Duration, i int) string {
	return fmt.Sprintf("%s, %v, %d", name, trip, i)
}

// asked is how many requests have asked the store of a service with leases; 0 of another one.
func (f *fleet) asked(name string) float64 {
	return f.metric(name, `weir_lease_checks_total{how="asked"}`)
}

// metric returns one, or 0 if the service does not have it.
func (f *fleet) metric(name, metric string) float64 {
	answer := testkit.Must(http.Get("http://" + f.contestants[name].metrics + "/metrics"))(f)
	defer answer.Body.Close()
	for line := range strings.Lines(string(testkit.Must(io.ReadAll(answer.Body))(f))) {
		if value, found := strings.CutPrefix(line, metric+" "); found {
			return testkit.Must(strconv.ParseFloat(strings.TrimSpace(value), 64))(f)
		}
	}
	return 0
}

// awaitLeases asks until all services lease units, which they do when all know that all can.
func (f *fleet) awaitLeases(ctx context.Context) {
	f.Step(0, 1, "waiting for leases, a minute")
	deadline := time.Now().Add(f.warmUp)
	for name, c := range f.contestants {
		for n := 0; ; n++ {
			before := f.asked(name)
			r, err := c.stock.closed(ctx, 16, 500*time.Millisecond)
			if err != nil {
				f.Fatalf("%s: %v", name, err)
			}
			if !strings.HasPrefix(name, weirLeased) || f.asked(name)-before < 0.9*float64(r.Done) {
				break
			}
			if time.Now().After(deadline) {
				f.Fatalf("%s leases nothing within %v", name, f.warmUp)
			}
		}
	}
}

const oneRule = "rules:\n  - {id: counted, key: user, limit: 1000000000/1h}\n"

// awaitStore does so with a store in this process.
func (f *fleet) awaitStore(ctx context.Context, s *lease.Store) {
	op := weir.Op{Key: "awaited", Limit: weir.MustCompile("1000000/1h"), Cost: 1}
	for deadline := time.Now().Add(f.warmUp); s.Stats().Local == 0; time.Sleep(10 * time.Millisecond) {
		testkit.Must(s.Take(ctx, nil, op))(f)
		if time.Now().After(deadline) {
			f.Fatalf("the store leases nothing within %v", f.warmUp)
		}
	}
}

// checkEngines lets engines in this process take turns.
func (f *fleet) checkEngines(leased weir.Store) bench.Scores {
	users, order := bench.Keys(f.values), bench.NewOrder(1, f.values, bench.Short)
	contestant := func(name string, store weir.Store) bench.Contestant {
		ask := bench.Checks(bench.NewEngine(f, store, oneRule), 1, rule.Request{}, func(req *rule.Request, n int) { req.User = users[order.At(n)] })
		for n := range 4 * len(users) { // the first requests of a key ask
			testkit.OK(f, ask(n))
		}
		return bench.Contestant{Name: name, Ask: func(int) func(int) error { return ask }}
	}
	return bench.Contest{
		What: "the engine", Rounds: f.rounds, Load: bench.Load{Callers: 1, Count: f.checks},
		Contestants: []bench.Contestant{contestant("memory", memory.New(memory.Options{})), contestant("leases on Redis", leased)},
	}.Run(f.Run)
}

// answered requires an answer by a limit, whatever it says.
func answered(r *pb.RateLimitResponse) error {
	if len(r.Statuses) != 1 || r.Statuses[0].CurrentLimit == nil {
		return fmt.Errorf("no limit has answered: %v", r)
	}
	return nil
}

// one has a contestant asked by one client.
func (c *contestant) one(key, value string, check func(*pb.RateLimitResponse) error) *stock {
	return &stock{client: c.stock.client, requests: []*pb.RateLimitRequest{request(key, value)}, check: check}
}

func (f *fleet) measureClosed(ctx context.Context, t *bench.Table) {
	for _, n := range f.inFlight {
		for name, c := range f.contestants {
			ready := f.ready
			if name == weirLonger {
				ready *= 5 // until it knows how much its keys use while a lease lasts
			}
			c.prepare = func() error { return testkit.Err(c.stock.closed(ctx, n, ready)) }
		}
		res := f.take(fmt.Sprintf("%d in flight", n), 0, []string{weirMemory, weirLeased, weirLonger, weirRedis}, func(c *contestant, _ int) (bench.Round, error) { return c.stock.closed(ctx, n, f.round) })
		for _, name := range res.Names {
			t.Row("%s|%s|%s", res.What, name, res.closedCells(name, weirMemory))
		}
	}
}

func (f *fleet) measureOpen(ctx context.Context, t *bench.Table) {
	for _, c := range f.contestants {
		c.prepare = nil
	}
	for _, trip := range []time.Duration{nearTrip, farTrip} {
		play, key, length := *f, "near", 2*f.round
		if trip == farTrip {
			key, length, play.field.rounds = "far", f.far, 1
		}
		for _, demand := range f.demands {
			rate := demand * leasedRate
			res := play.take(fmt.Sprintf("%v, %.1f × the limit", trip, demand), 0, []string{weirMemory, at(weirLeased, trip, 0), at(weirRedis, trip, 0)}, func(c *contestant, n int) (bench.Round, error) {
				s := c.one(key, fmt.Sprint(c.name, demand), answered)
				if _, err := s.open(ctx, schedule(rate, f.ready+2*trip, uint64(n))); err != nil {
					return bench.Round{}, err
				}
				before := f.asked(c.name)
				one, err := s.open(ctx, schedule(rate, length, uint64(n)))
				one.Waited = int(f.asked(c.name) - before)
				return one, err
			})
			for i, name := range []string{weirMemory, weirLeased, weirRedis} {
				waited := 100 * res.Median(i, func(r bench.Round) float64 { return float64(r.Waited) / float64(max(1, r.Done)) })
				if name == weirRedis {
					waited = 100
				}
				t.Row("%v|%.1f|%s|%s|%s|%s|%.2f|%.1f", trip, demand, name, millis(res.Median(i, bench.Round.P50Nanos)), millis(res.Median(i, bench.Round.P99Nanos)),
					millis(res.Median(i, bench.Round.P999Nanos)), res.Ratio(i, 0, bench.Round.P50Nanos), waited)
			}
		}
	}
}
