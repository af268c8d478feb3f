// Package engine measures a whole check of three limits in memory: found by rules and
// charged all or none, beside the same three limits asked one after the other of
// another limiter, which charges the first for what the second denies. And it measures what the
// parts of a key cost, and levels.
package engine

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/bench"
	"github.com/weirhq/weir/test/bench/peers"
)

type options struct{ keys, rules, checks, rounds int }

var (
	full  = options{keys: 1000, rules: 10_000, checks: 400_000, rounds: 15}
	quick = options{keys: 1000, rules: 10_000, checks: 20_000, rounds: 3}
)

// contestant makes what one goroutine asks, for a client by number.
type contestant struct {
	name string
	new  func() func(client int) error
}

// take lets contestants take turns. All their checks are allowed.
func (o options) take(r *bench.Run, what string, callers int, all []contestant) bench.Scores {
	c := bench.Contest{What: what, Rounds: o.rounds, Load: bench.Load{Callers: callers, Count: o.checks}}
	for _, one := range all {
		c.Contestants = append(c.Contestants, bench.Contestant{Name: one.name, Ask: func(g int) func(int) error {
			order, ask := bench.NewOrder(g, o.keys, bench.Short), one.new()
			for i := range o.keys {
				_ = ask(i) // the keys are there before
			}
			return func(n int) error { return ask(order.At(n)) }
		}})
	}
	return c.Run(r)
}

// setting is where limits are kept, and how many ask there.
type setting struct {
	name    string
	callers int
	share   int // of the checks in memory
	open    func() weir.Store
}

// places are memory and a Redis.
func places(r *bench.Run) []setting {
	addr := testredis.Start(r).Addr
	return []setting{
		{"memory", 1, 1, func() weir.Store { return memory.New(memory.Options{}) }},
		{"Redis", 32, 100, func() weir.Store { return bench.OpenRedis(r, addr) }},
	}
}

// in are the options for a place.
func (o options) in(p setting) options {
	o.checks = max(1, o.checks/p.share)
	return o
}

// Run writes all tables but that of levels.
func Run(r *bench.Run) { run(r, bench.Pick(r, full, quick)) }

func run(r *bench.Run, o options) {
	limits := bench.NewTable("<contestant", "goroutines", "ns", "×", "allocs")
	for _, goroutines := range []int{1, 2} {
		res := o.take(r, fmt.Sprintf("three limits, %d goroutines", goroutines), goroutines, []contestant{
			{"sethvargo/go-limiter, three times", goLimiter(o.keys)},
			{"weir store, three limits", store(r, o.keys)},
			{"weir engine, three rules", judge(r, o.keys)},
		})
		for i, name := range res.Names {
			limits.Row("%s|%d|%.0f|%.2f|%.2f", name, goroutines, res.Median(i, bench.Round.CallerNanos),
				res.Ratio(i, 0, bench.Round.CallerNanos), res.Median(i, bench.Round.Allocs))
		}
	}
	r.Write("engine.txt", bench.Describe(), "ns: time of one check of three limits, all allowed, while all goroutines check; median of the rounds.\n"+
		"×: ratio to three calls of the other limiter.", limits)

	table := bench.NewTable("<store", "<key", "rules", "ns", "×")
	keyed := []struct {
		key   string
		rules int // of which one matches
	}{{"user", 1}, {"[user, route]", 1}, {"[user, host, method, route]", 1}, {"user", o.rules}, {"[user, route]", o.rules}}
	for _, p := range places(r) {
		var all []contestant
		for _, k := range keyed {
			all = append(all, contestant{k.key, checkOne(r, o.keys, k.key, k.rules, p.open())})
		}
		res := o.in(p).take(r, "keys in "+p.name, p.callers, all)
		for i, k := range keyed {
			table.Row("%s|%s|%s|%.0f|%.2f", p.name, k.key, bench.Count(k.rules), res.Median(i, bench.Round.CallerNanos), res.Ratio(i, 0, bench.Round.CallerNanos))
		}
	}
	r.Write("keys.txt", bench.Describe(), "ns: time of one check of one rule with four path patterns; in Redis, while 32 callers check; median of the rounds.\n"+
		"×: ratio to the plain key of the same store; median of the ratios of the rounds. The aim for one rule is at most 1.1.", table)
}

