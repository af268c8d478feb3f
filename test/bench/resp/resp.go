// Package resp measures weir's answers to Redis clients beside Redis itself: CL.THROTTLE and
// WEIR.CHECK on the memory store, INCR on a redis-server.
//
// Both are processes of their own, and weir has metrics and statistics as it usually does. They
// are asked by the same clients with the same connections and pipelines: redis-benchmark, which
// needs little of the machine itself, and go-redis. Rounds take turns, in another order each
// time, and a figure is the median of the rounds.
package resp

import (
	"context"
	"encoding/csv"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

type options struct {
	connections, pipeline int
	keys                  int
	commands              int // of a round
	rounds                int
}

var (
	full  = options{connections: 50, pipeline: 16, keys: 10_000, commands: 800_000, rounds: 15}
	quick = options{connections: 50, pipeline: 16, keys: 10_000, commands: 80_000, rounds: 3}
)

// rules are of a limit that nobody reaches.
const rules = "rules: [{id: api, match: {path: /api/**}, key: user, limit: 1000000000/1s}]\n"

// contestant is a command to a server.
type contestant struct {
	name, address string
	words         []string // the command; KEY is replaced by one of the keys
	process       int
}

const (
	incr     = "Redis, INCR"
	throttle = "weir, CL.THROTTLE"
	check    = "weir, WEIR.CHECK"
)

const key = "KEY"

// start starts both servers.
func start(t testing.TB) []contestant {
	redis := testredis.Start(t)
	dir := t.TempDir()
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600))
	weir := bench.ServeWeir(t, bench.Build(t), dir, bench.Redis, "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "127.0.0.1:0")
	return []contestant{
		{incr, redis.Addr, []string{"INCR", key}, redis.PID()},
		{throttle, weir.Address, []string{"CL.THROTTLE", key, "1000000000", "1000000000", "1"}, weir.PID},
		{check, weir.Address, []string{"WEIR.CHECK", "path", "/api/orders", "user", key}, weir.PID},
	}
}

// clients send all commands of a round.
var clients = []struct {
	name string
	send func(t testing.TB, c contestant, o options) func(n int) (bench.Round, error)
}{{"redis-benchmark", byBenchmark}, {"go-redis", byGoRedis}}

// Run writes the table.
func Run(r *bench.Run) { run(r, bench.Pick(r, full, quick)) }

func run(r *bench.Run, o options) {
	contestants := start(r)
	table := bench.NewTable("client", "<contestant", "commands/s", "×", "CPU µs")
	var aims []bench.Aim
	for _, client := range clients {
		contest := bench.Contest{What: client.name, Rounds: o.rounds}
		for _, c := range contestants {
			contest.Contestants = append(contest.Contestants, bench.Contestant{Name: c.name, Play: client.send(r, c, o), Busy: bench.BusyOf(c.process)})
		}
		res := contest.Run(r)
		for i, name := range res.Names {
			ratio := res.Ratio(i, 0, bench.Round.Rate)
			table.Row("%s|%s|%s|%.2f|%.2f", client.name, name, bench.Count(res.Median(i, bench.Round.Rate)), ratio, res.Median(i, bench.Round.CPUMicros))
			if name == throttle {
				aims = append(aims, bench.Aim{What: client.name + ": " + throttle + " × INCR", AtLeast: true, Bound: 0.8, Measured: ratio})
			}
		}
	}
	r.Write("resp.txt", bench.Describe(), fmt.Sprintf(`%d connections, pipelines of %d commands, %s keys; median of %d rounds that take turns. Client and
server share the machine.
×: commands a second, divided by those of INCR in the same round; median of the rounds.
CPU: what a command costs the server. Redis uses one core for commands.`, o.connections, o.pipeline, bench.Count(o.keys), o.rounds), table, bench.Aims("", aims))
}

// byBenchmark lets the tool that comes with Redis ask. It does not tell errors.
func byBenchmark(t testing.TB, c contestant, o options) func(int) (bench.Round, error) {
	host, port, err := net.SplitHostPort(c.address)
	testkit.OK(t, err)
	args := []string{
		"-h", host, "-p", port, "-c", strconv.Itoa(o.connections), "-P", strconv.Itoa(o.pipeline),
		"-n", strconv.Itoa(o.commands), "-r", strconv.Itoa(o.keys), "--csv",
	}
	for _, w := range c.words {
		if w == key {
			w = "user:__rand_int__"
		}
		args = append(args, w)
	}
	return func(int) (round bench.Round, err error) {
		out, err := exec.Command("redis-benchmark", args...).Output()
		if err != nil {
			return round, fmt.Errorf("redis-benchmark: %w", err)
		}
		table, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
		if err != nil || len(table) != 2 || len(table[1]) < 2 {
			return round, fmt.Errorf("redis-benchmark: %q: %w", out, err)
		}
		rate, err := strconv.ParseFloat(table[1][1], 64)
		return bench.Round{Callers: o.connections, Done: o.commands, Wall: time.Duration(float64(o.commands) / rate * 1e9)}, err
	}
}

// byGoRedis lets go-redis ask, a goroutine for each connection. Every answer is looked at.
func byGoRedis(t testing.TB, c contestant, o options) func(int) (bench.Round, error) {
	db := redis.NewClient(&redis.Options{Addr: c.address, PoolSize: o.connections, MinIdleConns: o.connections})
	t.Cleanup(func() { _ = db.Close() })
	ctx := context.Background()
	load := bench.Load{Callers: o.connections, Count: o.commands / o.connections / o.pipeline}
	return func(int) (bench.Round, error) {
		round, err := load.Run(func(g int) func(int) error {
			return func(n int) error {
				answers, err := db.Pipelined(ctx, func(p redis.Pipeliner) error {
					for k := range o.pipeline {
						p.Do(ctx, c.command((g*7919+n*o.pipeline+k)%o.keys)...)
					}
					return nil
				})
				for _, a := range answers {
					if err == nil {
						err = c.right(a.(*redis.Cmd).Val())
					}
				}
				return err
			}
		})
		round.Done *= o.pipeline
		return round, err
	}
}

func (c *contestant) command(number int) []any {
	words := make([]any, len(c.words))
	for i, w := range c.words {
		if words[i] = w; w == key {
			words[i] = fmt.Sprintf("user:%012d", number)
		}
	}
	return words
}

// right is an error unless an answer says that the request is allowed.
func (c *contestant) right(answer any) error {
	ok := false
	switch a := answer.(type) {
	case int64:
		ok = c.name == incr && a > 0
	case []any:
		ok = c.name == throttle && a[0] == int64(0)
	case map[any]any:
		ok = c.name == check && a["allowed"] == true && a["rule"] == "api"
	}
	if !ok {
		return fmt.Errorf("the answer is %v", answer)
	}
	return nil
}
