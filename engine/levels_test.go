package engine_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

const leveled = `
levels: [org, team, user, api_key]
rules:
  - id: spend
    key: levels
    algorithm: fixed_window
    levels: {org: 50/1h, team: {limits: [20/1h, 5/1s]}, user: 10/1h}
    tiers: {pro: {priority: high, levels: {user: 15/1h}}, free: {levels: {api_key: 2/1h, team: unlimited}}}
    overrides: {"org:big": 90/1h}
  - {id: reports, key: [org, route], match: {path: [/a, /b]}, limit: 7/1h}
`

const company = `
{"client": "api_key:k-ann", "parent": "user:ann"}
{"client": "api_key:k-ann2", "parent": "user:ann", "tier": "free"}
{"client": "user:ann", "parent": "team:blue"}
{"client": "api_key:k-bob", "parent": "user:bob"}
{"client": "user:bob", "parent": "team:blue", "tier": "pro"}
{"client": "team:blue", "parent": "org:acme", "limits": {"spend": ["30/1h", "9/1s"]}}
{"client": "org:acme", "zone": "Europe/Berlin"}
{"client": "api_key:k-cid", "parent": "user:cid"}
{"client": "user:cid", "parent": "org:big", "limits": {"spend": "unlimited"}}
{"client": "org:big", "tier": "pro"}
{"client": "api_key:k-free", "parent": "org:acme", "tier": "free"}
`

func leveledBench(t *testing.T, rules, clients string) *bench {
	b := newBench(t, rules, nil)
	b.InstallClients(engine.Clients{Directory: readClients(t, clients)})
	return b
}

