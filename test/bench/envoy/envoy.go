// Package envoy measures Envoy's rate limit service over gRPC: weir beside
// envoyproxy/ratelimit, which it builds, and beside a server that does nothing:
//
//   - by callers of package unary, who leave most of the machine to the services, as Envoy
//     would: what the services can do, and what a request costs them;
//   - by the stock client of grpc-go over one connection, as a worker thread of Envoy has one,
//     with 1, 4, 16 and 64 requests in flight;
//   - by the same client in an open loop, in which requests leave when a schedule says so,
//     whatever the answers do, at 50 % and 80 % of what envoyproxy/ratelimit can do.
//
// Every contestant is a process of its own with the same file, and those that need a
// Redis have one each. Their rounds take turns, in another order each time. A figure is
// the median of the rounds, and a ratio that of the ratios within a round. Every answer is
// looked at, and one that is not as expected fails the run.
package envoy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/test/bench/internal/bench"
	"github.com/weirhq/weir/test/conformance/envoy/peer"
)

type options struct {
	values               int       // of the descriptor
	callers, connections int       // that leave most of the machine to the services
	inFlight             []int     // of the stock client
	loads                []float64 // of the open loop, as shares of the other service's capacity
	rounds               int
	round, warmUp        time.Duration
}

var (
	full  = newOptions(11, 800*time.Millisecond, 500*time.Millisecond)
	quick = newOptions(3, 200*time.Millisecond, 200*time.Millisecond)
)

func newOptions(rounds int, round, warmUp time.Duration) options {
	return options{
		values: 10_000, callers: 64, connections: 4, inFlight: []int{1, 4, 16, 64}, loads: []float64{0.5, 0.8},
		rounds: rounds, round: round, warmUp: warmUp,
	}
}

// Run writes three tables and their aims.
func Run(r *bench.Run) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	r.Cleanup(cancel)
	r.Step(0, 1, "building envoyproxy/ratelimit and weir")
	h := &field{Run: r, options: bench.Pick(r, full, quick)}
	h.start(ctx)
	h.measure(ctx).write(r, h.options)
}

// The names of the contestants.
const (
	doesNothing = "a gRPC server that does nothing"
	weirMemory  = "weir, memory"
	weirRedis   = "weir, Redis"
	theirs      = "envoyproxy/ratelimit"
	theirsTuned = theirs + ", tuned"
)

// patience keeps a run from failing because the machine, which is busy all the time, for
// once leaves a process waiting for longer than the 50 ms that a check may take.
const patience = "?timeout=5s"

// configuration is that of all contestants.
const configuration = `
domain: bench
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 1000000000}
`

// field holds the contestants.
type field struct {
	*bench.Run
	options
	contestants map[string]*contestant

	// Of those that are weir.
	program, config string
	redis           *testredis.Server
}

// contestant is a service that is measured.
type contestant struct {
	name      string
	processes []int // its own, and that of its Redis
	lean      *lean
	stock     *stock
	metrics   string       // where it tells them, if somebody asks
	prepare   func() error // before each of its rounds; nil for nothing
}

// start starts all contestants.
func (h *field) start(ctx context.Context) {
	root := h.TempDir()
	config := testkit.Must(peer.Layout(root))(h)
	testkit.OK(h, os.WriteFile(filepath.Join(config, "bench.yaml"), []byte(configuration), 0o644))
	h.startTheirs(ctx, root)
	h.startNothing()
	h.config, h.program, h.redis = config, bench.Build(h), testredis.Start(h)
	h.startWeir(weirMemory, inMemory)
	h.startWeir(weirRedis, "redis://"+h.redis.Addr+patience)
}

// startTheirs starts the other service with its own settings, and with those that suit
// many callers best: a connection to Redis for each, and writes gathered.
func (h *field) startTheirs(ctx context.Context, root string) {
	programs := testkit.Must(peer.Build(ctx, root, nil, nil))(h)
	start := func(name string, settings ...string) {
		redis := testredis.Start(h)
		service := testkit.Must(peer.Start(ctx, programs, root, redis.Addr, settings...))(h)
		h.Cleanup(service.Stop)
		h.add(name, service.GRPC, service.Process(), redis.PID())
	}
	start(theirs)
	start(theirsTuned,
		fmt.Sprintf("REDIS_POOL_SIZE=%d", h.callers), "REDIS_PIPELINE_WINDOW=150us", "REDIS_PIPELINE_LIMIT=8", "LOG_LEVEL=error")
}

const inMemory = "memory://"

