package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/rounds"
)

// figure is what a contestant did for a client.
type figure struct {
	client, name string
	rate         float64       // commands a second
	ratio        float64       // to that of INCR in the same round
	cpu          time.Duration // of the server, for a command
}

// client sends all commands of a round, and returns how many it sent a second.
type client struct {
	name string
	send func(ctx context.Context, c contestant, o options) (float64, error)
}

var clients = []client{{"redis-benchmark", byBenchmark}, {"go-redis", byGoRedis}}

func measure(t testing.TB, o options, step command.Progress) []figure {
	contestants := start(t)
	var figures []figure
	done := 0
	for at, cl := range clients {
		turns := rounds.Turns{Contestants: len(contestants), Rounds: o.rounds, Seed: [2]uint64{uint64(at), 7}}
		all := testcall.Must(rounds.Take(turns, func(_, i int) (figure, error) {
			c := contestants[i]
			step(done, len(clients)*len(contestants)*o.rounds, cl.name+", "+c.name)
			done++
			return one(cl, c, o)
		}))(t)
		for _, measured := range all {
			for i := range measured {
				measured[i].ratio = measured[i].rate / all[0][i].rate
			}
		}
		for _, measured := range all {
			f := rounds.Median(measured, func(f figure) float64 { return f.rate })
			f.ratio = rounds.Median(measured, func(f figure) float64 { return f.ratio }).ratio
			figures = append(figures, f)
		}
	}
	return figures
}

// one measures a round.
func one(cl client, c contestant, o options) (figure, error) {
	before, err := machine.CPU(c.process)
	if err != nil {
		return figure{}, err
	}
	rate, err := cl.send(context.Background(), c, o)
	if err != nil {
		return figure{}, fmt.Errorf("%s, %s: %w", cl.name, c.name, err)
	}
	after, err := machine.CPU(c.process)
	return figure{client: cl.name, name: c.name, rate: rate, cpu: (after - before) / time.Duration(o.commands)}, err
}

// byBenchmark lets the tool that comes with Redis ask. It does not tell errors.
func byBenchmark(ctx context.Context, c contestant, o options) (float64, error) {
	host, port, err := net.SplitHostPort(c.address)
	if err != nil {
		return 0, err
	}
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
	out, err := exec.CommandContext(ctx, "redis-benchmark", args...).Output()
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w", err)
	}
	table, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil || len(table) != 2 || len(table[1]) < 2 {
		return 0, fmt.Errorf("redis-benchmark: %q: %w", out, err)
	}
	return strconv.ParseFloat(table[1][1], 64)
}

// byGoRedis lets go-redis ask, a goroutine for each connection. Every answer is looked at.
func byGoRedis(ctx context.Context, c contestant, o options) (float64, error) {
	db := redis.NewClient(&redis.Options{Addr: c.address, PoolSize: o.connections, MinIdleConns: o.connections})
	defer db.Close()
	var failed atomic.Pointer[error]
	pipelines := o.commands / o.connections / o.pipeline
	cost := rounds.AtOnce(o.connections, func(g int) {
		for i := range pipelines {
			answers, err := db.Pipelined(ctx, func(p redis.Pipeliner) error {
				for k := range o.pipeline {
					p.Do(ctx, c.command((g*7919+i*o.pipeline+k)%o.keys)...)
				}
				return nil
			})
			for _, a := range answers {
				if err == nil {
					err = c.right(a.(*redis.Cmd).Val())
				}
			}
			if err != nil {
				failed.Store(&err)
				return
			}
		}
	})
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(pipelines*o.pipeline*o.connections) / cost.Wall.Seconds(), nil
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
