package engine_test

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// vendor is a language model behind a gate, with a rule that is shared by a team.
type vendor struct {
	t      *testing.T
	engine *engine.Engine
	gate   *engine.Gate
	rule   *rule.Entry
	store  *memory.Store
	losing *losableHolds
	now    weir.Micros

	log      strings.Builder
	capped   int              // holds
	overruns int              // settled holds that used more than they had reserved
	spent    map[string]int64 // by key
	requests int              // that have spent it
}

// ObserveSpend implements engine.SpendObserver.
func (v *vendor) ObserveSpend(s engine.Spend) {
	v.spent[s.Key] += s.Units
	if !s.More {
		v.requests++
	}
}

// Observe implements engine.Observer.
func (v *vendor) Observe(*rule.Request, *engine.Verdict, time.Duration) {}

// ObserveHold implements engine.HoldObserver.
func (v *vendor) ObserveHold(e engine.HoldEvent) {
	if e.Kind == engine.CappedHold {
		v.capped++
	}
	for _, p := range e.Parts {
		if e.Kind == engine.SettledHold && p.Used > p.Reserved {
			v.overruns++
		}
	}
}

const vendorPrices = `{"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-5},
	"short": {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-5, "max_output_tokens": 1000}}`

func newVendor(t *testing.T, tokens string) *vendor {
	t.Helper()
	return newVendorOf(t, `rules: [{id: team, key: attr:team, limit: 25usd/day, tokens: {price: usd, `+tokens+`}}]`)
}

func newVendorOf(t *testing.T, rules string) *vendor {
	t.Helper()
	v := &vendor{t: t, now: 1_800_000_000_000_000, spent: map[string]int64{}}
	clock := func() weir.Micros { return v.now }
	v.store = memory.New(memory.Options{Clock: clock})
	v.losing = &losableHolds{HoldStore: v.store}
	var err error
	if v.engine, err = engine.New(engine.Options{Store: v.losing, Clock: clock, Observers: []engine.Observer{v}, Logger: slog.New(slog.NewTextHandler(&v.log, nil))}); err != nil {
		t.Fatal(err)
	}
	if v.gate, err = engine.NewGate(v.engine, 0, nil); err != nil {
		t.Fatal(err)
	}
	prices := new(rule.Prices)
	if err := prices.Read("prices.json", strings.NewReader(vendorPrices)); err != nil {
		t.Fatal(err)
	}
	set, problems := rule.Parse("", []byte(rules))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{Prices: prices})
	if err != nil {
		t.Fatal(err)
	}
	v.rule = table.Rules()[0]
	v.engine.Install(table, 1)
	return v
}

// call is a request that is allowed.
type call struct {
	request  rule.Request
	verdict  engine.Verdict
	reserved int64
	hold     *engine.Hold
}

// call asks for an answer; it is nil if that is denied.
func (v *vendor) call(team, user, model string, longest int64) *call {
	v.t.Helper()
	c := &call{request: rule.Request{User: user, Attributes: map[string]string{"team": team}, Prompt: &rule.Prompt{Model: model, Input: 100, MaxOutput: longest}}}
	var d engine.Denial
	ok, err := v.gate.Reserve(v.t.Context(), &c.request, weir.MaxHoldTTL, &c.verdict, &d)
	if err != nil {
		v.t.Fatal(err)
	}
	if !ok {
		return nil
	}
	c.reserved = c.verdict.Results[0].Cost
	c.hold = v.gate.Serve(&c.request, weir.MaxHoldTTL, &c.verdict)
	return c
}

// answer ends a call, and returns what it cost.
func (v *vendor) answer(c *call, resp rule.Response) int64 {
	v.t.Helper()
	v.now = v.now.Add(time.Millisecond)
	if err := c.hold.End(&resp, nil); err != nil {
		v.t.Fatal(err)
	}
	cost, _ := v.rule.TokenCost(c.request.Prompt.Model, *resp.Tokens)
	return cost
}

func tokens(n int64) rule.Response {
	return rule.Response{Status: 200, Tokens: &rule.Usage{Input: 100, Output: n}}
}