// A request is charged at each level that it has and that the rule limits, with the tier and the limits of the client there.
func TestLevels(t *testing.T) {
	b := leveledBench(t, leveled, company)
	hash := rule.HashAPIKey
	for _, c := range []struct {
		name    string
		request rule.Request
		want    string
	}{
		{"all levels; the own limits of the team", rule.Request{APIKey: "k-ann"}, "spend org:acme 50/1h, spend team:blue 30/1h, spend team:blue 9/1s, spend user:ann 10/1h"},
		{"the tier of a key is not that of its user", rule.Request{APIKey: "k-ann2"}, "spend org:acme 50/1h, spend team:blue 30/1h, spend team:blue 9/1s, spend user:ann 10/1h, spend api_key:k2 2/1h"},
		{"the tier of the user is not that of its organization", rule.Request{APIKey: "k-bob"}, "spend org:acme 50/1h, spend team:blue 30/1h, spend team:blue 9/1s, spend user:bob 15/1h"},
		{"without a team, unlimited by itself, an override of the rule above", rule.Request{APIKey: "k-cid"}, "spend org:big 90/1h"},
		{"missing levels", rule.Request{APIKey: "k-free"}, "spend org:acme 50/1h, spend api_key:" + hash("k-free") + " 2/1h"},
		{"unknown clients have the levels that they name", rule.Request{User: "dan"}, "spend user:dan 10/1h"},
		{"none at all", rule.Request{Path: "/x"}, ""},
		{"two keys of one organization charge it once", rule.Request{APIKey: "k-ann", OtherAPIKeys: []string{"k-bob"}}, "spend org:acme 50/1h, spend team:blue 30/1h, spend team:blue 9/1s, spend user:ann 10/1h, spend user:bob 15/1h"},
		{"one key twice", rule.Request{APIKey: "k-free", OtherAPIKeys: []string{"k-free"}}, "spend org:acme 50/1h, spend api_key:" + hash("k-free") + " 2/1h"},
		{"a level in another key", rule.Request{APIKey: "k-cid", Path: "/b"}, "spend org:big 90/1h, reports org:big|route:/b 7/1h"},
		{"the application names a level that the directory does not", rule.Request{User: "dan", Attributes: map[string]string{"team": "blue"}}, "spend org:acme 50/1h, spend team:blue 30/1h, spend team:blue 9/1s, spend user:dan 10/1h"},
		{"but not one that it does", rule.Request{User: "cid", Attributes: map[string]string{"org": "acme"}}, "spend org:big 90/1h"},
	} {
		v := b.check(t, c.request)
		if got := limitsIn(v); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if v := b.check(t, rule.Request{APIKey: "k-cid"}); v.Priority != rule.High {
		t.Errorf("the priority is %v", v.Priority)
	}
	var v engine.Verdict
	for key, want := range map[string]string{"org:acme": " none", "user:bob": "pro seen"} { // both had requests of bob, who is pro
		if tier, err := b.Standing(t.Context(), "spend", key, "", &v); err != nil || fmt.Sprint(tier.Name, " ", tier.From) != want {
			t.Errorf("%s has the tier %q %s, want %s, %v", key, tier.Name, tier.From, want, err)
		}
	}
	keys := rule.Request{APIKey: "1"}
	for i := range 9 {
		keys.OtherUsers = append(keys.OtherUsers, fmt.Sprint("u", i))
	}
	if err := b.Check(t.Context(), &keys, new(engine.Verdict)); err == nil || !strings.Contains(err.Error(), "too many values for user") {
		t.Errorf("nine users are one too many: %v", err)
	}
}

// A tier that is unlimited is so at each level that has it, and at no other.
func TestLevelsUnlimited(t *testing.T) {
	b := leveledBench(t, strings.Replace(leveled, "tiers: {pro:", "tiers: {staff: unlimited, boss: {limit: unlimited, priority: high}, pro:", 1), `
{"client": "api_key:k-ann", "parent": "user:ann"}
{"client": "user:ann", "parent": "org:acme", "tier": "staff"}
{"client": "org:acme"}
{"client": "user:bob", "parent": "org:free"}
{"client": "org:free", "tier": "boss"}
`)
	if got := limitsIn(b.check(t, rule.Request{APIKey: "k-ann"})); got != "spend org:acme 50/1h" {
		t.Errorf("ann has %s", got)
	}
	if v := b.check(t, rule.Request{User: "bob"}); limitsIn(v) != "" || v.Priority != rule.High {
		t.Errorf("bob has %s and the priority %v", limitsIn(v), v.Priority)
	}
}

// All levels are charged, or none, and the denial names the level but not the client there.
func TestLevelsDeny(t *testing.T) {
	b := leveledBench(t, leveled, company)
	used := func(key string) int64 {
		var v engine.Verdict
		if _, err := b.Standing(t.Context(), "spend", key, "", &v); err != nil {
			t.Fatal(err)
		}
		return v.Results[0].Used()
	}
	for range 10 {
		b.pass(time.Second)
		if v := b.check(t, rule.Request{APIKey: "k-ann"}); !v.Allowed {
			t.Fatal(engine.Describe(v).Detail)
		}
	}
	b.pass(time.Second)
	v := b.check(t, rule.Request{APIKey: "k-ann"})
	d := engine.Describe(v)
	if v.Allowed || d.Level != "user" || v.Answer().Level != "user" || strings.Join(d.Policies, " ") != "spend:user" || !strings.HasPrefix(d.Detail, "The limit spend of the level user is used up; try again in ") {
		t.Errorf("it says %v: %s", d.Policies, d.Detail)
	}
	for i := range v.Results {
		if want := []string{"spend:org", "spend:team:1h", "spend:team:1s", "spend:user"}[i]; v.Name(&v.Results[i]) != want {
			t.Errorf("the limit %d is %s, want %s", i, v.Name(&v.Results[i]), want)
		}
	}
	for key, want := range map[string]int64{"org:acme": 10, "team:blue": 10, "user:ann": 10, "user:bob": 0} {
		if got := used(key); got != want {
			t.Errorf("%s has used %d, want %d", key, got, want)
		}
	}
	if err := b.Refund(t.Context(), v); err != nil || used("org:acme") != 10 {
		t.Error("what was denied was refunded", err)
	}
	v = b.check(t, rule.Request{APIKey: "k-bob"})
	if err := b.Refund(t.Context(), v); err != nil || used("org:acme") != 10 || used("user:bob") != 0 {
		t.Errorf("after a refund the organization has used %d, %v", used("org:acme"), err)
	}
	if rules, err := b.Reset(t.Context(), "", "org:acme"); err != nil || fmt.Sprint(rules) != "[spend reports]" || used("org:acme") != 0 || used("user:ann") != 10 {
		t.Errorf("reset of %v, %v: %d", rules, err, used("org:acme"))
	}
}

// A hold is reserved and settled at each level. A client that moves leaves what it used behind, and what it reserved settles
// where it was reserved.
func TestLevelsHoldAndMove(t *testing.T) {
	onStores(t, leveled, func(t *testing.T, b *holdBench) {
		belong := func(org string) {
			b.InstallClients(engine.Clients{Directory: readClients(t, `{"client": "user:ann", "parent": "org:`+org+`"}`+"\n"+`{"client": "org:`+org+`"}`)})
		}
		belong("old")
		v := b.reserve(t, rule.Request{User: "ann", Cost: 6}, time.Minute)
		if !v.Allowed || v.Hold == (weir.HoldID{}) || len(v.Results) != 2 {
			t.Fatalf("%+v", v)
		}
		hold := v.Hold
		belong("new")
		if v := b.reserve(t, rule.Request{User: "ann", Cost: 5}, time.Minute); v.Allowed || v.Name(v.Speaker()) != "spend:user" {
			t.Errorf("11 of 10 are allowed, or denied by %s", v.Name(v.Speaker()))
		}
		testkit.Must(b.Settle(t.Context(), b.reserve(t, rule.Request{User: "ann", Cost: 4}, time.Minute).Hold, engine.Units(1)))(t)
		testkit.Must(b.Settle(t.Context(), hold, engine.Units(2)))(t)
		for key, want := range map[string]int64{"org:old": 2, "org:new": 1, "user:ann": 3} {
			if _, err := b.Standing(t.Context(), "spend", key, "", v); err != nil || v.Results[0].Used() != want {
				t.Errorf("%s has used %d, want %d, %v", key, v.Results[0].Used(), want, err)
			}
		}
	})
}

// drawCompany draws who belongs to whom: keys that belong to nobody any more, users without a team, and teams in other
// organizations. It returns the clients of each key, from the top down, and the file that says so.
func drawCompany(r *rand.Rand) (lines map[string]string, file string) {
	lines = map[string]string{}
	var text strings.Builder
	orgs := []string{"org:a", "org:b"}
	teams := map[string]string{}
	for _, org := range orgs {
		fmt.Fprintf(&text, `{"client": %q}`+"\n", org)
	}
	for n := range 3 {
		team, org := fmt.Sprint("team:", n), orgs[r.IntN(2)]
		teams[team] = org + " " + team
		fmt.Fprintf(&text, `{"client": %q, "parent": %q}`+"\n", team, org)
	}
	for n := range 6 {
		key, user := fmt.Sprint("k", n), fmt.Sprint("user:", n)
		team := fmt.Sprint("team:", r.IntN(4)) // the last of which does not exist
		switch above := teams[team]; {
		case r.IntN(8) == 0: // deleted
			continue
		case above == "":
			lines[key] = user
			fmt.Fprintf(&text, `{"client": %q}`+"\n", user)
		default:
			lines[key] = above + " " + user
			fmt.Fprintf(&text, `{"client": %q, "parent": %q}`+"\n", user, team)
		}
		fmt.Fprintf(&text, `{"client": "api_key:%s", "parent": %q}`+"\n", key, user)
	}
	return lines, text.String()
}

// While clients move, leave and come back under load, nobody is charged at a level that is not theirs then, and what the
// store has counted for each client is what was allowed for it, so that the sums of all levels agree.
func TestLevelsMoveUnderLoad(t *testing.T) {
	const rules = `
levels: [org, team, user]
rules: [{id: spend, key: levels, algorithm: fixed_window, on_failure: closed, levels: {org: 700/1h, team: 400/1h, user: 250/1h}}]
`
	onStores(t, rules, func(t *testing.T, b *holdBench) {
		const moves = 60
		r := rand.New(rand.NewPCG(40, 2))
		lines, directories := make([]map[string]string, moves), make([]*rule.Directory, moves)
		for g := range moves {
			var file string
			lines[g], file = drawCompany(r)
			directories[g] = readClients(t, file)
		}
		var begun, done atomic.Int64 // the latest move that has begun, and the latest that is over
		b.InstallClients(engine.Clients{Directory: directories[0]})
		var mu sync.Mutex
		charged, denied, total := map[string]int64{}, 0, 0
		var wg, moving sync.WaitGroup
		over := make(chan struct{})
		for caller := range 6 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(caller), 2))
				for last := false; !last; {
					select {
					case <-over:
						last = true
					default:
					}
					key, from := fmt.Sprint("k", random.IntN(6)), done.Load()
					v, err := b.CheckNew(t.Context(), rule.Request{APIKey: key})
					to := begun.Load()
					if err != nil || v.Degraded != nil {
						t.Error(err, v.Degraded)
						return
					}
					var line []string
					for i := range v.Results {
						line = append(line, v.Results[i].Key)
					}
					got, theirs := strings.Join(line, " "), false
					for g := from; g <= to; g++ {
						theirs = theirs || lines[g][key] == got
					}
					if !theirs {
						t.Errorf("%s is counted as %q between the moves %d and %d", key, got, from, to)
					}
					mu.Lock()
					if total++; !v.Allowed {
						denied++
					} else {
						for _, client := range line {
							charged[client]++
						}
					}
					mu.Unlock()
				}
			})
		}
		moving.Go(func() {
			for g := int64(1); g < moves; g++ {
				begun.Store(g)
				b.InstallClients(engine.Clients{Directory: directories[g]})
				done.Store(g)
				mu.Lock()
				until := total + 40
				mu.Unlock()
				for enough := false; !enough && !t.Failed(); runtime.Gosched() {
					mu.Lock()
					enough = total >= until
					mu.Unlock()
				}
			}
			close(over)
		})
		moving.Wait()
		wg.Wait()
		var v engine.Verdict
		for client, want := range charged {
			if _, err := b.Standing(t.Context(), "spend", client, "", &v); err != nil || v.Results[0].Used() != want {
				t.Errorf("%s has used %d, want %d, %v", client, v.Results[0].Used(), want, err)
			}
		}
		if denied == 0 || len(charged) != 11 {
			t.Errorf("of %d requests, %d were denied; charged are %v", total, denied, charged)
		}
	})
}

