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
	options := memory.Full()
	if r.Quick {
		options = memory.Quick()
	}
	options.Progress = r.Step
	sizes := memory.Sizes(options)
	figures, err := memory.Run(options)
	if err != nil {
		return err
	}
	where, tables, summary := machine.Describe(), r.File("peers.txt"), r.File("summary.txt")
	if err := memory.WriteTables(tables, where, figures, sizes); err != nil {
		return err
	}
	if err := memory.WriteSummary(summary, figures, sizes); err != nil {
		return err
	}
	fmt.Fprintf(tables, "\n## Summary\n\n%s", summary.Bytes())
	return memory.WriteRaw(r.File("peers.jsonl"), where, figures, sizes)
}