// teach lets some users have answers.
func (v *vendor) teach(team string, users, n int, length func() int64) {
	v.t.Helper()
	for i := range n {
		c := v.call(team, fmt.Sprint("user", i%users), "m", 20_000)
		if c == nil {
			v.t.Fatal("a request is denied")
		}
		v.answer(c, tokens(length()))
		v.now = v.now.Add(time.Hour)
	}
}

// expects is what the next call reserves for its answer.
func (v *vendor) expects(team string) int64 {
	v.t.Helper()
	c := v.call(team, "user0", "m", 20_000)
	if c == nil {
		v.t.Fatal("a request is denied")
	}
	defer v.answer(c, rule.Response{Status: 500, Tokens: &rule.Usage{}})
	return (c.reserved - 100) / 10
}

func (v *vendor) learned() []engine.Learned { return slices.Collect(v.engine.Learned()) }

// A rule reserves all that a request may use, until it knows answers of several clients; then as many tokens as most
// of those had. What teaches nothing are errors, other models, and one client alone.
func TestLearn(t *testing.T) {
	v := newVendor(t, "reserve: {output: p95}")
	length := int64(0)
	next := func() int64 { length++; return 1000 + length%100 }
	check := func(what string, least, most int64) {
		t.Helper()
		if got := v.expects("a"); got < least || got > most {
			t.Errorf("%s: %d tokens are reserved", what, got)
		}
	}
	check("at first", 20_000, 20_000)
	v.teach("a", 1, 600, next)
	check("one client", 20_000, 20_000)
	v.teach("a", 3, 600, next)
	check("three clients", 20_000, 20_000)
	v.teach("a", 8, 600, next)
	check("eight clients", 1090, 1160)
	v.teach("b", 8, 100, next) // another client of the rule knows the same
	if got := v.expects("b"); got > 1160 {
		t.Error(got)
	}
	for i := range 200 {
		c := v.call("a", fmt.Sprint("user", i%8), "m", 20_000)
		v.answer(c, rule.Response{Status: 503, Tokens: &rule.Usage{Output: 1000 * int64(i%20)}})
		c = v.call("a", "user1", "m", 20_000)
		v.answer(c, rule.Response{Status: 200, Tokens: &rule.Usage{Input: 100, Output: 1}})
		v.now = v.now.Add(time.Hour)
	}
	check("one client has short answers", 1080, 1160)
	for range 4 {
		cut := tokens(1160)
		cut.Cut = true
		v.answer(v.call("a", "user1", "m", 20_000), cut)
	}
	check("answers are cut", 2320, 2500)
	if c := v.call("a", "user1", "m", 500); c.reserved != 5100 {
		t.Errorf("a shorter answer reserves %d", c.reserved)
	}
}

// A rule that cuts answers does not teach others that answers are short.
func TestLearnCutByOthers(t *testing.T) {
	v := newVendorOf(t, `rules:
  - {id: company, key: global, limit: 1000usd/day, tokens: {price: usd, reserve: {output: p95}}}
  - {id: mine, key: user, limit: 1usd/day, tokens: {price: usd, reserve: {output: 20}, on_overrun: cut}}`)
	answer := func(user int, length int64) {
		c := v.call("a", fmt.Sprint("user", user), "m", 20_000)
		resp := tokens(length)
		if resp.Cut = length < 2000; resp.Cut {
			resp.Unfinished = true
			c.hold.Reach(0, 100+10*length)
		}
		v.answer(c, resp)
	}
	for n := range 200 {
		answer(n, 2000)
	}
	before := v.expects("a")
	for n := range 600 {
		answer(n, 40)
	}
	if got := v.expects("a"); before > 2200 || got < before {
		t.Errorf("%d tokens are reserved, and %d before", got, before)
	}
}

