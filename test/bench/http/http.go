// Package http measures what limiting costs a server: the check of the service beside
// a handler that only decodes and encodes the same JSON, and the middleware beside
// those of others around the same handler. Each is asked over real connections, and
// called directly, which shows what the network hides.
package http

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/internal/table"
)

// Options say how long to measure.
type Options struct {
	Connections int           // at once, each with one request under way
	Time        time.Duration // of a round over connections
	Calls       int           // of a round of direct calls
	Rounds      int
}

// Full is what results/ holds, Quick a first look.
var (
	Full  = Options{Connections: 32, Time: 700 * time.Millisecond, Calls: 100_000, Rounds: 11}
	Quick = Options{Connections: 32, Time: 100 * time.Millisecond, Calls: 5_000, Rounds: 3}
)

// Result is what the contestants of a group did, and whether weir did enough.
type Result struct {
	Group   string
	Figures []Figure
	Aims    []table.Aim
}

// Figure is what one contestant did.
type Figure struct {
	Name       string
	Rate       float64 // requests a second, over connections
	Nanos      float64 // of a direct call
	Allocs     float64
	RateRatio  float64 // to the first of the group in the same round; more is better
	NanosRatio float64 // likewise; less is better
}

func rate(f Figure) float64  { return f.Rate }
func nanos(f Figure) float64 { return f.Nanos }

// Run lets the contestants of each group take turns.
func Run(t testing.TB, o Options, progress command.Progress) (out []Result) {
	all := groups(t)
	total, done := 0, 0
	for _, g := range all {
		total += len(g.contestants) * o.Rounds
	}
	for _, g := range all {
		g.listen(t)
		turns := rounds.Turns{Contestants: len(g.contestants), Rounds: o.Rounds, Seed: [2]uint64{7, 11}}
		out = append(out, g.summarize(testcall.Must(rounds.Take(turns, func(_, i int) (Figure, error) {
			progress(done, total, g.contestants[i].name)
			done++
			return g.measure(i, o)
		}))(t)))
	}
	return out
}

// summarize takes the median of each figure by itself: a round that was slow over the
// network need not be slow called directly.
func (g *group) summarize(measured [][]Figure) Result {
	out := Result{Group: g.name}
	for _, m := range measured {
		f := rounds.Median(m, rate)
		direct := rounds.Median(m, nanos)
		f.Nanos, f.Allocs = direct.Nanos, direct.Allocs
		f.RateRatio, f.NanosRatio = rounds.Ratio(m, measured[0], rate), rounds.Ratio(m, measured[0], nanos)
		out.Figures = append(out.Figures, f)
	}
	// The worst ratio is that to the fastest.
	for i, c := range g.contestants {
		if c.aim == 0 {
			continue
		}
		a := table.Aim{What: g.name + ": " + c.name, AtLeast: true, Bound: c.aim}
		for j, peer := range g.contestants {
			if !peer.peer {
				continue
			}
			if r := rounds.Ratio(measured[i], measured[j], rate); a.Where == "" || r < a.Measured {
				a.Measured, a.Where = r, peer.name
			}
		}
		out.Aims = append(out.Aims, a)
	}
	return out
}

// WriteTable writes what a person reads.
func WriteTable(w io.Writer, m machine.Description, o Options, results []Result) error {
	fmt.Fprintf(w, `%v

rate: requests a second over %d connections to a server in the same process; median of the rounds.
ns, allocs: time and allocations of a call of the handler. ×: ratio to the first row of the table in the same round.
Aims are ratios of rates.
`, m, o.Connections)
	var aims []table.Aim
	for _, r := range results {
		var rows [][]string
		for _, f := range r.Figures {
			rows = append(rows, []string{f.Name, table.Count(int64(f.Rate)), fmt.Sprintf("%.2f", f.RateRatio), fmt.Sprintf("%.0f", f.Nanos), fmt.Sprintf("%.2f", f.NanosRatio), fmt.Sprintf("%.1f", f.Allocs)})
		}
		fmt.Fprintf(w, "\n%s\n\n", r.Group)
		if err := table.Write(w, []string{"<contestant", "rate", "× (more is better)", "ns", "× (less is better)", "allocs"}, rows); err != nil {
			return err
		}
		aims = append(aims, r.Aims...)
	}
	fmt.Fprintln(w)
	return table.WriteAims(w, "fastest beside it", aims)
}
