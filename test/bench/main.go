// Command bench measures weir, most of it beside its peers: go run . NAME. It prints the tables of
// a suite, and keeps them in results/. See README.md.
package main

import (
	"fmt"
	"os"

	"github.com/weirhq/weir/test/bench/accuracy"
	"github.com/weirhq/weir/test/bench/adaptive"
	"github.com/weirhq/weir/test/bench/clients"
	"github.com/weirhq/weir/test/bench/curves"
	"github.com/weirhq/weir/test/bench/engine"
	"github.com/weirhq/weir/test/bench/envoy"
	"github.com/weirhq/weir/test/bench/gateway"
	"github.com/weirhq/weir/test/bench/holds"
	"github.com/weirhq/weir/test/bench/http"
	"github.com/weirhq/weir/test/bench/instructions"
	"github.com/weirhq/weir/test/bench/internal/bench"
	"github.com/weirhq/weir/test/bench/leases"
	"github.com/weirhq/weir/test/bench/log"
	"github.com/weirhq/weir/test/bench/overrun"
	"github.com/weirhq/weir/test/bench/peers"
	"github.com/weirhq/weir/test/bench/resp"
	"github.com/weirhq/weir/test/bench/rules"
	"github.com/weirhq/weir/test/bench/start"
)

var suites = []bench.Suite{
	{Name: "peers", About: "a check in memory, beside other limiters", Takes: "5 minutes; -quick: half a minute", Files: []string{"peers.txt", "summary.txt", "peers.jsonl"}, Run: peers.Run},
	{Name: "redis", About: "a check in Redis, beside other limiters", Takes: "4 minutes; -quick: half a minute", Files: []string{"redis.txt", "redis-summary.txt", "redis.jsonl"}, Run: peers.RunRedis},
	{Name: "log", About: "large sliding logs in Redis", Takes: "3 minutes; -quick: half a minute", Files: []string{"log.txt"}, Run: log.Run},
	{Name: "rules", About: "finding the rules for a request", Takes: "1 minute; -quick: some seconds", Files: []string{"rules.txt"}, Run: rules.Run},
	{Name: "engine", About: "a check of three rules, and the parts of a key", Takes: "4 minutes; -quick: a second", Files: []string{"engine.txt", "keys.txt"}, Run: engine.Run},
	{Name: "levels", About: "rules with levels, and clients of a directory", Takes: "4 to 20 minutes, by the machine; -quick: some seconds", Files: []string{"levels.txt"}, Run: engine.RunLevels},
	{Name: "http", About: "POST /v1/check, and the middleware beside others", Takes: "1 minute; -quick: some seconds", Files: []string{"http.txt"}, Run: http.Run},
	{Name: "gateway", About: "the gateway beside a bare proxy", Takes: "5 minutes; -quick: some seconds", Files: []string{"gateway.txt"}, Run: gateway.Run},
	{Name: "envoy", About: "Envoy's rate limit service, beside envoyproxy/ratelimit", Takes: "5 minutes; -quick: half a minute", Files: []string{"envoy.txt", "envoy-summary.txt"}, Run: envoy.Run},
	{Name: "leased", About: "Envoy's service and the engine with leases on Redis, near and far", Takes: "20 minutes; -quick: 3 minutes", Files: []string{"leased.txt"}, Run: envoy.RunLeased},
	{Name: "fleet", About: "calls of processes with leases, beside the formula and the simulation", Takes: "7 minutes; -quick: 2 minutes", Files: []string{"fleet.txt"}, Run: envoy.RunFleet},
	{Name: "resp", About: "commands of Redis clients, beside Redis", Takes: "3 minutes; -quick: some seconds", Files: []string{"resp.txt"}, Run: resp.Run},
	{Name: "start", About: "starts, and what weir takes without requests", Takes: "2 minutes; -quick: half a minute", Files: []string{"start.txt"}, Run: start.Run},
	{Name: "clients", About: "the import of clients, and a start with them", Takes: "half a minute; -clients 1000000: 2 minutes; -quick: some seconds", Files: []string{"clients.txt"}, Run: clients.Run, Clients: 100_000},
	{Name: "accuracy", About: "how often each algorithm decides wrongly", Takes: "1 minute; -quick: a second", Files: []string{"accuracy.txt"}, Run: accuracy.Run},
	{Name: "overrun", About: "costs that are known only afterwards", Takes: "a second", Files: []string{"overrun.txt"}, Run: overrun.Run},
	{Name: "holds", About: "reserve and settle, beside a take", Takes: "5 minutes; -quick: half a minute", Files: []string{"holds.txt"}, Run: holds.Run},
	{Name: "many", About: "many open holds of one key in Redis", Takes: "6 minutes; -quick: 6 minutes", Files: []string{"holds-many.txt"}, Run: holds.RunMany},
	{Name: "instructions", About: "what Redis does for a request", Takes: "10 minutes; -quick: 2 minutes", Files: []string{"instructions.txt"}, Run: instructions.Run, Compares: true},
	{Name: "adaptive", About: "limits that adapt to the capacity of a service", Takes: "10 minutes; -quick: half a minute", Files: adaptive.Files, Run: adaptive.Run},
	{Name: "leases", About: "leases in virtual time, beside the exact limiter", Takes: "2 minutes", Files: leases.Files, Run: leases.Run},
	{Name: "curves", About: "how the cost of a check grows, drawn", Takes: "5 minutes; -quick: half a minute", Files: curves.Files(), Run: curves.Run},
}

func main() {
	if envoy.IsNothing() {
		if err := envoy.ServeNothing(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(bench.Main(suites, os.Args[1:], os.Stdout, os.Stderr))
}
