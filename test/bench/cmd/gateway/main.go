// Command gateway measures weir's gateway beside a bare httputil.ReverseProxy in front of
// the same upstream, and writes the table to standard output and to results/.
package main

import (
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
)

func main() {
	command.Main("some seconds, for a first look only", run, "gateway.txt")
}

func run(r *command.Run) error {
	o := full()
	if r.Quick {
		o = first()
	}
	o.progress = r.Step
	figures, err := measure(o)
	if err != nil {
		return err
	}
	return writeTable(r.File("gateway.txt"), machine.Describe(), o, figures)
}
