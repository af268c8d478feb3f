// Command accuracy measures how often each algorithm judges a request wrongly,
// and writes the tables to standard output and to results/.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/weirhq/weir/test/bench/accuracy"
	"github.com/weirhq/weir/test/bench/internal/progress"
	"github.com/weirhq/weir/test/bench/internal/results"
)

func main() {
	quick := flag.Bool("quick", false, "little traffic, in about a second")
	dir := flag.String("results", "results", "where accuracy.txt goes; empty for nowhere")
	flag.Parse()
	if err := run(*quick, *dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(quick bool, dir string) error {
	line := progress.New(os.Stderr)
	var tables bytes.Buffer
	err := accuracy.Report(&tables, quick, line.Step)
	line.Clear()
	if err != nil {
		return err
	}
	return results.Print(tables.Bytes(), dir, map[string][]byte{"accuracy.txt": tables.Bytes()})
}
