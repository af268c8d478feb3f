// Command resp measures weir's answers to Redis clients beside Redis itself: CL.THROTTLE and
// WEIR.CHECK on the memory store, INCR on a redis-server. It writes the table to standard output
// and to results/.
//
// Both are processes of their own, and weir has metrics and statistics as it usually does. They
// are asked by the same clients with the same connections and pipelines: redis-benchmark, which
// needs little of the machine itself, and go-redis. Rounds take turns, in another order each
// time, and a figure is the median of the rounds.
package main

import "github.com/weirhq/weir/test/bench/internal/command"

// options say how much to measure.
type options struct {
	connections, pipeline int
	keys                  int
	commands              int // of a round
	rounds                int
}

var (
	full  = options{connections: 50, pipeline: 16, keys: 10_000, commands: 800_000, rounds: 15}
	first = options{connections: 50, pipeline: 16, keys: 10_000, commands: 80_000, rounds: 3}
)

func main() { command.Table("resp.txt", full, first, measure, writeTable) }
