// Command redis measures a check on a Redis that it starts, weir beside its
// peers, and writes the tables to standard output and to results/.
package main

import (
	"fmt"

	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/redis"
)

func main() {
	command.Main("half a minute, for a first look only", run, "redis.txt", "redis-summary.txt", "redis.jsonl")
}

func run(r *command.Run) error {
	server, stop, err := testredis.Alone("redis")
	if err != nil {
		return err
	}
	defer stop()
	measured, err := redis.Run(server, command.Pick(r, redis.Full, redis.Quick), r.Step)
	if err != nil {
		return err
	}
	where, tables, summary := machine.Describe(), r.File("redis.txt"), r.File("redis-summary.txt")
	if err := measured.WriteTables(tables, where); err != nil {
		return err
	}
	if err := measured.WriteSummary(summary); err != nil {
		return err
	}
	fmt.Fprintf(tables, "\n## Summary\n\n%s", summary.Bytes())
	return measured.WriteRaw(r.File("redis.jsonl"), where)
}
