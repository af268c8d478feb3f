package envoy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/store/lease"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// fleetOptions are of several services with leases on one Redis.
type fleetOptions struct {
	rates     []float64
	instances []int         // the last is how many there are
	cell      time.Duration // of the grid
	span      time.Duration // of what is compared with the simulation
}

var (
	fullFleet  = fleetOptions{rates: []float64{50, 200, 1000, 4000}, instances: []int{1, 2, 4}, cell: 10 * time.Second, span: 30 * time.Second}
	quickFleet = fleetOptions{rates: []float64{200}, instances: []int{1, 4}, cell: 3 * time.Second, span: 5 * time.Second}
)

const fleetTerm = time.Second

// RunFleet writes how many calls instances make, beside what weir foresees and what it simulates.
func RunFleet(r *bench.Run) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	r.Cleanup(cancel)
	o := bench.Pick(r, fullFleet, quickFleet)
	f := newFleet(r, quickLeased)
	r.Step(0, 1, "simulating")
	s := simulate(r, o)
	store := f.storeAt(nearTrip)
	for i := range o.instances[len(o.instances)-1] {
		f.startWeir(at(weirLeased, nearTrip, i), store, "--lease", fleetTerm.String())
	}
	f.awaitLeases(ctx)
	grid := bench.NewTable("checks/s", "instances", "calls a check", "weir bound", "CPU of Redis, µs a check")
	f.measureGrid(ctx, o, grid)
	compared := bench.NewTable("<limit", "requests", "allowed", "×", "asked", "×", "messages", "×", "calls")
	f.compare(ctx, s, compared)
	r.Write("fleet.txt", bench.Describe(),
		fmt.Sprintf("Processes of weir with leases of %v on one Redis, %v away. Calls are those of the store of limits. Clients, services and Redis\nshare the machine.", fleetTerm, nearTrip),
		"checks of one client, under a limit that they do not reach; weir bound: calls by its formula; CPU of Redis: beyond what it takes without requests", grid,
		fmt.Sprintf("the same requests in processes and in the simulation of store/lease: %d instances, 1.6 × the limit, %v; asked: requests that\n"+
			"waited for Redis; messages: about leases, with these and in the background; calls: of functions; all ÷ requests; ×: ÷ the simulation", s.instances, o.span), compared)
}

// measureGrid has instances share a rate, for one client at a time.
func (f *fleet) measureGrid(ctx context.Context, o fleetOptions, t *bench.Table) {
	server, limit := bench.NewServer(f, f.redis.Addr), weir.MustCompile("fixed_window 1000000000/1h")
	time.Sleep(3 * f.ready) // until nothing is on lease
	idle := server.Busy()
	time.Sleep(o.cell)
	idle = server.Busy() - idle
	cells := len(o.rates) * len(o.instances)
	for i, rate := range o.rates {
		for j, n := range o.instances {
			f.Step(i*len(o.instances)+j, cells, "the grid")
			value := fmt.Sprintf("grid %v %d", rate, n)
			f.share(ctx, n, value, rate, 3*f.ready)
			busy, done := server.Busy(), 0
			calls := server.Measure(func() { done = f.share(ctx, n, value, rate, o.cell) })
			busy = server.Busy() - busy - idle
			want := lease.Foresee(limit, lease.Load{Processes: n, Rate: rate, RoundTrip: nearTrip, Term: fleetTerm})
			t.Row("%s|%d|%.3f|%.3f|%.1f", bench.Count(rate), n, float64(calls.Functions)/float64(done), want.Calls/rate, float64(busy.Microseconds())/float64(done))
		}
	}
}

// share has so many instances asked for a while, and returns how many requests that were.
func (f *fleet) share(ctx context.Context, instances int, value string, rate float64, length time.Duration) (done int) {
	var all sync.WaitGroup
	rounds, errs := make([]bench.Round, instances), make([]error, instances)
	for i := range instances {
		s := f.contestants[at(weirLeased, nearTrip, i)].one("user", value, expect)
		all.Go(func() {
			rounds[i], errs[i] = s.open(ctx, schedule(rate/float64(instances), length, uint64(i)))
		})
	}
	all.Wait()
	for i := range instances {
		testkit.OK(f, errs[i])
		done += rounds[i].Done
	}
	return done
}

// simulated is what the simulation made of some requests, under several limits.
type simulated struct {
	instances int
	due       []time.Duration
	to        []int // the instance of each request
	outcomes  []outcome
}

type outcome struct {
	algorithm                          string
	requests, allowed, asked, messages float64
}

// simulate has store/lease simulate requests, and say what they were.
func simulate(r *bench.Run, o fleetOptions) *simulated {
	file := filepath.Join(r.TempDir(), "fleet")
	if out, err := r.GoTest("../..", "./store/lease", "TestFleet", "-fleet", file, "-span", o.span.String()); err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
	return testkit.Must(readSimulated(testkit.Must(os.ReadFile(file))(r)))(r)
}

// readSimulated reads lines of outcomes and requests.
func readSimulated(text []byte) (*simulated, error) {
	s := &simulated{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var one outcome
		var due int64
		var to int
		if _, err := fmt.Sscanf(lines.Text(), "limit %s %g %g %g %g", &one.algorithm, &one.requests, &one.allowed, &one.asked, &one.messages); err == nil {
			s.outcomes = append(s.outcomes, one)
		} else if _, err := fmt.Sscanf(lines.Text(), "request %d %d", &due, &to); err == nil {
			s.due, s.to = append(s.due, time.Duration(due)), append(s.to, to)
			s.instances = max(s.instances, to+1)
		} else {
			return nil, fmt.Errorf("the simulation says %q", lines.Text())
		}
	}
	return s, nil
}

// compare sends the requests that were simulated to processes.
func (f *fleet) compare(ctx context.Context, s *simulated, t *bench.Table) {
	server := bench.NewServer(f, f.redis.Addr)
	for i, want := range s.outcomes {
		f.Step(i, len(s.outcomes), "as simulated")
		var allowed atomic.Int64
		instances := make([]*stock, s.instances)
		for i := range instances {
			instances[i] = f.contestants[at(weirLeased, nearTrip, i)].one(want.algorithm, "compared", func(r *pb.RateLimitResponse) error {
				if r.OverallCode == pb.RateLimitResponse_OK {
					allowed.Add(1)
				}
				return answered(r)
			})
		}
		sum := func(metric string) (sum float64) {
			for i := range instances {
				sum += f.metric(at(weirLeased, nearTrip, i), metric)
			}
			return sum
		}
		const asked, messages = `weir_lease_checks_total{how="asked"}`, "weir_lease_messages_total"
		got := outcome{asked: -sum(asked), messages: -sum(messages)}
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // simulated windows begin with the requests
		calls := server.Measure(func() {
			r := testkit.Must(openAt(ctx, s.due, func(ctx context.Context, n int) error { return instances[s.to[n]].ask(ctx, 0) }))(f)
			got.requests = float64(r.Done)
		})
		got.allowed, got.asked, got.messages = float64(allowed.Load()), got.asked+sum(asked), got.messages+sum(messages)
		if got.requests != want.requests {
			f.Fatalf("%s: %v requests of %v", want.algorithm, got.requests, want.requests)
		}
		t.Row("%s|%s|%.3f|%.3f|%.3f|%.3f|%.3f|%.3f|%.3f", want.algorithm, bench.Count(got.requests), got.allowed/got.requests, got.allowed/want.allowed,
			got.asked/got.requests, got.asked/want.asked, got.messages/got.requests, got.messages/want.messages, float64(calls.Functions)/got.requests)
	}
}