// Who is a client is as the rule's key says, if there is no user: keys behind one address are several clients, and one key that comes from
// several addresses, with API keys that nobody knows, is one.
func TestLearnClientsOfTheKey(t *testing.T) {
	v := newVendorOf(t, `rules: [{id: key, key: attr:key, limit: 2500usd/day, tokens: {price: usd, reserve: {output: p95}}}]`)
	ask := func(key, from, unknown string, length int64) int64 {
		t.Helper()
		c := call{request: rule.Request{IP: netip.MustParseAddr(from), APIKey: unknown, Attributes: map[string]string{"key": key}, Prompt: &rule.Prompt{Model: "m", Input: 100, MaxOutput: 20_000}}}
		var d engine.Denial
		if ok, err := v.gate.Reserve(t.Context(), &c.request, weir.MaxHoldTTL, &c.verdict, &d); !ok || err != nil {
			t.Fatal(ok, err)
		}
		c.hold = v.gate.Serve(&c.request, weir.MaxHoldTTL, &c.verdict)
		v.answer(&c, tokens(length))
		return (c.verdict.Results[0].Cost - 100) / 10
	}
	for n := range 600 {
		ask(fmt.Sprint("key", n%10), "198.51.100.7", "", 2000)
	}
	if got := ask("key1", "198.51.100.7", "", 2000); got > 2200 {
		t.Errorf("keys behind one address: %d tokens are reserved", got)
	}
	for n := range 3000 {
		ask("hostile", fmt.Sprintf("2001:db8:%x::1", n%200), fmt.Sprint("invented", n), 1)
		if n%10 == 0 {
			ask(fmt.Sprint("key", n/10%10), "198.51.100.7", "", 2000)
		}
	}
	if got := ask("key1", "198.51.100.7", "", 2000); got < 2000 {
		t.Errorf("one key from several networks: %d tokens are reserved", got)
	}
}

// The models that clients name take no more than a fixed amount of memory, and those in use stay known.
func TestLearnManyModels(t *testing.T) {
	v := newVendor(t, "reserve: {output: p50}")
	set, _ := rule.Parse("", []byte(`rules: [{id: team, key: attr:team, limit: 1000000000/1d, tokens: {reserve: {output: p50}}}]`))
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v.engine.Install(table, 2)
	v.rule = table.Rules()[0]
	v.teach("a", 8, 100, func() int64 { return 1000 })
	for n := range 3000 {
		v.answer(v.call("a", "eve", fmt.Sprint("model", n), 20_000), tokens(1))
		if n%100 == 0 {
			v.answer(v.call("a", "user1", "m", 20_000), tokens(1000))
			v.now = v.now.Add(24 * time.Hour)
		}
	}
	if c := v.call("a", "user1", "m", 20_000); c.reserved > 1200 {
		t.Errorf("%d are reserved", c.reserved)
	}
}

// Usage that cannot be true is charged up to a bound: four times the model's maximum for each answer, or 10 million tokens. It is
// in the log once for each rule and model in an hour, in an event each time, and teaches nothing.
func TestImplausibleUsage(t *testing.T) {
	v := newVendor(t, "reserve: {output: p95}")
	v.teach("a", 8, 200, func() int64 { return 1000 })
	before := v.expects("b")
	v.log.Reset()
	const huge = 1 << 40
	for i, c := range []struct {
		model string
		said  rule.Usage
		want  int64 // in micro-dollars
	}{
		{"m", rule.Usage{Input: 10_000_000, Output: 10_000_000}, 110 * dollars},
		{"m", rule.Usage{Input: 100, Output: huge, Reasoning: huge}, 100 + 100*dollars},
		{"m", rule.Usage{Input: huge, Cached: huge, Output: 1}, 10*dollars + 10},
		{"short", rule.Usage{Input: 100, Output: 4000}, 100 + 40_000},
		{"short", rule.Usage{Input: 100, Output: huge}, 100 + 40_000},
		{"m", rule.Usage{Input: -huge, Output: -1}, 0},
	} {
		team, capped := fmt.Sprint("team", i), v.capped
		call := v.call(team, "user1", c.model, 2000)
		spent := v.spent["attr:team:"+team]
		said := c.said
		if err := call.hold.End(&rule.Response{Status: 200, Tokens: &said}, nil); err != nil {
			t.Fatal(err)
		}
		if got := v.spent["attr:team:"+team] - spent; got != c.want {
			t.Errorf("%s, %+v: %d are charged, want %d", c.model, c.said, got, c.want)
		}
		if got := v.capped - capped; (got == 1) != (c.said.Output == huge || c.said.Input == huge) {
			t.Errorf("%s, %+v: %d events", c.model, c.said, got)
		}
	}
	if n := strings.Count(v.log.String(), "more usage than is plausible"); n != 2 {
		t.Errorf("%d lines in the log:\n%s", n, v.log.String())
	}
	v.now = v.now.Add(2 * time.Hour)
	v.answer(v.call("z", "user1", "m", 2000), tokens(huge))
	for n := range 1000 {
		v.answer(v.call(fmt.Sprint("z", n), "user1", "m", 2000), tokens(huge))
	}
	if n := strings.Count(v.log.String(), "more usage than is plausible"); n != 3 {
		t.Errorf("%d lines in the log", n)
	}
	if got := v.expects("c"); got != before {
		t.Errorf("%d tokens are reserved, and %d before", got, before)
	}
}

