package curves

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// growth is what grows, and what is measured: curves of one chart.
type growth struct {
	file, title, x string
	lines          func(addr string, o options) []line
}

const (
	usual = 10_000 // keys, if their number is not what grows
	many  = 128    // callers of Redis
)

// month is a period in which nothing comes back while a run lasts, and used what a key has
// used before, so that it is not forgotten either.
const (
	month = 30 * 24 * time.Hour
	units = 10_000_000
	used  = 10_000
)

// growths are all that are measured.
var growths = []growth{
	{"curves-keys.svg", "Number of keys", "keys that have been seen; requests come for all of them alike", func(addr string, o options) []line {
		return []line{
			{"memory, token_bucket", o.keys, overKeys(inMemory, 1, weir.TokenBucket)},
			{"memory, sliding_window", o.keys, overKeys(inMemory, 1, weir.SlidingWindow)},
			{"Redis, 128 callers", o.redisKeys, overKeys(inRedis(addr), many, weir.TokenBucket)},
		}
	}},
	{"curves-rules.svg", "Number of rules", "rules, of which one matches a request", func(_ string, o options) []line {
		return []line{
			{"exact paths, for all alike", o.rules, overRules("/v1/r%d/items", "/v1/r%d/items", math.MaxInt)},
			{"prefixes, for all alike", o.rules, overRules("/v1/r%d/**", "/v1/r%d/items/7", math.MaxInt)},
			{"prefixes, for a hundred", o.rules, overRules("/v1/r%d/**", "/v1/r%d/items/7", 100)},
		}
	}},
	{"curves-callers.svg", "Number of callers", "callers at the same time, on two cores", func(addr string, o options) []line {
		over := func(open opener) func(testing.TB, int) bench.Contestant {
			return func(t testing.TB, callers int) bench.Contestant {
				return overKeys(open, callers, weir.TokenBucket)(t, usual)
			}
		}
		return []line{{"memory", o.callers, over(inMemory)}, {"Redis", o.callers, over(inRedis(addr))}}
	}},
	{"curves-limits.svg", "Limits of a request", "limits that are charged together, all or none", func(addr string, o options) []line {
		return []line{
			{"memory", o.limits, overLimits(inMemory, 1)},
			{"engine, a rule for each", o.limits, overMatches},
			{"Redis, 128 callers", o.limits, overLimits(inRedis(addr), many)},
		}
	}},
	{"curves-costs.svg", "Cost of a request", "units that a request costs; the limit is 100 times as many", func(_ string, o options) (out []line) {
		for _, a := range []weir.Algorithm{weir.TokenBucket, weir.SlidingWindow, weir.SlidingBuckets, weir.SlidingLog} {
			out = append(out, line{"memory, " + a.String(), o.costs, overCosts(a)})
		}
		return out
	}},
}

// opener opens a store for a point of a curve.
type opener func(t testing.TB) weir.Store

func inMemory(testing.TB) weir.Store { return memory.New(memory.Options{MaxKeys: 1 << 25}) }

func inRedis(addr string) opener {
	return func(t testing.TB) weir.Store { return bench.OpenRedis(t, addr) }
}

// overKeys measures a store with so many keys.
func overKeys(open opener, callers int, a weir.Algorithm) func(testing.TB, int) bench.Contestant {
	return func(t testing.TB, keys int) bench.Contestant {
		l := testkit.Must(weir.NewLimiter(open(t), weir.Limit{Name: fmt.Sprint("keys-", callers, "-", keys), Algorithm: a, N: units, Period: month}))(t)
		testkit.OK(t, bench.All(min(callers, keys), keys, func(i int) error { // keys that stay
			return bench.Allowed(l.Take(context.Background(), key(i), used))
		}))
		walk := strung(keys)
		return bench.Contestant{Asking: callers, Ask: func(caller int) func(int) error {
			at := caller * len(walk) / callers
			return func(n int) error {
				return bench.Allowed(l.Take(context.Background(), walk[(at+n)%len(walk)], 1))
			}
		}}
	}
}

// key is the text of a key by its number.
func key(i int) string { return fmt.Sprintf("user:%010d", i) }

