package envoy

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/test/bench/internal/bench"
	"github.com/weirhq/weir/test/conformance/envoy/peer"
)

// rateAims compare with the better of the other service's two settings, and with a server that
// does nothing.
func rateAims(r *results) []bench.Aim {
	l := r.lean
	out := []bench.Aim{
		{What: weirRedis + ": requests × " + theirs, AtLeast: true, Bound: 2, Measured: l.RatioOf(weirRedis, l.fastest(), bench.Round.Rate)},
		{What: weirRedis + ": requests × nothing", AtLeast: true, Bound: 0.75, Measured: l.RatioOf(weirRedis, doesNothing, bench.Round.Rate)},
		{What: weirMemory + ": requests × nothing", AtLeast: true, Bound: 0.9, Measured: l.RatioOf(weirMemory, doesNothing, bench.Round.Rate)},
	}
	for _, s := range r.stock {
		out = append(out, bench.Aim{
			What: fmt.Sprintf("%s: requests × %s, stock client, %s", weirRedis, theirs, s.What), AtLeast: true, Bound: s.bound,
			Measured: s.RatioOf(weirRedis, s.fastest(), bench.Round.Rate),
		})
	}
	return out
}

// tailAims compare with the better of the other service's two settings.
func tailAims(r *results) (out []bench.Aim) {
	for _, o := range r.open {
		out = append(out, bench.Aim{
			What: fmt.Sprintf("%s: p99 × %s, at %s of its capacity", weirRedis, theirs, o.What), Bound: o.bound,
			Measured: o.RatioOf(weirRedis, o.promptest(), bench.Round.P99Nanos),
		})
	}
	return out
}

const explanation = `
CPU is what a request costs the service and its Redis. "Tuned" has a connection to Redis for each caller,
and gathers writes; ratios to envoyproxy/ratelimit are to the better of its two settings, in the same round.
Callers, services and Redis share the machine.
`

func (r *results) write(run *bench.Run, o options) {
	const file, summary = "envoy.txt", "envoy-summary.txt"
	run.Write(file, fmt.Sprintf("%v\nEnvoy's rate limit service over gRPC, with %s values of one descriptor. %s is\n%s.\n%s", bench.Describe(), bench.Count(o.values), theirs, peer.Version, explanation))

	t := bench.NewTable("contestant", "requests/s", "× nothing", "p50 ms", "p99 ms", "CPU µs")
	for _, name := range r.lean.Names {
		t.Row("%s|%s", name, r.lean.closedCells(name, doesNothing))
	}
	run.Write(file, fmt.Sprintf("%d callers over %d connections, which need little CPU", o.callers, o.connections), t)

	t = bench.NewTable("requests", "<contestant", "requests/s", "× theirs", "p50 ms", "p99 ms", "CPU µs")
	for _, s := range r.stock {
		for _, name := range s.Names {
			t.Row("%s|%s|%s", s.What, name, s.closedCells(name, s.fastest()))
		}
	}
	run.Write(file, "the stock client of grpc-go, one connection", t)

	run.Write(file, fmt.Sprintf(`the same client in an open loop, at shares of the %s requests a second that %s could do with it

Requests leave at random instants, which are the same for all, and their time counts from there. At most %d are in
flight; others are not sent, and count as %v.`, bench.Count(r.capacity), theirs, maxInFlight, giveUp))
	t = bench.NewTable("load", "<contestant", "requests/s", "p50 ms", "p99 ms", "p99 × theirs", "CPU µs", "not sent %")
	for _, o := range r.open {
		for _, name := range o.Names {
			sum := o.Sum(o.At(name))
			t.Row("%s|%s|%s|%s|%s|%.2f|%s|%.2f", o.What, name, bench.Count(o.MedianOf(name, bench.Round.Rate)), millis(o.MedianOf(name, bench.Round.P50Nanos)), millis(o.MedianOf(name, bench.Round.P99Nanos)),
				o.RatioOf(name, o.promptest(), bench.Round.P99Nanos), o.cpu(name), 100*float64(sum.Unsent)/float64(max(sum.Done+sum.Unsent, 1)))
		}
	}
	run.Write(summary, bench.Aims("", rateAims(r)), bench.Aims("", tailAims(r)))
	run.Write(file, t, run.File(summary))
}

// closedCells are those of a contestant in a table of closed loops, with its ratio to another one.
func (r *result) closedCells(name, to string) string {
	return fmt.Sprintf("%s|%.2f|%s|%s|%s", bench.Count(r.MedianOf(name, bench.Round.Rate)), r.RatioOf(name, to, bench.Round.Rate),
		millis(r.MedianOf(name, bench.Round.P50Nanos)), millis(r.MedianOf(name, bench.Round.P99Nanos)), r.cpu(name))
}

func millis(nanos float64) string { return fmt.Sprintf("%.2f", nanos/float64(time.Millisecond)) }
