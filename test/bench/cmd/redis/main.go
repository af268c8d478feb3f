// Command redis measures a check on a Redis that it starts, weir beside its
// peers, and writes the tables to standard output and to results/.
package main

import (
	"fmt"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/redis"
)

func main() {
	command.Main("half a minute, for a first look only", run, "redis.txt", "redis-summary.txt", "redis.jsonl")
}

func run(r *command.Run) {
	measured := redis.Run(r, testredis.Start(r), command.Pick(r, redis.Full, redis.Quick), r.Step)
	where, tables, summary := machine.Describe(), r.File("redis.txt"), r.File("redis-summary.txt")
	testcall.OK(r, measured.WriteTables(tables, where))
	testcall.OK(r, measured.WriteSummary(summary))
	fmt.Fprintf(tables, "\n## Summary\n\n%s", summary.Bytes())
	testcall.OK(r, measured.WriteRaw(r.File("redis.jsonl"), where))
}
