// Command log drives sliding logs up to the largest N on a Redis that it starts, and
// writes the slowest call of each phase, by SLOWLOG, to standard output and to results/.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/table"
)

func main() {
	command.Main("some seconds: N up to 10 000 only", run, "log.txt")
}

func run(r *command.Run) {
	sizes := []int64{1_000, 10_000, 100_000, 1_000_000}
	if r.Quick {
		sizes = sizes[:2]
	}
	server := testredis.Start(r)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	var rows [][]string
	for _, n := range sizes {
		d := newDrive(ctx, r, server.Addr, n)
		for i, p := range phases {
			r.Step(i, len(phases), fmt.Sprintf("N = %s, %s", table.Count(n), p.name))
			f, err := d.measure(p)
			if err != nil {
				r.Fatalf("log: N = %d, %s: %v", n, p.name, err)
			}
			rows = append(rows, []string{
				table.Count(n), p.name, table.Count(f.calls), table.Count(f.allowed), fmt.Sprint(f.mean),
				fmt.Sprint(f.slowest.Microseconds()), table.Count(f.over), table.Count(f.late), f.bytes,
			})
		}
		d.close()
	}
	out := r.File("log.txt")
	fmt.Fprintf(out, "# Large sliding logs in Redis\n\n%s\n\n%d callers, each with a store of its own; in the last phase of each N they share one.\n\n", machine.Describe(), callers)
	header := []string{"N", "<phase", "script calls", "allowed", "mean µs", "slowest µs", "over 5 ms", "timed out", "bytes a unit"}
	testcall.OK(r, table.Write(out, header, rows))
}
