package rules

import (
	"fmt"
	"io"
	"slices"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/table"
)

const heading = `µs: what it takes to find the three rules that a request meets; median of the rounds,
without the loop itself.
×: the most rules by the fewest.
`

// WriteTable writes what a person reads: a line for each shape, and whether the aims
// are met.
func WriteTable(w io.Writer, m machine.Description, _ Options, figures []Figure) error {
	fmt.Fprintf(w, "%v\n%s\n## a match, by the number of rules\n\n", m, heading)
	header := []string{"shape"}
	for _, f := range shapeOf(figures, figures[0].Shape.Name) {
		header = append(header, "µs, rules: "+table.Count(int64(f.Rules)))
	}
	header = append(header, "×", "allocs", "loop µs", "ms to compile", "<a rule of it")
	var rows [][]string
	for _, name := range names(figures) {
		rows = append(rows, row(shapeOf(figures, name)))
	}
	if err := table.Write(w, header, rows); err != nil {
		return err
	}
	fmt.Fprint(w, "\n## aims, by the worst shape\n\n")
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

// names are those of the shapes, in order.
func names(figures []Figure) (list []string) {
	for _, f := range figures {
		if !slices.Contains(list, f.Shape.Name) {
			list = append(list, f.Shape.Name)
		}
	}
	return list
}

// shapeOf is one shape's figures, by ascending number of rules.
func shapeOf(figures []Figure, name string) (list []Figure) {
	for _, f := range figures {
		if f.Shape.Name == name {
			list = append(list, f)
		}
	}
	return list
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
	for _, name := range names(figures) {
		some := shapeOf(figures, name)
		for _, f := range some {
			worst(&all[0], f.Median/1000, name)
			worst(&all[2], f.Allocs, name)
		}
		worst(&all[1], growth(some), name)
	}
	return all
}