// What one engine has learned, another one can take over: after a restart, or beside the first. Twice is as good as once, and both
// add up. What is damaged, and what no rule asks for, changes nothing.
func TestLearnFromOthers(t *testing.T) {
	a, b := newVendor(t, "reserve: {output: p95}"), newVendor(t, "reserve: {output: p95}")
	a.teach("a", 8, 600, func() int64 { return 1000 })
	b.now = a.now
	take := func(from, to *vendor) {
		t.Helper()
		for l := range from.engine.Learned() {
			if err := to.engine.Learn(l); err != nil {
				t.Fatal(err)
			}
		}
	}
	take(a, b)
	if got, want := b.expects("b"), a.expects("b"); got != want || got > 1100 {
		t.Errorf("%d tokens are reserved, and %d by the first", got, want)
	}
	take(a, b)
	if got, want := b.learned(), a.learned(); len(got) != 1 || got[0].Model != "m" || string(got[0].Data) != string(want[0].Data) {
		t.Error("both know something else")
	}
	b.teach("c", 8, 5, func() int64 { return 4000 }) // four of the last 64 are enough
	a.now = b.now
	take(b, a)
	if got := a.expects("d"); got < 4000 {
		t.Errorf("the first still reserves %d", got)
	}
	one := a.learned()[0]
	one.Model = "n"
	if err := b.engine.Learn(engine.Learned{Rule: one.Rule, Model: "n", Data: one.Data[:len(one.Data)-1]}); err == nil {
		t.Error("damaged data is taken")
	}
	if got := len(b.learned()); got != 1 {
		t.Errorf("%d models are known", got)
	}
	for _, rules := range []string{`rules: [{id: other, key: attr:team, limit: 25usd/day, tokens: {price: usd, reserve: {output: p95}}}]`, `rules: [{id: team, key: attr:team, limit: 25usd/day, tokens: {price: usd}}]`} {
		c := newVendorOf(t, rules)
		c.now = a.now
		take(a, c)
		if len(c.learned()) > 0 {
			t.Errorf("%s has learned", rules)
		}
	}
}

// Requests do not wait until all that was learned is written, and who needs only what is known best takes no more.
func TestLearnedIsReadInParts(t *testing.T) {
	v := newVendorOf(t, `rules: [{id: team, key: attr:team, limit: 1000000000/1d, tokens: {reserve: {output: p50}}}]`)
	for _, m := range []string{"a", "b", "c"} {
		for n := range 100 + 20*int(m[0]-'a') {
			v.answer(v.call("a", fmt.Sprint("user", n%8), m, 20_000), tokens(1000))
		}
	}
	var models string
	for l := range v.engine.Learned() {
		if models += l.Model; len(models) == 2 {
			break
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			v.answer(v.call("a", "user1", "d", 20_000), tokens(1000))
		}()
		select {
		case <-served:
		case <-time.After(time.Minute):
			t.Fatal("a request waits for what was learned")
		}
	}
	if models != "cb" {
		t.Errorf("what is known best is %s", models)
	}
}