// Shadow rules, overrides and limits of clients under rules with levels.
func TestLevelsShadow(t *testing.T) {
	b := leveledBench(t, strings.Replace(leveled, "key: levels", "key: levels\n    mode: shadow", 1), company)
	for range 12 {
		b.pass(time.Second)
		if v := b.check(t, rule.Request{APIKey: "k-ann"}); !v.Allowed {
			t.Fatal("a shadow denies")
		}
	}
	var v engine.Verdict
	if _, err := b.Standing(t.Context(), "spend", "org:acme", "", &v); err != nil || v.Results[0].Used() != 10 {
		t.Errorf("the organization has used %d in the shadow, %v", v.Results[0].Used(), err)
	}
	if _, err := b.Clients(); err != nil {
		t.Error(err)
	}
	b.InstallClients(engine.Clients{Directory: readClients(t, `{"client": "api_key:x", "limits": {"reports": "5/1h"}}`+"\n"+`{"client": "org:y", "limits": {"spend": "5/1h"}}`)})
	if _, err := b.Clients(); err == nil || !strings.Contains(err.Error(), "the rule counts by something else") {
		t.Errorf("limits of a key under a rule that does not count it: %v", err)
	}
}

// How often many callers are allowed at once, by whom.
func allowedAtOnce(t *testing.T, b *bench, requests int, of func(int) rule.Request) int {
	t.Helper()
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			for i := caller; i < requests; i += 8 {
				v, err := b.CheckNew(t.Context(), of(i))
				if err != nil {
					t.Error(err)
				} else if v.Allowed {
					allowed.Add(v.Results[0].Cost)
				}
			}
		})
	}
	wg.Wait()
	return int(allowed.Load())
}

