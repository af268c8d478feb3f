// Command curves measures how the cost of a check grows, and draws it.
package main

import (
	"github.com/weirhq/weir/internal/simulate/chart"
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/curves"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
)

func main() {
	files := []string{"curves.txt"}
	for _, c := range curves.Charts() {
		files = append(files, c.File)
	}
	command.Main(command.FirstLook, func(r *command.Run) {
		o := command.Pick(r, curves.Full, curves.Quick)
		figures := curves.Run(r, o, r.Step)
		testcall.OK(r, curves.WriteTables(r.File(files[0]), machine.Describe(), o, figures))
		for name, c := range curves.Draw(figures) {
			testcall.OK(r, chart.WriteSVG(r.File(name), c))
		}
	}, files...)
}
