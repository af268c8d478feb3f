package curves

import (
	"fmt"
	"io"

	"github.com/weirhq/weir/internal/simulate/chart"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/table"
)

// WriteTables writes a table for each chart.
func WriteTables(w io.Writer, m machine.Description, o Options, figures []Figure) error {
	fmt.Fprintf(w, "%v\n\nµs: wall time divided by checks; median of %d rounds that take turns.\n", m, o.Rounds)
	for _, some := range byChart(figures) {
		fmt.Fprintf(w, "\n## %s\n\n", some[0].Chart.Title)
		header := []string{"µs"}
		longest := some[0].X
		for _, f := range some {
			if len(f.X) > len(longest) {
				longest = f.X
			}
		}
		for _, x := range longest {
			header = append(header, table.Count(int64(x)))
		}
		var rows [][]string
		for _, f := range some {
			row := []string{f.Line}
			for i := range longest {
				cell := "–"
				if i < len(f.Micros) {
					cell = fmt.Sprintf("%.2f", f.Micros[i])
				}
				row = append(row, cell)
			}
			rows = append(rows, row)
		}
		if err := table.Write(w, header, rows); err != nil {
			return err
		}
	}
	return nil
}

var inks = []chart.Ink{chart.Good, chart.Accent, chart.Bad, chart.Plain}

// Draw returns the curves of each chart by the file that they belong to.
func Draw(figures []Figure) map[string]*chart.Curves {
	out := map[string]*chart.Curves{}
	for _, some := range byChart(figures) {
		c := some[0].Chart
		drawn := &chart.Curves{Title: c.Title, X: c.X, Y: "µs a check"}
		for i, f := range some {
			l := chart.Curve{Name: f.Line, Ink: inks[i%len(inks)]}
			for k, x := range f.X {
				l.Points = append(l.Points, chart.Point{X: float64(x), Y: f.Micros[k]})
			}
			drawn.Lines = append(drawn.Lines, l)
		}
		out[c.File] = drawn
	}
	return out
}

func byChart(figures []Figure) (out [][]Figure) {
	for i, f := range figures {
		if i == 0 || f.Chart.Title != figures[i-1].Chart.Title {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], f)
	}
	return out
}
