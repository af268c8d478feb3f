// Command http measures what limiting costs a server, beside handlers without it and
// the middleware of others, and writes the table to standard output and to results/.
package main

import (
	"github.com/weirhq/weir/test/bench/http"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
)

func main() {
	command.Main("some seconds, for a first look only", run, "http.txt")
}

func run(r *command.Run) error {
	options := http.Full()
	if r.Quick {
		options = http.Quick()
	}
	options.Progress = r.Step
	figures, err := http.Run(options)
	if err != nil {
		return err
	}
	return http.WriteTable(r.File("http.txt"), machine.Describe(), options, figures)
}
