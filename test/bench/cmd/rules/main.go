// Command rules measures what it costs to find the rules for a request, with few
// rules and with many, and writes the table to standard output and to results/.
package main

import (
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/rules"
)

func main() {
	command.Main("some seconds, for a first look only", run, "rules.txt")
}

func run(r *command.Run) error {
	options := rules.Full()
	if r.Quick {
		options = rules.Quick()
	}
	options.Progress = r.Step
	figures, err := rules.Run(options)
	if err != nil {
		return err
	}
	return rules.WriteTable(r.File("rules.txt"), machine.Describe(), figures)
}
