// Command peers measures a check in memory, weir beside its peers, and writes
// the tables to standard output and to results/.
package main

import (
	"fmt"

	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/memory"
)

func main() {
	command.Main("half a minute, for a first look only", run, "peers.txt", "summary.txt", "peers.jsonl")
}

func run(r *command.Run) error {
	measured, err := memory.Run(command.Pick(r, memory.Full, memory.Quick), r.Step)
	if err != nil {
		return err
	}
	where, tables, summary := machine.Describe(), r.File("peers.txt"), r.File("summary.txt")
	if err := measured.WriteTables(tables, where); err != nil {
		return err
	}
	if err := measured.WriteSummary(summary); err != nil {
		return err
	}
	fmt.Fprintf(tables, "\n## Summary\n\n%s", summary.Bytes())
	return measured.WriteRaw(r.File("peers.jsonl"), where)
}