// 10,000 requests are open at once on the budget of one organization. None is denied but for units, and all settle exactly.
func TestLevelsManyInFlight(t *testing.T) {
	const users, each = 100, 100
	b := newHoldBench(t, `
levels: [org, user, api_key]
rules: [{id: spend, key: levels, algorithm: fixed_window, levels: {org: 50000/1h, user: 500/1h, api_key: unlimited}}]
`, inMemory)
	clients := strings.Builder{}
	clients.WriteString(`{"client": "org:acme"}` + "\n")
	for u := range users {
		fmt.Fprintf(&clients, `{"client": "api_key:k%d", "parent": "user:%d"}`+"\n"+`{"client": "user:%d", "parent": "org:acme"}`+"\n", u, u, u)
	}
	b.InstallClients(engine.Clients{Directory: readClients(t, clients.String())})
	request := func(u int) rule.Request { return rule.Request{APIKey: fmt.Sprint("k", u), Cost: 5} }
	holds := make([]weir.HoldID, users*each)
	together := func(do func(i int)) {
		var wg sync.WaitGroup
		for caller := range 8 {
			wg.Go(func() {
				for i := caller; i < len(holds); i += 8 {
					do(i)
				}
			})
		}
		wg.Wait()
	}
	used := func(key string, want int64) {
		t.Helper()
		var v engine.Verdict
		if _, err := b.Standing(t.Context(), "spend", key, "", &v); err != nil || v.Results[0].Used() != want {
			t.Errorf("%s has used %d, want %d, %v", key, v.Results[0].Used(), want, err)
		}
	}
	together(func(i int) {
		req, v := request(i%users), new(engine.Verdict)
		if err := b.Reserve(t.Context(), &req, time.Minute, v); err != nil || !v.Allowed || v.Degraded != nil || v.Unheld {
			t.Errorf("reservation %d: allowed %v by %s, degraded %v, %v", i, v.Allowed, v.Name(v.Speaker()), v.Degraded, err)
		}
		holds[i] = v.Hold
	})
	used("org:acme", 50_000)
	if v := b.reserve(t, request(0), time.Minute); v.Allowed || v.Name(v.Speaker()) != "spend:org" {
		t.Errorf("one more is allowed, or denied by %s", v.Name(v.Speaker()))
	}
	together(func(i int) {
		if _, err := b.Settle(t.Context(), holds[i], engine.Units(2)); err != nil {
			t.Error(err)
		}
	})
	used("org:acme", 20_000)
	used("user:7", 200)
}

