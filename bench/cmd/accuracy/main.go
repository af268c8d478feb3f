// Command accuracy measures how often each algorithm judges a request wrongly,
// and writes the tables to standard output and to results/.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/bench/accuracy"
	"github.com/weirhq/weir/bench/internal/progress"
)

func main() {
	quick := flag.Bool("quick", false, "little traffic, in about a second")
	results := flag.String("results", "results", "where accuracy.txt goes; empty for nowhere")
	flag.Parse()
	if err := run(*quick, *results); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(quick bool, results string) error {
	line := progress.New(os.Stderr)
	var tables bytes.Buffer
	err := accuracy.Report(&tables, quick, line.Step)
	line.Clear()
	if err != nil {
		return err
	}
	if _, err := os.Stdout.Write(tables.Bytes()); err != nil || results == "" {
		return err
	}
	if err := os.MkdirAll(results, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(results, "accuracy.txt"), tables.Bytes(), 0o644)
}
