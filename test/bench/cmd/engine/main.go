// Command engine measures a whole check of three limits in memory beside another
// limiter, and what the parts of a key cost, and writes the tables to results/.
package main

import (
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/engine"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
)

func main() {
	command.Main(command.FirstLook, func(r *command.Run) {
		options := command.Pick(r, engine.Full, engine.Quick)
		testcall.OK(r, engine.WriteTable(r.File("engine.txt"), machine.Describe(), options, engine.Run(r, options, r.Step)))
		testcall.OK(r, engine.WriteKeys(r.File("keys.txt"), machine.Describe(), options, engine.RunKeys(r, options, r.Step)))
	}, "engine.txt", "keys.txt")
}
