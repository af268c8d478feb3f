package main

import (
	"fmt"
	"io"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/table"
)

func writeTable(w io.Writer, m machine.Description, o options, figures []figure) error {
	fmt.Fprintf(w, `%v

ms: from the start of the process to the first answer over HTTP; median of %d rounds that take turns.
MB: resident memory then. own: without the pages of the program file, which the system can drop and
read again.

`, m, o.rounds)
	idle, worst := figures[len(figures)-1], figures[len(figures)-2]
	var rows [][]string
	for _, f := range figures[:len(figures)-1] {
		rows = append(rows, []string{f.name, fmt.Sprint(f.took.Milliseconds()), megabytes(f.memory.Resident), megabytes(f.memory.Own)})
	}
	if err := table.Write(w, []string{"weir serve with", "ms", "MB", "own MB"}, rows); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nWithout requests, for %v after %v: %s MB, of them %s MB own; %.2f %% of a core.\n\n",
		o.idle, o.settle, megabytes(idle.memory.Resident), megabytes(idle.memory.Own), 100*idle.busy)
	return table.WriteAims(w, "", []table.Aim{
		{What: "start with " + worst.name + ", s", Bound: 1, Measured: worst.took.Seconds()},
		{What: "resident memory without requests, MB", Bound: 25, Measured: float64(idle.memory.Resident) / 1e6},
		{What: "of a core without requests, %", Bound: 0.1, Measured: 100 * idle.busy},
	})
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f", float64(n)/1e6) }
