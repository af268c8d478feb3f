// Command accuracy measures how often each algorithm decides a request wrongly, and
// writes the tables to standard output and to results/.
package main

import (
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/accuracy"
	"github.com/weirhq/weir/test/bench/internal/command"
)

func main() {
	command.Main("little traffic, in about a second", func(r *command.Run) {
		testcall.OK(r, accuracy.Report(r.File("accuracy.txt"), r.Quick, r.Step))
	}, "accuracy.txt")
}
