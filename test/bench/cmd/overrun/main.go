// Command overrun compares how far concurrent requests exceed a limit if their costs are known
// only afterwards, and writes the table to standard output and to results/.
package main

import (
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/overrun"
)

func main() {
	command.Main("the same; it takes a moment", func(r *command.Run) {
		testcall.OK(r, overrun.Report(r, r.File("overrun.txt")))
	}, "overrun.txt")
}
