// Command peers measures a check in memory, weir beside its peers, and writes
// the tables to standard output and to results/.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/progress"
	"github.com/weirhq/weir/test/bench/internal/results"
	"github.com/weirhq/weir/test/bench/memory"
)

func main() {
	quick := flag.Bool("quick", false, "half a minute, for a first look only")
	dir := flag.String("results", "results", "where peers.txt, summary.txt and peers.jsonl go; empty for nowhere")
	flag.Parse()
	if err := run(*quick, *dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(quick bool, dir string) error {
	options := memory.Full()
	if quick {
		options = memory.Quick()
	}
	line := progress.New(os.Stderr)
	options.Progress = line.Step
	machine.FixGC()
	sizes := memory.Sizes(options)
	figures, err := memory.Run(options)
	line.Clear()
	if err != nil {
		return err
	}
	where := machine.Describe()
	var tables, summary, raw bytes.Buffer
	if err := memory.WriteTables(&tables, where, figures, sizes); err != nil {
		return err
	}
	if err := memory.WriteSummary(&summary, figures, sizes); err != nil {
		return err
	}
	fmt.Fprintf(&tables, "\n## Summary\n\n%s", summary.Bytes())
	if err := memory.WriteRaw(&raw, where, figures, sizes); err != nil {
		return err
	}
	return results.Print(tables.Bytes(), dir, map[string][]byte{
		"peers.txt": tables.Bytes(), "summary.txt": summary.Bytes(), "peers.jsonl": raw.Bytes(),
	})
}