const rules = `
rules:
  - {id: address, match: {path: /api/**}, key: ip, limit: 1000000000/1s}
  - {id: user, match: {path: /api/**}, key: user, limit: 1000000000/1s}
  - {id: login, match: {method: POST, path: /api/login}, key: [user, ip], limit: 1000000000/1s}
`

// names are what a server would know of each client.
func names(keys int) (users []string, addresses []netip.Addr, texts []string) {
	for i := range keys {
		addresses = append(addresses, netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
		texts = append(texts, addresses[i].String())
	}
	return bench.Keys(keys), addresses, texts
}

// goLimiter asks three limiters, one after the other.
func goLimiter(keys int) func() func(int) error {
	users, _, texts := names(keys)
	both, limiters := make([]string, keys), [3]peers.Limiter{}
	for i := range both {
		both[i] = users[i] + texts[i]
	}
	for i := range limiters {
		limiters[i] = peers.GoLimiter.New(peers.Limit{N: 1_000_000_000, Period: time.Second}, keys)
	}
	return func() func(int) error {
		return func(i int) error {
			if !limiters[0].Take(texts[i]) || !limiters[1].Take(users[i]) || !limiters[2].Take(both[i]) {
				return bench.Denied(users[i])
			}
			return nil
		}
	}
}

func store(t testing.TB, keys int) func() func(int) error {
	users, _, texts := names(keys)
	s := memory.New(memory.Options{})
	var limits [3]*weir.Compiled
	for i := range limits {
		limit := weir.MustParseLimit("1000000000/1s")
		limit.Name = fmt.Sprint(i)
		limits[i] = testkit.Must(limit.Compile())(t)
	}
	return func() func(int) error {
		ops, decisions := make([]weir.Op, 3), make([]weir.Decision, 0, 3)
		return func(i int) (err error) {
			ops[0] = weir.Op{Key: texts[i], Limit: limits[0], Cost: 1}
			ops[1] = weir.Op{Key: users[i], Limit: limits[1], Cost: 1}
			ops[2] = weir.Op{Key: users[i], Limit: limits[2], Cost: 1}
			decisions, err = s.Take(context.Background(), decisions[:0], ops...)
			return bench.AllAllowed(decisions, err)
		}
	}
}

func judge(t testing.TB, keys int) func() func(int) error {
	users, addresses, _ := names(keys)
	e := bench.NewEngine(t, memory.New(memory.Options{}), rules)
	return func() func(int) error {
		return bench.Checks(e, 3, rule.Request{Method: "POST", Path: "/api/login"}, func(req *rule.Request, i int) { req.User, req.IP = users[i], addresses[i] })
	}
}

// checkOne checks requests that one of the rules counts.
func checkOne(t testing.TB, keys int, key string, rules int, store weir.Store) func() func(int) error {
	users := bench.Keys(keys)
	var document strings.Builder
	fmt.Fprintf(&document, `rules:
  - id: counted
    match: {method: [GET, POST], host: [api.example.com, "*.example.com"], path: ["/api/orders", "/api/orders/{id}", "/api/search", "/api/**"]}
    key: %s
    limit: 1000000000/1s
`, key)
	for i := range rules - 1 {
		fmt.Fprintf(&document, "  - {id: other-%d, match: {path: /other/%d/**}, key: user, limit: 1000000000/1s}\n", i, i)
	}
	e := bench.NewEngine(t, store, document.String())
	return func() func(int) error {
		return bench.Checks(e, 1, rule.Request{Method: "GET", Host: "api.example.com", Path: "/api/orders/17"}, func(req *rule.Request, i int) { req.User = users[i] })
	}
}
