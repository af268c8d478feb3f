// Command start measures what "weir serve" needs before the first request and between
// requests: how long it takes to start, with many rules and with the usage of many keys on the disk, and
// how much memory and processor time it takes while nobody asks. It writes the table to
// standard output and to results/.
//
// weir is built as releases are, and runs as a process of its own. A start ends with the first
// answer that allows a request. Starts take turns, in another order each time, and a figure is the
// median of the rounds.
package main

import (
	"time"

	"github.com/weirhq/weir/test/bench/internal/command"
)

// options say how much to measure.
type options struct {
	rules, keys  int
	rounds       int
	settle, idle time.Duration // before it counts as idle, and how long that is watched
}

var (
	full  = options{rules: 10_000, keys: 1_000_000, rounds: 7, settle: 10 * time.Second, idle: time.Minute}
	first = options{rules: 10_000, keys: 1_000_000, rounds: 3, settle: time.Second, idle: 5 * time.Second}
)

func main() { command.Table("start.txt", full, first, measure, writeTable) }
