package rules

import (
	"fmt"
	"io"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/table"
)

const heading = `µs: time to find the three rules that match a request; median of the rounds, without
the loop of the benchmark.
×: time with the most rules divided by the time with the fewest.
`

// WriteTable writes what a person reads: a line for each shape, and whether the aims
// are met.
func WriteTable(w io.Writer, m machine.Description, _ Options, figures []Figure) error {
	fmt.Fprintf(w, "%v\n%s\n## Time to find the rules, by the number of rules\n\n", m, heading)
	shapes := byShape(figures)
	header := []string{"shape"}
	for _, f := range shapes[0] {
		header = append(header, "µs, rules: "+table.Count(int64(f.Rules)))
	}
	header = append(header, "×", "allocs", "loop µs", "ms to compile", "<a rule of it")
	var rows [][]string
	for _, some := range shapes {
		rows = append(rows, row(some))
	}
	if err := table.Write(w, header, rows); err != nil {
		return err
	}
	fmt.Fprint(w, "\n## Aims, for the worst shape\n\n")
	return table.WriteAims(w, "shape", aims(figures))
}

func row(figures []Figure) []string {
	cells := []string{figures[0].Shape.Name}
	allocs := 0.0
	for _, f := range figures {
		cells = append(cells, fmt.Sprintf("%.2f", f.Median/1000))
		allocs = max(allocs, f.Allocs)
	}
	last := figures[len(figures)-1]
	return append(cells, fmt.Sprintf("%.2f", growth(figures)), fmt.Sprintf("%.2f", allocs),
		fmt.Sprintf("%.2f", last.Loop/1000), fmt.Sprint(last.Compile.Milliseconds()), last.Shape.What)
}

// byShape are the figures of one shape after the other, by ascending number of rules.
func byShape(figures []Figure) (shapes [][]Figure) {
	for i, f := range figures {
		if i == 0 || f.Shape.Name != figures[i-1].Shape.Name {
			shapes = append(shapes, nil)
		}
		last := &shapes[len(shapes)-1]
		*last = append(*last, f)
	}
	return shapes
}

// growth is how much longer a match takes with the most rules than with the fewest.
func growth(figures []Figure) float64 {
	return figures[len(figures)-1].Median / figures[0].Median
}

// aims are about the worst shape.
func aims(figures []Figure) []table.Aim {
	most := figures[len(figures)-1].Rules
	fewest := figures[0].Rules
	all := []table.Aim{
		{What: "µs a match", Bound: 1},
		{What: fmt.Sprintf("time with %s rules × with %s", table.Count(int64(most)), table.Count(int64(fewest))), Bound: 1.5},
		{What: "allocations a match", Bound: 0.005}, // the harness has some
	}
	worst := func(a *table.Aim, measured float64, shape string) {
		if a.Where == "" || measured > a.Measured {
			a.Measured, a.Where = measured, shape
		}
	}
	for _, some := range byShape(figures) {
		name := some[0].Shape.Name
		for _, f := range some {
			worst(&all[0], f.Median/1000, name)
			worst(&all[2], f.Allocs, name)
		}
		worst(&all[1], growth(some), name)
	}
	return all
}
