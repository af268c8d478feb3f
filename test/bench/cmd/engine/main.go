// Command engine measures a whole check of three limits in memory beside another
// limiter, and writes the table to standard output and to results/.
package main

import (
	"github.com/weirhq/weir/test/bench/engine"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
)

func main() {
	command.Main("some seconds, for a first look only", run, "engine.txt")
}

func run(r *command.Run) error {
	options := engine.Full()
	if r.Quick {
		options = engine.Quick()
	}
	options.Progress = r.Step
	figures, err := engine.Run(options)
	if err != nil {
		return err
	}
	return engine.WriteTable(r.File("engine.txt"), machine.Describe(), figures)
}