// strung are keys in a random order, one behind the other in memory: a caller has the key of
// its request at hand, however many there are.
func strung(keys int) []string {
	length := min(bench.Long, 16*keys)
	random := rand.New(rand.NewPCG(17, uint64(keys)))
	var b strings.Builder
	for range length {
		b.WriteString(key(random.IntN(keys)))
	}
	all, size := b.String(), len(key(0))
	out := make([]string, length)
	for i := range out {
		out[i] = all[i*size : (i+1)*size]
	}
	return out
}

// overLimits measures a store with so many limits for each request.
func overLimits(open opener, callers int) func(testing.TB, int) bench.Contestant {
	return func(t testing.TB, limits int) bench.Contestant {
		s := open(t)
		compiled := make([]*weir.Compiled, limits)
		for i := range compiled {
			compiled[i] = testkit.Must(weir.Limit{Name: fmt.Sprint("limits-", limits, "-", i), N: units, Period: month}.Compile())(t)
		}
		walk := strung(usual)
		return bench.Contestant{Asking: callers, Ask: func(caller int) func(int) error {
			at := caller * len(walk) / callers
			ops, decisions := make([]weir.Op, limits), make([]weir.Decision, 0, limits)
			return func(n int) (err error) {
				for i := range ops {
					ops[i] = weir.Op{Key: walk[(at+n)%len(walk)], Limit: compiled[i], Cost: 1}
				}
				decisions, err = s.Take(context.Background(), decisions[:0], ops...)
				return bench.AllAllowed(decisions, err)
			}
		}}
	}
}

// overMatches measures the engine with so many rules that match.
func overMatches(t testing.TB, rules int) bench.Contestant {
	set := new(rule.Set)
	for i := range rules {
		set.Rules = append(set.Rules, ofUser(i, rule.Match{}))
	}
	walk := strung(usual)
	return judged(t, set, rules, func(req *rule.Request, n int) { req.User = walk[n%len(walk)] })
}

// overRules measures the engine with so many rules, of which one matches. Requests come for all of
// them alike, or only for so many: what differs is what the processor has in its caches.
func overRules(pattern, path string, asked int) func(testing.TB, int) bench.Contestant {
	return func(t testing.TB, rules int) bench.Contestant {
		set, paths := new(rule.Set), make([]string, rules)
		for i := range rules {
			set.Rules = append(set.Rules, ofUser(i, rule.Match{Paths: []string{fmt.Sprintf(pattern, i)}}))
			paths[i] = fmt.Sprintf(path, i)
		}
		order := bench.NewOrder(0, min(rules, asked), bench.Long)
		return judged(t, set, 1, func(req *rule.Request, n int) { req.User, req.Path = "alice", paths[order.At(n)] })
	}
}

func ofUser(i int, m rule.Match) rule.Rule {
	return rule.Rule{
		ID: fmt.Sprint("r", i), Match: m, Key: []rule.Source{{Kind: rule.User}},
		Quota: rule.Quota{Rates: []rule.Rate{{N: units, Period: month}}},
	}
}

// judged lets an engine check requests, each of which so many rules match.
func judged(t testing.TB, set *rule.Set, matching int, request func(*rule.Request, int)) bench.Contestant {
	e := testkit.Must(engine.New(engine.Options{Store: inMemory(t)}))(t)
	t.Cleanup(e.Close)
	e.Install(testkit.Must(rule.Compile(set, rule.Options{}))(t), 1)
	return bench.Contestant{Asking: 1, Ask: func(int) func(int) error { return bench.Checks(e, matching, rule.Request{Method: "GET"}, request) }}
}

// overCosts measures requests of so many units. Units come back so soon that few are in use
// at any time.
func overCosts(a weir.Algorithm) func(testing.TB, int) bench.Contestant {
	return func(t testing.TB, cost int) bench.Contestant {
		const keys = 1000
		l := testkit.Must(weir.NewLimiter(inMemory(t), weir.Limit{Algorithm: a, N: 100 * int64(cost), Period: keys * 2 * time.Microsecond}))(t)
		walk := strung(keys)
		return bench.Contestant{Asking: 1, Ask: func(int) func(int) error {
			return func(n int) error { return bench.Allowed(l.Take(context.Background(), walk[n%len(walk)], int64(cost))) }
		}}
	}
}