const budgets = `
levels: [org, team, user, api_key]
rules:
  - id: tokens
    key: levels
    unit: tokens
    levels: {org: 5000000/month, team: 500000/month, user: 20000/day}
`

// Two keys of a user share its day, the users of a team its month, and teams what their organization has
// (https://github.com/BerriAI/litellm/issues/11962).
func TestBudgetsOfTeams(t *testing.T) {
	var clients strings.Builder
	for user := range 120 {
		for key := range 2 {
			fmt.Fprintf(&clients, `{"client": "api_key:%d-%d", "parent": "user:%d"}`+"\n", user, key, user)
		}
		fmt.Fprintf(&clients, `{"client": "user:%d", "parent": "team:%d"}`+"\n", user, user/40)
	}
	for team := range 3 {
		fmt.Fprintf(&clients, `{"client": "team:%d", "parent": "org:acme"}`+"\n", team)
	}
	clients.WriteString(`{"client": "org:acme", "limits": {"tokens": "1400000/month"}}`)
	b := leveledBench(t, budgets, clients.String())
	request := func(user, key int) rule.Request {
		return rule.Request{APIKey: fmt.Sprintf("%d-%d", user, key), Costs: map[string]int64{"tokens": 1000}}
	}
	if got := allowedAtOnce(t, b, 100, func(i int) rule.Request { return request(0, i%2) }); got != 20_000 {
		t.Errorf("two keys of a user had %d, want 20000", got)
	}
	if got := allowedAtOnce(t, b, 2000, func(i int) rule.Request { return request(i%40, i%2) }); got != 480_000 {
		t.Errorf("the team had %d more, want 480000", got)
	}
	if got := allowedAtOnce(t, b, 6000, func(i int) rule.Request { return request(40+i%80, i%2) }); got != 900_000 {
		t.Errorf("the organization had %d more, want 900000", got)
	}
}

