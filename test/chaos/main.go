// Chaos runs three weirs on one Redis, on a master with Sentinels and on a Redis Cluster in
// turn, lets clients ask them, and does harm to all of them while it checks every answer. Then it lets
// hostile clients attack a gateway, and checks that others are answered.
// "make chaos" builds and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weirhq/weir/test/chaos/plan"
	"github.com/weirhq/weir/test/chaos/run"
)

const usage = `Run three weirs on real Redis servers, make faults, and check every answer.

  make chaos                          20 minutes, a new seed
  make chaos DURATION=3m SEED=42      the rules, requests and faults of seed 42
  bin/chaos --beside OLD --holds 100  a rollout from the program OLD, and a rollback

The exit code is 1 if a promise was broken and 2 if the run could not be completed.

Flags:
`

func main() {
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	o := run.Options{Progress: os.Stdout}
	flag.DurationVar(&o.Duration, "duration", 20*time.Minute, "`duration` of the run, divided among the topologies")
	flag.Uint64Var(&o.Seed, "seed", 0, "seed `number` of the rules, requests and faults; 0 draws one")
	flag.Float64Var(&o.Rate, "rate", 400, "requests a second, a `number`")
	flag.IntVar(&o.Holds, "holds", 10_000, "a `number` of holds that are open at the same time on one key, as far as the time suffices: 10,000 take two minutes")
	flag.DurationVar(&o.Timeout, "timeout", 50*time.Millisecond, "timeout `duration` of the store")
	flag.StringVar(&o.Weir, "weir", "bin/weir", "the weir program, a `file`")
	flag.StringVar(&o.Beside, "beside", "", "an older weir program, a `file`: make no faults, but replace it by --weir under load, one instance after the other, and back")
	flag.StringVar(&o.Out, "out", "bin/chaos-history", "`directory` for the history of a run that broke a promise")
	topologies := flag.String("topologies", "redis,sentinel,cluster,hostile", "comma-separated `list`; hostile is one weir with hostile clients")
	flag.Parse()
	if o.Holds < 1 {
		fail(fmt.Errorf("chaos: --holds: %d is too few; use at least 1", o.Holds))
	}
	for _, name := range strings.Split(*topologies, ",") {
		t := plan.Topology(name)
		if !slices.Contains(plan.Topologies(), t) {
			fail(fmt.Errorf("chaos: --topologies: %q is unknown; use redis, sentinel, cluster or hostile", name))
		}
		o.Topologies = append(o.Topologies, t)
	}
	if flag.NArg() > 0 {
		fail(fmt.Errorf("chaos: unexpected argument %q; see --help", flag.Arg(0)))
	}
	for o.Seed == 0 {
		o.Seed = uint64(rand.Uint32())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Printf("seed %d, %v, %.0f requests a second\n", o.Seed, o.Duration, o.Rate)
	report, err := run.Run(ctx, o)
	report.Write(os.Stdout, o.Seed)
	if err != nil {
		fail(err)
	}
	if report.Broken() > 0 {
		os.Exit(1)
	}
	if ctx.Err() != nil {
		fail(errors.New("chaos: the run was interrupted"))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}
