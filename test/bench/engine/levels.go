package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

const levelsHead = "levels: [org, team, user, api_key]\nrules:\n"

// leveled are rules that count the same clients: at one level, at four by four rules, and at four by one.
var leveled = []struct {
	name, rules string
	results     int
}{
	{"one limit", "  - {id: user, key: user, limit: 1000000000/1s}\n", 1},
	{"four rules", `  - {id: org, key: org, limit: 1000000000/1s}
  - {id: team, key: team, limit: 1000000000/1s}
  - {id: user, key: user, limit: 1000000000/1s}
  - {id: key, key: api_key, limit: 1000000000/1s}
`, 4},
	{"four levels", "  - {id: all, key: levels, levels: {org: 1000000000/1s, team: 1000000000/1s, user: 1000000000/1s, api_key: 1000000000/1s}}\n", 4},
}

// tiered is a rule by which the tier of a client has a limit of its own.
const tiered = "  - {id: user, key: user, limit: 1/1s, tiers: {pro: {limit: 1000000000/1s}}}\n"

// known are ways to tell the tier of a user.
var known = []struct {
	name      string
	ask       func(r *rule.Request, key, user string)
	directory bool
}{
	{"user and tier in the request", func(r *rule.Request, _, user string) { r.User, r.Tier = user, "pro" }, false},
	{"user in the request, tier in the directory", func(r *rule.Request, _, user string) { r.User = user }, true},
	{"API key in the request, the rest in the directory", byKey, true},
}

func byKey(r *rule.Request, key, _ string) { r.APIKey = key }

// RunLevels writes the tables of levels and known clients.
func RunLevels(r *bench.Run) { runLevels(r, bench.Pick(r, full, quick)) }

func runLevels(r *bench.Run, o options) {
	table := bench.NewTable("<store", "<contestant", "ns", "÷ one limit", "÷ four rules")
	tiers := bench.NewTable("<store", "<a check of one limit, with", "ns", "÷")
	cluster := testredis.StartSteadyCluster(r).Addrs
	for _, p := range append(places(r), setting{"Redis Cluster", 32, 100, func() weir.Store { return bench.OpenURL(r, "redis+cluster://"+strings.Join(cluster, ",")) }}) {
		var all []contestant
		for _, c := range leveled {
			all = append(all, contestant{c.name, checkClients(r, o.keys, levelsHead+c.rules, c.results, p.open(), true, byKey)})
		}
		res := o.in(p).take(r, "levels in "+p.name, p.callers, all)
		for i, name := range res.Names {
			table.Row("%s|%s|%.0f|%.2f|%.2f", p.name, name, res.Median(i, bench.Round.CallerNanos),
				res.Ratio(i, 0, bench.Round.CallerNanos), res.Ratio(i, 1, bench.Round.CallerNanos))
		}
		all = nil
		for _, k := range known {
			all = append(all, contestant{k.name, checkClients(r, o.keys, levelsHead+tiered, 1, p.open(), k.directory, k.ask)})
		}
		res = o.in(p).take(r, "known clients in "+p.name, p.callers, all)
		for i, name := range res.Names {
			tiers.Row("%s|%s|%.0f|%.2f", p.name, name, res.Median(i, bench.Round.CallerNanos), res.Ratio(i, 0, bench.Round.CallerNanos))
		}
	}
	r.Write("levels.txt", bench.Describe(),
		"ns: time of one check of a client with an API key, a user, a team and an organization, which a directory knows; in Redis, while 32 callers check; median of the rounds.\n"+
			"÷: ratio of the same round; median. The aims for four levels are at most 1.1 of four rules, and in Redis at most 3.3 of one limit. "+
			"In a Cluster, which has six servers on this machine, the levels of a request are in several slots.", table,
		"With the same directory, in which users have a tier. ÷: ratio to the first row of the store. The aim for a tier in the directory is at most 1.1.", tiers)
}

// checkClients checks requests of clients, with or without the directory, in which ten keys have a
// user, ten users a team, and ten teams an organization.
func checkClients(t testing.TB, keys int, rules string, results int, store weir.Store, directory bool, ask func(r *rule.Request, key, user string)) func() func(int) error {
	names, users := bench.Keys(keys), make([]string, keys)
	var clients strings.Builder
	for i, name := range names {
		users[i] = fmt.Sprint(i / 10)
		fmt.Fprintf(&clients, `{"client": "api_key:%s", "parent": "user:%d"}`+"\n", name, i/10)
	}
	for n, kinds := keys, []string{"user", "team", "org", ""}; len(kinds) > 1; kinds = kinds[1:] {
		n = (n + 9) / 10
		for i := range n {
			parent := ""
			if kinds[1] != "" {
				parent = fmt.Sprintf(`, "parent": "%s:%d"`, kinds[1], i/10)
			}
			if kinds[0] == "user" {
				parent += `, "tier": "pro"`
			}
			fmt.Fprintf(&clients, `{"client": "%s:%d"%s}`+"\n", kinds[0], i, parent)
		}
	}
	d, problems, err := rule.ReadDirectory("clients.ndjson", strings.NewReader(clients.String()))
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	e := bench.NewEngine(t, store, rules)
	if directory {
		e.InstallClients(engine.Clients{Directory: d})
	}
	return func() func(int) error {
		return bench.Checks(e, results, rule.Request{}, func(r *rule.Request, i int) { ask(r, names[i], users[i]) })
	}
}