// startWeir starts weir with its own settings, and so with metrics and statistics.
func (h *field) startWeir(name, store string, flags ...string) {
	address := testkit.Must(testredis.FreeAddr())(h)
	p := bench.ServeWeir(h, h.program, h.TempDir(), bench.GRPC, append([]string{
		"--http", address, "--grpc", "127.0.0.1:0", "--envoy-config", h.config, "--store", store,
	}, flags...)...)
	processes := []int{p.PID}
	if store != inMemory {
		processes = append(processes, h.redis.PID())
	}
	h.add(name, p.Address, processes...).metrics = address
}

// startNothing starts this program as a contestant. Its standard input ends with this process.
func (h *field) startNothing() {
	c := exec.Command(testkit.Must(os.Executable())(h))
	c.Env = append(os.Environ(), serveVariable+"=1")
	testkit.Must(c.StdinPipe())(h)
	p := bench.Listen(h, c, "")
	h.add(doesNothing, p.Address, p.PID)
}

// add adds a contestant, with which the clients connect.
func (h *field) add(name, address string, processes ...int) *contestant {
	if h.contestants == nil {
		h.contestants = map[string]*contestant{}
	}
	messages, encoded := requests(h, h.values)
	c := &contestant{name: name, processes: processes, lean: dialLean(h, address, encoded, h.options), stock: dialStock(h, address, messages)}
	h.contestants[name] = c
	return c
}

// results are of all tables.
type results struct {
	lean     *result
	stock    []*result // by how many are in flight
	capacity float64   // of the other service with the stock client, in requests a second
	open     []*result // by the load
}

// result is what contestants did in the rounds that they took turns in.
type result struct {
	bench.Scores
	bound float64 // that weir is to reach
}

// cpu is the time that a request costs a contestant and its Redis, or nothing where Linux is not
// there to say: of all rounds together, because one is too short for the unit in which Linux counts.
func (r *result) cpu(name string) string {
	if micros := r.Sum(r.At(name)).CPUMicros(); micros > 0 {
		return fmt.Sprintf("%.0f", micros)
	}
	return ""
}

// fastest and promptest are the better of the other service's two settings.
func (r *result) fastest() string {
	if r.MedianOf(theirs, bench.Round.Rate) >= r.MedianOf(theirsTuned, bench.Round.Rate) {
		return theirs
	}
	return theirsTuned
}

func (r *result) promptest() string {
	if r.MedianOf(theirs, bench.Round.P99Nanos) <= r.MedianOf(theirsTuned, bench.Round.P99Nanos) {
		return theirs
	}
	return theirsTuned
}

// few requests in flight have a lower bound: most of their time goes into the client, whose
// answers are waited for by nobody else.
const few = 4

// withRedis are the contestants whose limits are in Redis, and what is the least for all of them.
var withRedis = []string{theirs, theirsTuned, doesNothing, weirRedis}

// measure fills all tables, after every service has answered for a while.
func (h *field) measure(ctx context.Context) *results {
	for name, c := range h.contestants {
		_, err := c.lean.ask(h.warmUp)
		if err == nil {
			_, err = c.stock.closed(ctx, slices.Max(h.inFlight), h.warmUp)
		}
		if err != nil {
			h.Fatalf("%s: %v", name, err)
		}
	}
	out := &results{lean: h.take("lean callers", 0, []string{theirs, theirsTuned, doesNothing, weirMemory, weirRedis},
		func(c *contestant, _ int) (bench.Round, error) { return c.lean.ask(h.round) })}
	for _, n := range h.inFlight {
		bound := 2.0
		if n <= few {
			bound = 1.5
		}
		r := h.take(fmt.Sprintf("%d in flight", n), bound, withRedis, func(c *contestant, _ int) (bench.Round, error) { return c.stock.closed(ctx, n, h.round) })
		out.stock = append(out.stock, r)
		out.capacity = max(out.capacity, r.MedianOf(r.fastest(), bench.Round.Rate))
	}
	for _, load := range h.loads {
		offers := load * out.capacity
		out.open = append(out.open, h.take(fmt.Sprintf("%.0f %%", 100*load), 0.5, withRedis, func(c *contestant, n int) (bench.Round, error) {
			return c.stock.open(ctx, schedule(offers, h.round, uint64(n)))
		}))
	}
	return out
}

// take lets contestants take turns. Each plays with the number of its round.
func (h *field) take(what string, bound float64, names []string, play func(c *contestant, n int) (bench.Round, error)) *result {
	contest := bench.Contest{What: what, Rounds: h.rounds}
	for _, name := range names {
		c := h.contestants[name]
		contest.Contestants = append(contest.Contestants, bench.Contestant{
			Name: name, Before: c.prepare, Play: func(n int) (bench.Round, error) { return play(c, n) }, Busy: bench.BusyOf(c.processes...),
		})
	}
	return &result{contest.Run(h.Run), bound}
}
