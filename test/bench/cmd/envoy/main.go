// Command envoy measures Envoy's rate limit service over gRPC: weir beside
// envoyproxy/ratelimit, which it builds, and beside a server that does nothing. It
// writes three tables and their aims to standard output and to results/:
//
//   - callers of package unary, who leave most of the machine to the services, as Envoy
//     would: what the services can do, and what a request costs them;
//   - the stock client of grpc-go over one connection, as a worker thread of Envoy has one,
//     with 1, 4, 16 and 64 requests in flight;
//   - the same client in an open loop, in which requests leave when a schedule says so,
//     whatever the answers do, at 50 % and 80 % of what envoyproxy/ratelimit can do.
//
// Every contestant is a process of its own with the same file, and those that need a
// Redis have one each. Their rounds take turns, in another order each time. A figure is
// the median of the rounds, and a ratio that of the ratios within a round. Every answer is
// looked at, and one that is not as expected fails the run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
)

// options say how much to measure.
type options struct {
	values               int       // of the descriptor
	callers, connections int       // that leave most of the machine to the services
	inFlight             []int     // of the stock client
	loads                []float64 // of the open loop, as shares of the other service's capacity
	rounds               int
	round, warmUp        time.Duration
}

var full = options{
	values: 10_000, callers: 64, connections: 4,
	inFlight: []int{1, 4, 16, 64}, loads: []float64{0.5, 0.8},
	rounds: 11, round: 800 * time.Millisecond, warmUp: 500 * time.Millisecond,
}

// quick is good for a first look only.
func quick() options {
	o := full
	o.rounds, o.round, o.warmUp = 3, 200*time.Millisecond, 200*time.Millisecond
	return o
}

func main() {
	if os.Getenv(serveVariable) != "" {
		if err := serveNothing(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), `Measures Envoy's rate limit service: weir beside envoyproxy/ratelimit, in about five minutes.

Requests come from callers that need little CPU, from the stock client of grpc-go with 1 to 64
requests in flight, and in an open loop at shares of what envoyproxy/ratelimit can do.
Callers, services and their Redis servers share the machine, which should have nothing else to do.

`)
		flag.PrintDefaults()
	}
	command.Main(command.FirstLook, run, "envoy.txt", "envoy-summary.txt")
}

func run(r *command.Run) {
	o := command.Pick(r, full, quick())
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	r.Cleanup(cancel)
	r.Step(0, 1, "building envoyproxy/ratelimit and weir")
	h := &field{TB: r, options: o, progress: r.Step}
	h.start(ctx)
	h.connect()
	results := testcall.Must(h.measure(ctx))(r)
	testcall.OK(r, writeTables(r.File("envoy.txt"), machine.Describe(), o, results))
	testcall.OK(r, writeAims(r.File("envoy-summary.txt"), results))
}
