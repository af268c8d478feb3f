// Command gateway measures weir's gateway beside a bare httputil.ReverseProxy in front of
// the same upstream, and writes the table to standard output and to results/.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/progress"
	"github.com/weirhq/weir/test/bench/internal/results"
)

func main() {
	quick := flag.Bool("quick", false, "some seconds, for a first look only")
	dir := flag.String("results", "results", "where gateway.txt goes; empty for nowhere")
	flag.Parse()
	if err := run(*quick, *dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(quick bool, dir string) error {
	o := full()
	if quick {
		o = first()
	}
	line := progress.New(os.Stderr)
	o.progress = line.Step
	machine.FixGC()
	figures, err := measure(o)
	line.Clear()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := writeTable(&out, machine.Describe(), o, figures); err != nil {
		return err
	}
	return results.Print(out.Bytes(), dir, map[string][]byte{"gateway.txt": out.Bytes()})
}
