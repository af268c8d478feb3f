// Package leases has how well leases work: what stores with leases allow beside the exact limiter on the same
// requests, how many calls they need, and who waits for these. Time is virtual, and two runs do not differ.
package leases

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/traffic/chart"
	"github.com/weirhq/weir/store/lease"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

const heading = `Instances of weir with leases of one second on one store, simulated: the code of store/lease in virtual time.
allowed: ÷ what the exact limiter allows of the same requests, in all and in the window in which this is least (of those
after the first). over: units beyond what the algorithm allows. calls: to the store, for each request, background included.
waited: requests that waited for a call. p50, p99: time of a decision. idle: most units on lease and unspent at an instant.
lost: units that instances had leased when they were killed.
`

// Files are the tables and the picture.
var Files = []string{"leases.txt", "leases.svg"}

// Run writes the tables. The simulation looks at more than a store shows, so it is a test of store/lease, which this runs.
func Run(r *bench.Run) {
	rows := filepath.Join(r.TempDir(), "rows")
	if out, err := r.GoTest("../..", "./store/lease", "TestFigures", "-rows", rows); err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
	r.Write(Files[0], heading)
	var title string
	var table *bench.Table
	for line := range strings.Lines(string(testkit.Must(os.ReadFile(rows))(r))) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if cells[0] != title {
			if table != nil {
				r.Write(Files[0], title, table)
			}
			title = cells[0]
			table = bench.NewTable("<limit", "<requests", "instances", "round trip", "allowed", "worst window", "over", "calls", "waited", "p50", "p99", "idle", "lost")
		}
		table.Cells(cells[1:])
	}
	r.Write(Files[0], title, table)
	testkit.OK(r, draw(r.File(Files[1])))
}

// draw draws the calls of one client by its rate, as lease.Foresee says.
func draw(out *bytes.Buffer) error {
	limit := weir.MustCompile("sliding_window 600000/1m")
	c := &chart.Curves{
		Title: "Calls to Redis for one client",
		About: []string{"sliding_window 600000/1m, lease of 1s, 1 ms to Redis. Without leases, each check is a call."},
		X:     "checks a second, at all instances", Y: "calls a second",
	}
	exact := chart.Curve{Name: "exact", Ink: chart.Bad}
	for rate := 1.0; rate <= 10_000; rate *= 10 {
		exact.Points = append(exact.Points, chart.Point{X: rate, Y: rate})
	}
	c.Lines = append(c.Lines, exact)
	for i, processes := range []int{3, 10, 40} {
		line := chart.Curve{Name: fmt.Sprintf("%d instances", processes), Ink: []chart.Ink{chart.Good, chart.Accent, chart.Plain}[i]}
		for rate := 1.0; rate <= 10_000; rate *= 1.2589254117941673 {
			got := lease.Foresee(limit, lease.Load{Processes: processes, Rate: rate, RoundTrip: time.Millisecond, Term: time.Second})
			line.Points = append(line.Points, chart.Point{X: rate, Y: got.Calls})
		}
		c.Lines = append(c.Lines, line)
	}
	return chart.WriteSVG(out, c)
}
