package engine

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/internal/table"
)

// KeyFigure is what a check of one rule takes by the key of the rule.
type KeyFigure struct {
	Store, Key string
	Rules      int // in the document; one of them matches
	Nanos      float64
	Ratio      float64 // to the first key of the store
}

// aim is the largest ratio that the parts of a key may cost.
const aim = 1.1

// keyed are the keys that are compared, the plain one first.
var keyed = []struct {
	key   string
	rules int
}{{"user", 1}, {"[user, route]", 1}, {"[user, host, method, route]", 1}, {"user", 10_000}, {"[user, route]", 10_000}}

// RunKeys lets rules with plain and composed keys take turns, in memory and in Redis. The ratio
// is the median of those of the rounds, so that both sides had the same moment.
func RunKeys(t testing.TB, o Options, progress command.Progress) (out []KeyFigure) {
	for step, place := range []struct {
		name               string
		goroutines, checks int
		open               func() weir.Store
	}{
		{"memory", 1, o.Checks, func() weir.Store { return memory.New(memory.Options{}) }},
		{"Redis", 32, max(1, o.Checks/100), func() weir.Store { return openRedis(t) }},
	} {
		makers := make([]func() func(int) bool, len(keyed))
		for i, k := range keyed {
			makers[i] = checkOne(t, o.Keys, k.key, k.rules, place.open())
		}
		options, done := Options{Keys: o.Keys, Checks: place.checks}, 0
		turns := rounds.Turns{Contestants: len(keyed), Rounds: o.Rounds, Seed: [2]uint64{7, 11}}
		measured := testcall.Must(rounds.Take(turns, func(_, i int) (Figure, error) {
			progress(step*o.Rounds*len(keyed)+done, 2*o.Rounds*len(keyed), place.name+", "+keyed[i].key)
			done++
			return measure(keyed[i].key, makers[i], place.goroutines, options)
		}))(t)
		for i, k := range keyed {
			ratios := make([]float64, len(measured[i]))
			for round := range ratios {
				ratios[round] = measured[i][round].Nanos / measured[0][round].Nanos
			}
			slices.Sort(ratios)
			nanos := rounds.Median(measured[i], func(f Figure) float64 { return f.Nanos }).Nanos
			out = append(out, KeyFigure{place.name, k.key, k.rules, nanos, ratios[len(ratios)/2]})
		}
	}
	return out
}

func openRedis(t testing.TB) weir.Store {
	client := testcall.Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{testredis.Start(t).Addr}, DisableCache: true}))(t)
	t.Cleanup(client.Close)
	s := testcall.Must(redis.New(client, redis.Options{Timeout: 10 * time.Second}))(t)
	t.Cleanup(s.Close)
	return s
}

// checkOne checks requests that one of the rules counts.
func checkOne(t testing.TB, keys int, key string, rules int, store weir.Store) func() func(int) bool {
	users := clients.Keys(keys)
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
	e := testcall.Must(engine.New(engine.Options{Store: store}))(t)
	testcall.OK(t, e.Load("bench", []byte(document.String())))
	return func() func(int) bool {
		req := rule.Request{Method: "GET", Host: "api.example.com", Path: "/api/orders/17"}
		var v engine.Verdict
		return func(i int) bool {
			req.User = users[i]
			return e.Check(context.Background(), &req, &v) == nil && v.Allowed && len(v.Results) == 1 && v.Degraded == nil
		}
	}
}

// WriteKeys writes what a person reads.
func WriteKeys(w io.Writer, m machine.Description, _ Options, figures []KeyFigure) error {
	fmt.Fprintf(w, "%v\n\nns: time of one check of one rule with four path patterns; in Redis, while 32 callers check; median of the rounds.\n×: ratio to the plain key of the same store; median of the ratios of the rounds. The aim for one rule is at most %.1f.\n\n", m, aim)
	var rows [][]string
	for _, f := range figures {
		rows = append(rows, []string{f.Store, f.Key, table.Count(int64(f.Rules)), fmt.Sprintf("%.0f", f.Nanos), fmt.Sprintf("%.2f", f.Ratio)})
	}
	return table.Write(w, []string{"<store", "<key", "rules", "ns", "×"}, rows)
}
