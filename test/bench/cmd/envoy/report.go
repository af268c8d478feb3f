package main

import (
	"fmt"
	"io"
	"time"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/table"
	"github.com/weirhq/weir/test/conformance/envoy/peer"
)

// rateAims compare with the better of the other service's two settings, and with a server that
// does nothing.
func rateAims(r *results) []table.Aim {
	l := r.lean
	out := []table.Aim{
		{What: weirRedis + ": requests × " + theirs, AtLeast: true, Bound: 2, Measured: l.ratio(weirRedis, l.fastest(), rate)},
		{What: weirRedis + ": requests × nothing", AtLeast: true, Bound: 0.75, Measured: l.ratio(weirRedis, doesNothing, rate)},
		{What: weirMemory + ": requests × nothing", AtLeast: true, Bound: 0.9, Measured: l.ratio(weirMemory, doesNothing, rate)},
	}
	for _, s := range r.stock {
		out = append(out, table.Aim{
			What: fmt.Sprintf("%s: requests × %s, stock client, %s", weirRedis, theirs, s.name), AtLeast: true, Bound: s.bound,
			Measured: s.ratio(weirRedis, s.fastest(), rate),
		})
	}
	return out
}

// tailAims compare with the better of the other service's two settings.
func tailAims(r *results) (out []table.Aim) {
	for _, o := range r.open {
		out = append(out, table.Aim{
			What: fmt.Sprintf("%s: p99 × %s, at %s of its capacity", weirRedis, theirs, o.name), Bound: o.bound,
			Measured: o.ratio(weirRedis, o.promptest(), p99),
		})
	}
	return out
}

const explanation = `
CPU is what a request costs the service and its Redis. "Tuned" has a connection to Redis for each caller,
and gathers writes; ratios to envoyproxy/ratelimit are to the better of its two settings, in the same round.
Callers, services and Redis share the machine.
`

func writeTables(w io.Writer, m machine.Description, o options, r *results) error {
	fmt.Fprintf(w, "%v\nEnvoy's rate limit service over gRPC, with %s values of one descriptor. %s is\n%s.\n%s", m, table.Count(int64(o.values)), theirs, peer.Version, explanation)

	fmt.Fprintf(w, "\n%d callers over %d connections, which need little CPU\n\n", o.callers, o.connections)
	var rows [][]string
	for _, name := range r.lean.names {
		rows = append(rows, append([]string{name}, closedCells(r.lean, name, doesNothing)...))
	}
	if err := table.Write(w, []string{"contestant", "requests/s", "× nothing", "p50 ms", "p99 ms", "CPU µs"}, rows); err != nil {
		return err
	}

	fmt.Fprint(w, "\nthe stock client of grpc-go, one connection\n\n")
	rows = nil
	for _, s := range r.stock {
		for _, name := range s.names {
			rows = append(rows, append([]string{s.name, name}, closedCells(s, name, s.fastest())...))
		}
	}
	if err := table.Write(w, []string{"requests", "<contestant", "requests/s", "× theirs", "p50 ms", "p99 ms", "CPU µs"}, rows); err != nil {
		return err
	}

	fmt.Fprintf(w, `
the same client in an open loop, at shares of the %s requests a second that %s could do with it

Requests leave at random instants, which are the same for all, and their time counts from there. At most %d are in
flight; others are not sent, and count as %v.

`, table.Count(int64(r.capacity)), theirs, maxInFlight, giveUp)
	rows = nil
	for _, o := range r.open {
		for _, name := range o.names {
			rows = append(rows, []string{
				o.name, name, table.Count(int64(o.median(name, rate))), millis(o.median(name, p50)), millis(o.median(name, p99)),
				fmt.Sprintf("%.2f", o.ratio(name, o.promptest(), p99)), micros(o.cpu(name)), fmt.Sprintf("%.2f", 100*o.unsent(name)),
			})
		}
	}
	if err := table.Write(w, []string{"load", "<contestant", "requests/s", "p50 ms", "p99 ms", "p99 × theirs", "CPU µs", "not sent %"}, rows); err != nil {
		return err
	}

	fmt.Fprintln(w)
	return writeAims(w, r)
}

// writeAims writes what is to be met.
func writeAims(w io.Writer, r *results) error {
	if err := table.WriteAims(w, "", rateAims(r)); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return table.WriteAims(w, "", tailAims(r))
}

// closedCells are those of a contestant in a table of closed loops, with its ratio to another one.
func closedCells(r *result, name, to string) []string {
	return []string{
		table.Count(int64(r.median(name, rate))), fmt.Sprintf("%.2f", r.ratio(name, to, rate)),
		millis(r.median(name, p50)), millis(r.median(name, p99)), micros(r.cpu(name)),
	}
}

// micros is empty where Linux is not there to say.
func micros(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", float64(d)/float64(time.Microsecond))
}

func millis(nanos float64) string { return fmt.Sprintf("%.2f", nanos/float64(time.Millisecond)) }
