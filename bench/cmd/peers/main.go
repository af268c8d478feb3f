// Command peers measures a check in memory, weir beside its peers, and writes
// the tables to standard output and to results/.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/bench/internal/progress"
	"github.com/weirhq/weir/bench/memory"
)

func main() {
	quick := flag.Bool("quick", false, "half a minute, for a first look only")
	results := flag.String("results", "results", "where peers.txt, summary.txt and peers.jsonl go; empty for nowhere")
	flag.Parse()
	if err := run(*quick, *results); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(quick bool, results string) error {
	options := memory.Full()
	if quick {
		options = memory.Quick()
	}
	line := progress.New(os.Stderr)
	options.Progress = line.Step
	memory.FixGC()
	sizes := memory.Sizes(options)
	figures, err := memory.Run(options)
	line.Clear()
	if err != nil {
		return err
	}
	machine := memory.ThisMachine()
	var tables, summary, raw bytes.Buffer
	if err := memory.WriteTables(&tables, machine, figures, sizes); err != nil {
		return err
	}
	if err := memory.WriteSummary(&summary, figures, sizes); err != nil {
		return err
	}
	fmt.Fprintf(&tables, "\n## Summary\n\n%s", summary.Bytes())
	if err := memory.WriteRaw(&raw, machine, figures, sizes); err != nil {
		return err
	}
	if _, err := os.Stdout.Write(tables.Bytes()); err != nil || results == "" {
		return err
	}
	if err := os.MkdirAll(results, 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"peers.txt": tables.Bytes(), "summary.txt": summary.Bytes(), "peers.jsonl": raw.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(results, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
