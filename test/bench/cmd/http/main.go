// Command http measures what limiting costs a server, beside handlers without it and
// the middleware of others, and writes the table to standard output and to results/.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/weirhq/weir/test/bench/http"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/progress"
	"github.com/weirhq/weir/test/bench/internal/results"
)

func main() {
	quick := flag.Bool("quick", false, "some seconds, for a first look only")
	dir := flag.String("results", "results", "where http.txt goes; empty for nowhere")
	flag.Parse()
	if err := run(*quick, *dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(quick bool, dir string) error {
	options := http.Full()
	if quick {
		options = http.Quick()
	}
	line := progress.New(os.Stderr)
	options.Progress = line.Step
	machine.FixGC()
	figures, err := http.Run(options)
	line.Clear()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := http.WriteTable(&out, machine.Describe(), options, figures); err != nil {
		return err
	}
	return results.Print(out.Bytes(), dir, map[string][]byte{"http.txt": out.Bytes()})
}
