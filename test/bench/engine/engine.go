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

	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

type options struct{ keys, rules, checks, rounds int }

var (
	full  = options{keys: 1000, rules: 10_000, checks: 400_000, rounds: 15}
	quick = options{keys: 1000, rules: 10_000, checks: 20_000, rounds: 3}
)

// Run writes all tables but that of levels.
func Run(r *bench.Run) { run(r, bench.Pick(r, full, quick)) }

func run(r *bench.Run, o options) {
	limits := bench.NewTable("<contestant", "goroutines", "ns", "×", "allocs")
	for _, goroutines := range []int{1, 2} {
		res := take(r, o, fmt.Sprintf("three limits, %d goroutines", goroutines), goroutines, []contestant{
			{"sethvargo/go-limiter, three times", goLimiter(r, o.keys)},
			{"weir store, three limits", store(r, o.keys)},
			{"weir engine, three rules", judge(r, o.keys)},
		})
		for i, name := range res.Names {
			limits.Row("%s|%d|%.0f|%.2f|%.2f", name, goroutines, res.Median(i, bench.Round.CallerNanos),
				res.Ratio(i, 0, bench.Round.CallerNanos), res.Median(i, bench.Round.Allocs))
		}
	}
	out := r.File("engine.txt")
	fmt.Fprintf(out, "%v\n\nns: time of one check of three limits, all allowed, while all goroutines check; median of the rounds.\n×: ratio to three calls of the other limiter.\n\n", bench.Describe())
	limits.Write(out)

	keys := bench.NewTable("<store", "<key", "rules", "ns", "×")
	inMemory := func() weir.Store { return memory.New(memory.Options{}) }
	addr := testredis.Start(r).Addr
	inRedis := func() weir.Store { return bench.OpenRedis(r, addr) }
	runKeys(r, keys, o, "memory", 1, inMemory)
	o.checks = max(1, o.checks/100)
	runKeys(r, keys, o, "Redis", 32, inRedis)
	out = r.File("keys.txt")
	fmt.Fprintf(out, "%v\n\nns: time of one check of one rule with four path patterns; in Redis, while 32 callers check; median of the rounds.\n×: ratio to the plain key of the same store; median of the ratios of the rounds. The aim for one rule is at most 1.1.\n\n", bench.Describe())
	keys.Write(out)
}

// runKeys lets rules with plain and composed keys take turns, the plain one first.
func runKeys(r *bench.Run, table *bench.Table, o options, store string, callers int, open func() weir.Store) {
	keyed := []struct {
		key   string
		rules int // of which one matches
	}{{"user", 1}, {"[user, route]", 1}, {"[user, host, method, route]", 1}, {"user", o.rules}, {"[user, route]", o.rules}}
	var all []contestant
	for _, k := range keyed {
		all = append(all, contestant{k.key, checkOne(r, o.keys, k.key, k.rules, open())})
	}
	res := take(r, o, "keys in "+store, callers, all)
	for i, k := range keyed {
		table.Row("%s|%s|%s|%.0f|%.2f", store, k.key, bench.Count(k.rules), res.Median(i, bench.Round.CallerNanos), res.Ratio(i, 0, bench.Round.CallerNanos))
	}
}

// contestant makes what one goroutine asks, for a client by number.
type contestant struct {
	name string
	new  func() func(client int) bool
}

// take lets contestants take turns.
func take(r *bench.Run, o options, what string, callers int, all []contestant) bench.Results[bench.Round] {
	turns := bench.Turns{What: what, Rounds: o.rounds, Seed: [2]uint64{3, 5}}
	for _, c := range all {
		turns.Names = append(turns.Names, c.name)
	}
	return bench.Take(r, turns, func(_, i int) (bench.Round, error) { return measure(all[i], callers, o) })
}

// measure has every goroutine ask so many checks, all of which are allowed.
func measure(c contestant, callers int, o options) (bench.Round, error) {
	const length = 1 << 12
	return bench.Load{Callers: callers, Count: o.checks}.Run(func(g int) func(int) error {
		walk, ask := bench.Walk(g, o.keys, length), c.new()
		for i := range o.keys {
			ask(i) // the keys are there before
		}
		return func(n int) error {
			if !ask(int(walk[n&(length-1)])) {
				return fmt.Errorf("check %d is denied, which none should be", n)
			}
			return nil
		}
	})
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

func goLimiter(t testing.TB, keys int) func() func(int) bool {
	users, _, texts := names(keys)
	both := make([]string, keys)
	for i := range both {
		both[i] = users[i] + texts[i]
	}
	var stores [3]limiter.Store
	for i := range stores {
		stores[i] = testkit.Must(memorystore.New(&memorystore.Config{Tokens: 1_000_000_000, Interval: time.Second, InitialAlloc: keys}))(t)
	}
	take := func(s limiter.Store, key string) bool {
		_, _, _, ok, err := s.Take(context.Background(), key)
		return ok && err == nil
	}
	return func() func(int) bool {
		return func(i int) bool {
			return take(stores[0], texts[i]) && take(stores[1], users[i]) && take(stores[2], both[i])
		}
	}
}

func store(t testing.TB, keys int) func() func(int) bool {
	users, _, texts := names(keys)
	s := memory.New(memory.Options{})
	var limits [3]*weir.Compiled
	for i := range limits {
		limit := weir.MustParseLimit("1000000000/1s")
		limit.Name = fmt.Sprint(i)
		limits[i] = testkit.Must(limit.Compile())(t)
	}
	return func() func(int) bool {
		ops, decisions := make([]weir.Op, 3), make([]weir.Decision, 0, 3)
		return func(i int) bool {
			ops[0] = weir.Op{Key: texts[i], Limit: limits[0], Cost: 1}
			ops[1] = weir.Op{Key: users[i], Limit: limits[1], Cost: 1}
			ops[2] = weir.Op{Key: users[i], Limit: limits[2], Cost: 1}
			var err error
			decisions, err = s.Take(context.Background(), decisions[:0], ops...)
			return err == nil && weir.Allowed(decisions)
		}
	}
}

func judge(t testing.TB, keys int) func() func(int) bool {
	users, addresses, _ := names(keys)
	e := bench.NewEngine(t, memory.New(memory.Options{}), rules)
	return func() func(int) bool {
		req := rule.Request{Method: "POST", Path: "/api/login"}
		var v engine.Verdict
		return func(i int) bool {
			req.User, req.IP = users[i], addresses[i]
			return e.Check(context.Background(), &req, &v) == nil && v.Allowed && len(v.Results) == 3
		}
	}
}

// checkOne checks requests that one of the rules counts.
func checkOne(t testing.TB, keys int, key string, rules int, store weir.Store) func() func(int) bool {
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
	return func() func(int) bool {
		req := rule.Request{Method: "GET", Host: "api.example.com", Path: "/api/orders/17"}
		var v engine.Verdict
		return func(i int) bool {
			req.User = users[i]
			return e.Check(context.Background(), &req, &v) == nil && v.Allowed && len(v.Results) == 1 && v.Degraded == nil
		}
	}
}
