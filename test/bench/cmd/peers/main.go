// Command peers measures a check in memory, weir beside its peers, and writes
// the tables to standard output and to results/.
package main

import (
	"fmt"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/memory"
)

func main() {
	command.Main("half a minute, for a first look only", run, "peers.txt", "summary.txt", "peers.jsonl")
}

func run(r *command.Run) {
	measured := memory.Run(r, command.Pick(r, memory.Full, memory.Quick), r.Step)
	where, tables, summary := machine.Describe(), r.File("peers.txt"), r.File("summary.txt")
	testcall.OK(r, measured.WriteTables(tables, where))
	testcall.OK(r, measured.WriteSummary(summary))
	fmt.Fprintf(tables, "\n## Summary\n\n%s", summary.Bytes())
	testcall.OK(r, measured.WriteRaw(r.File("peers.jsonl"), where))
}
