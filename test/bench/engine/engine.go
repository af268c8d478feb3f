// Package engine measures a whole check of three limits in memory: found by rules and
// charged all or none, beside the same three limits asked one after the other of
// another limiter, which charges the first for what the second denies.
package engine

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/internal/table"
)

// Options say how long to measure.
type Options struct{ Keys, Checks, Rounds int }

// Full is what results/ holds, Quick a first look.
var (
	Full  = Options{Keys: 1000, Checks: 400_000, Rounds: 15}
	Quick = Options{Keys: 1000, Checks: 20_000, Rounds: 3}
)

// Figure is what one contestant took for a check of three limits.
type Figure struct {
	Name       string
	Goroutines int
	Nanos      float64
	Allocs     float64
	Ratio      float64 // to the limiter that is asked three times
}

// contestant makes what one goroutine asks, for a client by number.
type contestant struct {
	name string
	new  func(t testing.TB, keys int) func() func(client int) bool
}

const peer = "sethvargo/go-limiter, three times"

const rules = `
rules:
  - {id: address, match: {path: /api/**}, key: ip, limit: 1000000000/1s}
  - {id: user, match: {path: /api/**}, key: user, limit: 1000000000/1s}
  - {id: login, match: {method: POST, path: /api/login}, key: [user, ip], limit: 1000000000/1s}
`

func contestants() []contestant {
	return []contestant{{peer, goLimiter}, {"weir store, three limits", store}, {"weir engine, three rules", judge}}
}

// names are what a server would know of each client.
func names(keys int) (users []string, addresses []netip.Addr, texts []string) {
	for i := range keys {
		addresses = append(addresses, netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
		texts = append(texts, addresses[i].String())
	}
	return clients.Keys(keys), addresses, texts
}

func goLimiter(t testing.TB, keys int) func() func(int) bool {
	users, _, texts := names(keys)
	both := make([]string, keys)
	for i := range both {
		both[i] = users[i] + texts[i]
	}
	var stores [3]limiter.Store
	for i := range stores {
		stores[i] = testcall.Must(memorystore.New(&memorystore.Config{Tokens: 1_000_000_000, Interval: time.Second, InitialAlloc: keys}))(t)
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
		limits[i] = testcall.Must(limit.Compile())(t)
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
	e := testcall.Must(engine.New(engine.Options{Store: memory.New(memory.Options{})}))(t)
	testcall.OK(t, e.Load("bench", []byte(rules)))
	return func() func(int) bool {
		req := rule.Request{Method: "POST", Path: "/api/login"}
		var v engine.Verdict
		return func(i int) bool {
			req.User, req.IP = users[i], addresses[i]
			return e.Check(context.Background(), &req, &v) == nil && v.Allowed && len(v.Results) == 3
		}
	}
}

// Run lets all take turns, by one goroutine and by two.
func Run(t testing.TB, o Options, progress command.Progress) (out []Figure) {
	all := contestants()
	for step, goroutines := range []int{1, 2} {
		makers := make([]func() func(int) bool, len(all))
		for i, c := range all {
			makers[i] = c.new(t, o.Keys)
		}
		done := 0
		turns := rounds.Turns{Contestants: len(all), Rounds: o.Rounds, Seed: [2]uint64{3, 5}}
		measured := testcall.Must(rounds.Take(turns, func(_, i int) (Figure, error) {
			progress(step*o.Rounds*len(all)+done, 2*o.Rounds*len(all), all[i].name)
			done++
			return measure(all[i].name, makers[i], goroutines, o)
		}))(t)
		var figures []Figure
		for _, m := range measured {
			figures = append(figures, rounds.Median(m, func(f Figure) float64 { return f.Nanos }))
		}
		for i := range figures {
			figures[i].Ratio = figures[i].Nanos / figures[0].Nanos
		}
		out = append(out, figures...)
	}
	return out
}

func measure(name string, maker func() func(int) bool, goroutines int, o Options) (Figure, error) {
	walks := make([][]uint32, goroutines)
	asks := make([]func(int) bool, goroutines)
	for g := range walks {
		walks[g], asks[g] = clients.Walk(g, o.Keys, 1<<12), maker()
		for i := range o.Keys {
			asks[g](i) // the keys are there before
		}
	}
	denied := make([]int, goroutines)
	cost := rounds.AtOnce(goroutines, func(g int) {
		walk, ask := walks[g], asks[g]
		for i := range o.Checks {
			if !ask(int(walk[i&(1<<12-1)])) {
				denied[g]++
			}
		}
	})
	for _, n := range denied {
		if n > 0 {
			return Figure{}, fmt.Errorf("%s denied %d of %d, which none should", name, n, o.Checks)
		}
	}
	n := float64(o.Checks)
	return Figure{Name: name, Goroutines: goroutines, Nanos: float64(cost.Wall.Nanoseconds()) / n, Allocs: float64(cost.Mallocs) / n / float64(goroutines)}, nil
}

// WriteTable writes what a person reads.
func WriteTable(w io.Writer, m machine.Description, _ Options, figures []Figure) error {
	fmt.Fprintf(w, "%v\n\nns: time of one check of three limits, all allowed, while all goroutines check; median of the rounds.\n×: ratio to three calls of the other limiter.\n\n", m)
	var rows [][]string
	for _, f := range figures {
		rows = append(rows, []string{f.Name, fmt.Sprint(f.Goroutines), fmt.Sprintf("%.0f", f.Nanos), fmt.Sprintf("%.2f", f.Ratio), fmt.Sprintf("%.2f", f.Allocs)})
	}
	return table.Write(w, []string{"<contestant", "goroutines", "ns", "×", "allocs"}, rows)
}
