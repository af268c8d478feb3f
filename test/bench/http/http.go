// Package http measures what limiting costs a server: the check of the service beside
// a handler that only decodes and encodes the same JSON, and the middleware beside
// those of others around the same handler. Each is asked over real connections, and
// called directly, which shows what the network hides.
package http

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/weirhq/weir/test/bench/internal/bench"
)

type options struct {
	connections int           // at once, each with one request under way
	time        time.Duration // of a round over connections
	calls       int           // of a round of direct calls
	rounds      int
}

var (
	full  = options{connections: 32, time: 700 * time.Millisecond, calls: 100_000, rounds: 11}
	quick = options{connections: 32, time: 100 * time.Millisecond, calls: 5_000, rounds: 3}
)

// group is contestants that are asked the same.
type group struct {
	name        string
	contestants []contestant
	requests    []*http.Request // one for each client, as a server would see it
	bodies      [][]byte        // of the requests
	raw         [][]byte        // the same as bytes on a connection
	want        int             // the status of every answer
}

type contestant struct {
	name    string
	handler http.Handler
	aim     float64 // the least share of the fastest peer's rate; 0 if there is none
	peer    bool
}

// Run lets the contestants of each group take turns, and writes a table for each.
func Run(r *bench.Run) { run(r, bench.Pick(r, full, quick)) }

func run(r *bench.Run, o options) {
	const file = "http.txt"
	r.Write(file, bench.Describe(), fmt.Sprintf(`rate: requests a second over %d connections to a server in the same process; median of the rounds.
ns, allocs: time and allocations of a call of the handler. ×: ratio to the first row of the table in the same round.
Aims are ratios of rates.`, o.connections))
	var aims []bench.Aim
	for _, g := range groups(r) {
		connected := bench.Contest{What: g.name, Rounds: o.rounds, Load: bench.Load{Callers: o.connections, Length: o.time}}
		direct := bench.Contest{What: g.name + ", called", Rounds: o.rounds, Load: bench.Load{Callers: 1, Count: o.calls}}
		for _, c := range g.contestants {
			connected.Contestants = append(connected.Contestants, bench.Contestant{Name: c.name, Ask: g.connected(r, bench.Serve(r, c.handler), o.connections)})
			direct.Contestants = append(direct.Contestants, bench.Contestant{Name: c.name, Ask: g.direct(c.handler)})
		}
		rates, calls := connected.Run(r), direct.Run(r)
		table := bench.NewTable("<contestant", "rate", "× (more is better)", "ns", "× (less is better)", "allocs")
		for i, name := range rates.Names {
			table.Row("%s|%s|%.2f|%.0f|%.2f|%.1f", name, bench.Count(rates.Median(i, bench.Round.Rate)), rates.Ratio(i, 0, bench.Round.Rate),
				calls.Median(i, bench.Round.CallerNanos), calls.Ratio(i, 0, bench.Round.CallerNanos), calls.Median(i, bench.Round.Allocs))
		}
		r.Write(file, g.name, table)
		aims = append(aims, g.aims(rates)...)
	}
	r.Write(file, bench.Aims("fastest beside it", aims))
}

// aims compares with the fastest peer, which is the one with the worst ratio.
func (g *group) aims(rates bench.Scores) (out []bench.Aim) {
	for i, c := range g.contestants {
		if c.aim == 0 {
			continue
		}
		a := bench.Aim{What: g.name + ": " + c.name, AtLeast: true, Bound: c.aim}
		for j, peer := range g.contestants {
			if peer.peer {
				a.Worst(rates.Ratio(i, j, bench.Round.Rate), peer.name)
			}
		}
		out = append(out, a)
	}
	return out
}

// expect requires the right status.
func (g *group) expect(status int) error {
	if status != g.want {
		return fmt.Errorf("the status is %d, want %d", status, g.want)
	}
	return nil
}

// connected asks over connections, one request after the other on each.
func (g *group) connected(t testing.TB, address string, connections int) func(int) func(int) error {
	return bench.AskHTTP(t, address, connections,
		func(caller, n int) []byte { return g.raw[(caller*7919+n)%len(g.raw)] },
		func(a bench.Answer) error { return g.expect(a.Status) })
}

// direct calls the handler, as the server does.
func (g *group) direct(handler http.Handler) func(int) func(int) error {
	return func(int) func(int) error {
		w, body := &writer{header: http.Header{}}, bytes.NewReader(nil)
		closer := io.NopCloser(body)
		return func(n int) error {
			i := n % len(g.requests)
			r := g.requests[i]
			if g.bodies != nil {
				body.Reset(g.bodies[i])
				r.Body = closer
			}
			clear(w.header)
			w.status = http.StatusOK
			handler.ServeHTTP(w, r)
			return g.expect(w.status)
		}
	}
}

// writer throws the answer away.
type writer struct {
	header http.Header
	status int
}

func (w *writer) Header() http.Header         { return w.header }
func (w *writer) Write(p []byte) (int, error) { return len(p), nil }
func (w *writer) WriteHeader(status int)      { w.status = status }