// The example of the guide.
func TestBudgetsExample(t *testing.T) {
	read := func(file string) string { return string(testkit.Must(os.ReadFile("../examples/" + file))(t)) }
	b := leveledBench(t, read("rules/budgets.yaml"), read("budgets.ndjson"))
	if _, idle := b.Clients(); idle != nil {
		t.Error(idle)
	}
	send := func(key, user string, requests int) int {
		return allowedAtOnce(t, b, requests, func(int) rule.Request {
			return rule.Request{APIKey: key, User: user, Costs: map[string]int64{"tokens": 1000}}
		})
	}
	if got := send("ann-key-2", "", 20); got != 5000 {
		t.Errorf("ann's second key had %d", got)
	}
	if got := send("ann-key-1", "", 30); got != 15_000 {
		t.Errorf("ann's first key had %d of the 15000 that are left", got)
	}
	if got := send("", "bob", 100); got != 30_000 {
		t.Errorf("bob had %d of the 30000 that his team has left in this minute", got)
	}
	if got := limitsIn(b.check(t, rule.Request{User: "bob", Path: "/v1/reports/q"})); !strings.Contains(got, "tokens org:acme 9000000/month starts 15 in Europe/Berlin") || !strings.Contains(got, "tokens user:bob 100000/1d") || !strings.Contains(got, "reports org:acme 1000/1d") {
		t.Errorf("bob has %s", got)
	}
}

// A team's limit holds for its keys together, whatever each has itself
// (https://github.com/BerriAI/litellm/issues/17054).
func TestKeysWithinATeam(t *testing.T) {
	b := leveledBench(t, strings.Replace(budgets, "user: 20000/day", "api_key: {limits: [100000/month]}", 1), `
{"client": "api_key:a", "parent": "team:x", "limits": {"tokens": "400000/month"}}
{"client": "api_key:b", "parent": "team:x", "limits": {"tokens": "unlimited"}}
{"client": "api_key:c", "parent": "team:x"}
{"client": "team:x"}
`)
	send := func(n int, keys ...string) int {
		return allowedAtOnce(t, b, n, func(i int) rule.Request {
			return rule.Request{APIKey: keys[i%len(keys)], Costs: map[string]int64{"tokens": 5000}}
		})
	}
	if got := send(200, "a"); got != 400_000 {
		t.Errorf("the key with its own limit had %d", got)
	}
	if got := send(600, "b", "c"); got != 100_000 {
		t.Errorf("the others had %d of the 100000 that the team has left", got)
	}
}

// A limit of an organization and one of each of its users, one counter each, in one rule; the application names both
// (https://github.com/Kuadrant/limitador/issues/513).
func TestLevelsOfTheApplication(t *testing.T) {
	b := newBench(t, `
levels: [org, user]
rules: [{id: api, key: levels, algorithm: sliding_log, levels: {org: 100/1h, user: 30/1h}}]
`, nil)
	of := func(i int) rule.Request {
		return rule.Request{User: fmt.Sprint(i % 5), Attributes: map[string]string{"org": "acme"}}
	}
	if got := allowedAtOnce(t, b, 40, func(int) rule.Request { return of(0) }); got != 30 {
		t.Errorf("one user had %d", got)
	}
	if got := allowedAtOnce(t, b, 1000, of); got != 70 {
		t.Errorf("all had %d more", got)
	}
	b.check(t, rule.Request{User: "9", Attributes: map[string]string{"org": "other"}})
	if v := b.check(t, of(4)); v.Allowed || v.Name(v.Speaker()) != "api:org" {
		t.Errorf("it is %v by %s", v.Allowed, v.Name(v.Speaker()))
	}
}
