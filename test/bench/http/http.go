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

// Figure is what one contestant did.
type Figure struct {
	Group, Name string
	Rate        float64 // requests a second, over connections
	Nanos       float64 // of a direct call
	Allocs      float64
	RateRatio   float64 // to the first of the group; more is better
	NanosRatio  float64 // likewise; less is better
}

// Run lets the contestants of each group take turns.
func Run(t testing.TB, o Options, progress command.Progress) (out []Figure) {
	all := groups(t)
	total, done := 0, 0
	for _, g := range all {
		total += len(g.contestants) * o.Rounds
	}
	for _, g := range all {
		g.listen(t)
		turns := rounds.Turns{Contestants: len(g.contestants), Rounds: o.Rounds, Seed: [2]uint64{7, 11}}
		out = append(out, summarize(testcall.Must(rounds.Take(turns, func(_, i int) (Figure, error) {
			progress(done, total, g.contestants[i].name)
			done++
			return g.measure(i, o)
		}))(t))...)
	}
	return out
}

// summarize takes the median of each figure by itself: a round that was slow over the
// network need not be slow called directly.
func summarize(measured [][]Figure) []Figure {
	var figures []Figure
	for _, m := range measured {
		f := rounds.Median(m, func(f Figure) float64 { return f.Rate })
		direct := rounds.Median(m, func(f Figure) float64 { return f.Nanos })
		f.Nanos, f.Allocs = direct.Nanos, direct.Allocs
		figures = append(figures, f)
	}
	for i := range figures {
		figures[i].RateRatio = figures[i].Rate / figures[0].Rate
		figures[i].NanosRatio = figures[i].Nanos / figures[0].Nanos
	}
	return figures
}

// WriteTable writes what a person reads.
func WriteTable(w io.Writer, m machine.Description, o Options, figures []Figure) error {
	fmt.Fprintf(w, "%v\n\nrate: requests a second over %d connections to a server in the same process; median of the rounds.\nns, allocs: time and allocations of a call of the handler. ×: ratio to the first row of the table.\n", m, o.Connections)
	group, rows := "", [][]string(nil)
	flush := func() error {
		if rows == nil {
			return nil
		}
		fmt.Fprintf(w, "\n%s\n\n", group)
		return table.Write(w, []string{"<contestant", "rate", "× (more is better)", "ns", "× (less is better)", "allocs"}, rows)
	}
	for _, f := range figures {
		if f.Group != group {
			if err := flush(); err != nil {
				return err
			}
			group, rows = f.Group, nil
		}
		rows = append(rows, []string{f.Name, table.Count(int64(f.Rate)), fmt.Sprintf("%.2f", f.RateRatio), fmt.Sprintf("%.0f", f.Nanos), fmt.Sprintf("%.2f", f.NanosRatio), fmt.Sprintf("%.1f", f.Allocs)})
	}
	return flush()
}
