package main

import (
	"fmt"
	"io"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/table"
)

func writeTable(w io.Writer, m machine.Description, o options, figures []figure) error {
	fmt.Fprintf(w, `%v

%d connections, pipelines of %d commands, %s keys; median of %d rounds that take turns. Client and
server share the machine.
×: commands a second, divided by those of INCR in the same round; median of the rounds.
CPU: what a command costs the server. Redis uses one core for commands.

`, m, o.connections, o.pipeline, table.Count(int64(o.keys)), o.rounds)
	var rows [][]string
	var aims []table.Aim
	for _, f := range figures {
		rows = append(rows, []string{f.client, f.name, table.Count(int64(f.rate)), fmt.Sprintf("%.2f", f.ratio), fmt.Sprintf("%.2f", f.cpu.Seconds()*1e6)})
		if f.name == throttle {
			aims = append(aims, table.Aim{What: f.client + ": " + throttle + " × INCR", AtLeast: true, Bound: 0.8, Measured: f.ratio})
		}
	}
	if err := table.Write(w, []string{"client", "<contestant", "commands/s", "×", "CPU µs"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return table.WriteAims(w, "", aims)
}
