// Command envoy measures Envoy's rate limit service over gRPC: weir beside
// envoyproxy/ratelimit, which it builds, and beside a server that does nothing. It
// writes the table to standard output and to results/.
//
// Every contestant is a process of its own, with the same file and as many callers, and
// those that need a Redis have one each. Their rounds take turns, in another order
// each time, and a figure is the median of the rounds. Every answer is looked at, and
// one that is not as expected fails the run. The callers are of package unary, which
// leaves most of the machine to the services, as Envoy would.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
)

// options say how much to measure.
type options struct {
	callers, connections int // the callers of all connections together
	values               int // of the descriptor
	rounds               int
	round, warmUp        time.Duration
}

var full = options{callers: 64, connections: 4, values: 10_000, rounds: 15, round: 2 * time.Second, warmUp: time.Second}

// quick is good for a first look only.
func quick() options {
	o := full
	o.rounds, o.round, o.warmUp = 3, 400*time.Millisecond, 300*time.Millisecond
	return o
}

func main() {
	if what := os.Getenv(serveVariable); what != "" {
		if err := serve(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	command.Main(command.FirstLook, run, "envoy.txt")
}

func run(r *command.Run) {
	o := command.Pick(r, full, quick())
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	r.Cleanup(cancel)
	r.Step(0, 1, "building envoyproxy/ratelimit")
	h := &field{TB: r}
	h.start(ctx, o)
	figures := testcall.Must(h.measure(o, r.Step))(r)
	testcall.OK(r, writeTable(r.File("envoy.txt"), machine.Describe(), o, figures))
}
