package adaptive

import (
	"fmt"
	"io"
	"slices"

	"github.com/weirhq/weir/internal/testoverload"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/table"
)

const heading = `A simulated service with %d servers and one queue; a request takes a server 10 ms on average. Its load
is a multiple of its capacity. 15 s after the start something happens; 10 s later begins the
measurement, of 20 s. The clients wait for a second.
goodput: responses within a second, by what the service or its load makes possible.
p99: by that of the same service with a tenth of the load.
Each figure is the worst of these kinds of services: %v.
even: times differ by a tenth. varied: exponentially distributed. mixed: one of twenty is 20 × as long.

`

// WriteTable writes everything.
func WriteTable(w io.Writer, m machine.Description, o Options, f Figures) error {
	fmt.Fprintf(w, heading, servers, o.Kinds)
	if err := WriteSummary(w, f.Rows); err != nil {
		return err
	}
	fmt.Fprintf(w, "\ngoodput, and p99 ×:\n\n")
	header := []string{"<what happens", "load ×"}
	for _, who := range contestants {
		header = append(header, who.name)
	}
	var rows [][]string
	for _, r := range f.Rows {
		cells := []string{r.What, fmt.Sprint(r.Load)}
		for _, x := range r.Worst {
			cells = append(cells, fmt.Sprintf("%.2f %s", x.Goodput, times(x.P99)))
		}
		rows = append(rows, cells)
	}
	if err := table.Write(w, header, rows); err != nil || f.Handler == nil {
		return err
	}
	return writeHandler(w, m, f)
}

func writeHandler(w io.Writer, m machine.Description, f Figures) error {
	fmt.Fprintf(w, "\nA real handler with %d places, %v a request, offered 2 × its capacity of %d requests per second for %v; %v.\n\n",
		places, takes, twice/2, handlerRun, m)
	var rows [][]string
	for _, h := range f.Handler {
		rows = append(rows, []string{h.Name, fmt.Sprintf("%.0f", h.Answered), h.P50.Round(1e6).String(), h.P99.Round(1e6).String(), fmt.Sprintf("%.2f", float64(h.Denied)/float64(h.Offered))})
	}
	if err := table.Write(w, []string{"limiter", "responses per second", "p50", "p99", "share denied"}, rows); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nA request takes %d ns of processor time in weir's limiter, with two readings of the clock; the aim is at most 300.\n", f.Cost.Nanoseconds())
	return nil
}

func times(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

// WriteSummary writes the worst figures of each contestant.
func WriteSummary(w io.Writer, rows []Row) error {
	var cells [][]string
	for i, who := range contestants {
		goodput, p99, denied, missed := Worst(rows, i)
		cells = append(cells, []string{who.name, fmt.Sprintf("%.2f", goodput), times(p99), fmt.Sprintf("%.3f %%", 100*denied), fmt.Sprintf("%d of %d", missed, len(rows)-atCapacity(rows))})
	}
	cells = append(cells, []string{"aim", "at least 0.90", "at most 3.0", "0 %", "0"})
	return table.Write(w, []string{"limiter", "least goodput in overload", "highest p99 × in overload", "most denied at 0.8 × or less", "aims missed"}, cells)
}

func atCapacity(rows []Row) (n int) {
	for _, r := range rows {
		if r.Load == 1 {
			n++
		}
	}
	return n
}

// Worst returns the worst figures of a contestant, and in how many rows it missed an aim. At
// exactly its capacity, a service is neither overloaded nor not.
func Worst(rows []Row, contestant int) (goodput, p99, denied float64, missed int) {
	goodput = 1
	for _, r := range rows {
		x := r.Worst[contestant]
		switch {
		case r.Load > 1:
			goodput, p99 = min(goodput, x.Goodput), max(p99, x.P99)
		case r.Load < 1:
			denied = max(denied, x.Denied)
		}
		if !meets(r.Load, x) {
			missed++
		}
	}
	return goodput, p99, denied, missed
}

func meets(load float64, x testoverload.Figure) bool {
	return load == 1 || load > 1 && x.Goodput >= 0.9 && x.P99 <= 3 || load < 1 && x.Denied == 0
}

// ours is the place of weir among the contestants.
var ours = slices.IndexFunc(contestants, func(c contestant) bool { return c.name == "weir" })
