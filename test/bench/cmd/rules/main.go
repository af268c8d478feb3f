// Command rules measures what it costs to find the rules for a request, with few
// rules and with many, and writes the table to standard output and to results/.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/progress"
	"github.com/weirhq/weir/test/bench/internal/results"
	"github.com/weirhq/weir/test/bench/rules"
)

func main() {
	quick := flag.Bool("quick", false, "some seconds, for a first look only")
	dir := flag.String("results", "results", "where rules.txt goes; empty for nowhere")
	flag.Parse()
	if err := run(*quick, *dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(quick bool, dir string) error {
	options := rules.Full()
	if quick {
		options = rules.Quick()
	}
	line := progress.New(os.Stderr)
	options.Progress = line.Step
	machine.FixGC()
	figures, err := rules.Run(options)
	line.Clear()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := rules.WriteTable(&out, machine.Describe(), figures); err != nil {
		return err
	}
	return results.Print(out.Bytes(), dir, map[string][]byte{"rules.txt": out.Bytes()})
}
