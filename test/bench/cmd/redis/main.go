// Command redis measures a check on a Redis that it starts, weir beside its
// peers, and writes the tables to standard output and to results/.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/progress"
	"github.com/weirhq/weir/test/bench/internal/redisserver"
	"github.com/weirhq/weir/test/bench/internal/results"
	"github.com/weirhq/weir/test/bench/redis"
)

func main() {
	quick := flag.Bool("quick", false, "half a minute, for a first look only")
	dir := flag.String("results", "results", "where redis.txt, redis-summary.txt and redis.jsonl go; empty for nowhere")
	flag.Parse()
	if err := run(*quick, *dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(quick bool, dir string) error {
	options := redis.Full()
	if quick {
		options = redis.Quick()
	}
	server, err := redisserver.Start()
	if err != nil {
		return err
	}
	defer server.Stop()
	line := progress.New(os.Stderr)
	options.Progress = line.Step
	machine.FixGC()
	measured, err := redis.Run(server.Addr, options)
	line.Clear()
	if err != nil {
		return err
	}
	where := machine.Describe()
	var tables, summary, raw bytes.Buffer
	if err := redis.WriteTables(&tables, where, measured); err != nil {
		return err
	}
	if err := redis.WriteSummary(&summary, measured); err != nil {
		return err
	}
	fmt.Fprintf(&tables, "\n## Summary\n\n%s", summary.Bytes())
	if err := redis.WriteRaw(&raw, where, measured); err != nil {
		return err
	}
	return results.Print(tables.Bytes(), dir, map[string][]byte{
		"redis.txt": tables.Bytes(), "redis-summary.txt": summary.Bytes(), "redis.jsonl": raw.Bytes(),
	})
}