// However many keys an organization has, it cannot lower what others reserve, nor can those who invent keys: all that the
// directory does not know count as one organization.
func TestLearnManyKeys(t *testing.T) {
	for name, user := range map[string]string{"of one organization": "key%d", "invented": "invented%d"} {
		v := newVendor(t, "reserve: {output: p95}")
		var clients strings.Builder
		for n := range 1000 {
			fmt.Fprintf(&clients, `{"client": "user:key%d", "parent": "org:hostile"}`+"\n", n)
		}
		for n := range 8 {
			fmt.Fprintf(&clients, `{"client": "user:user%d", "parent": "org:acme%d"}`+"\n"+`{"client": "org:acme%d"}`+"\n", n, n, n)
		}
		clients.WriteString(`{"client": "org:hostile"}` + "\n")
		v.engine.InstallClients(engine.Clients{Directory: readClients(t, clients.String())})
		v.teach("a", 8, 600, func() int64 { return 1000 })
		for n := range 5000 {
			v.answer(v.call(fmt.Sprint("b", n), fmt.Sprintf(user, n%1000), "m", 20_000), tokens(1))
			if n%20 == 0 {
				v.answer(v.call(fmt.Sprint("c", n), fmt.Sprint("user", n/20%8), "m", 20_000), tokens(1000))
			}
		}
		if got := v.expects("d"); got < 1000 {
			t.Errorf("%s: %d tokens are reserved", name, got)
		}
	}
}

// agents are the load of a team whose answers have a tenth of what they ask for: each agent asks for the next
// answer when it has one, and does something else for as long if a request is denied.
type agents struct {
	*vendor
	random *rand.Rand
	times  int64 // how much longer answers are than usual

	offered, spent, requests, allowed int64
	bound                             int64 // the highest that was told
}

const (
	inFlight = 100
	dollars  = 1_000_000
	longest  = 20_000
)

// length is how long an answer is: 2,000 tokens in the mean.
func (a *agents) length() int64 {
	return min(longest, a.times*int64(2000*math.Exp(0.5*a.random.NormFloat64()-0.125)))
}

// run lets the agents work until they have asked for answers of so many dollars. It returns when all have theirs.
func (a *agents) run(team string, until int64, changed func()) {
	type agent struct {
		call   *call
		length int64
		free   int64
	}
	all := make([]agent, inFlight)
	end := func(i int) {
		if c := all[i].call; c != nil {
			a.spent += a.answer(c, tokens(all[i].length))
			all[i].call = nil
		}
	}
	for a.offered < until {
		next := 0
		for i := range all {
			if all[i].free < all[next].free {
				next = i
			}
		}
		end(next)
		changed()
		n := a.length()
		cost, _ := a.rule.TokenCost("m", *tokens(n).Tokens)
		a.offered, a.requests = a.offered+cost, a.requests+1
		all[next] = agent{a.call(team, fmt.Sprint("agent", next), "m", longest), n, all[next].free + n}
		if all[next].call != nil {
			a.allowed++
		}
		for _, r := range a.engine.Reserved() {
			a.bound = max(a.bound, r.Excess)
		}
	}
	for i := range all {
		end(i)
	}
}

// The figures of the guide: 100 agents share 25 dollars a day, and answers have a tenth of max_tokens. Then the
// vendor's answers become five times longer at once.
func TestAgents(t *testing.T) {
	guide, err := os.ReadFile("../docs/guides/dollars.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reserve          string
		longer           bool
		least, overspent float64
	}{
		{"max", false, 0, 0}, {"p95", false, 0.9, 0.02}, {"p99", false, 0.85, 0.02}, {"max", true, 0, 0}, {"p95", true, 0, 1},
	} {
		a := &agents{vendor: newVendor(t, "reserve: {output: "+c.reserve+"}"), random: rand.New(rand.NewPCG(1, 2)), times: 1}
		a.teach("before", 20, 600, a.length)
		change := func() {
			if c.longer && a.spent > 12*dollars {
				a.times = 5
			}
		}
		a.run("team", 25*dollars, change)
		used := float64(a.spent) / (25 * dollars)
		a.run("team", 75*dollars, change)
		overspent := max(0, float64(a.spent)/(25*dollars)-1)
		row := fmt.Sprintf("| `%s` | %s | %.2f | %.1f %% | %.2f |", c.reserve, map[bool]string{false: "as before", true: "five times longer"}[c.longer], used, 100*overspent, float64(a.bound)/dollars)
		t.Log(row, a.requests, a.allowed)
		if used < c.least || overspent > c.overspent || max(0, a.spent-25*dollars) > a.bound {
			t.Errorf("%s: %+v", row, c)
		}
		if !strings.Contains(string(guide), row) {
			t.Errorf("the guide does not have %s", row)
		}
	}
}
