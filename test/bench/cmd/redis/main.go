// Command redis measures a check on a Redis that it starts, weir beside its
// peers, and writes the tables to standard output and to results/.
package main

import (
	"fmt"

	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/redisserver"
	"github.com/weirhq/weir/test/bench/redis"
)

func main() {
	command.Main("half a minute, for a first look only", run, "redis.txt", "redis-summary.txt", "redis.jsonl")
}

func run(r *command.Run) error {
	options := redis.Full()
	if r.Quick {
		options = redis.Quick()
	}
	server, err := redisserver.Start()
	if err != nil {
		return err
	}
	defer server.Stop()
	options.Progress = r.Step
	measured, err := redis.Run(server.Addr, options)
	if err != nil {
		return err
	}
	where, tables, summary := machine.Describe(), r.File("redis.txt"), r.File("redis-summary.txt")
	if err := redis.WriteTables(tables, where, measured); err != nil {
		return err
	}
	if err := redis.WriteSummary(summary, measured); err != nil {
		return err
	}
	fmt.Fprintf(tables, "\n## Summary\n\n%s", summary.Bytes())
	return redis.WriteRaw(r.File("redis.jsonl"), where, measured)
}
