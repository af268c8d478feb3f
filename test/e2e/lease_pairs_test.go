package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// pairs are two instances with leases, beside everything else that has a say in a decision.
type pairs struct {
	t    *testing.T
	c    *http.Client
	all  []*process
	said []checked // by the last spread
}

// checked is what a check answers.
type checked struct {
	Allowed, Degraded bool
	Reason            string
	Results           []struct {
		Rule    string
		Allowed bool
	}
}

func (p *pairs) check(of *process, request string) (got checked) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(ask(p.t, p.c, "POST", of.URL+"/v1/check", request).Text), &got); err != nil {
		p.t.Fatal(err)
	}
	return got
}

// spread sends so many requests to the instances in turns, and returns how many were allowed.
func (p *pairs) spread(n int, request string) (allowed int) {
	p.t.Helper()
	p.said = nil
	for i := range n {
		got := p.check(p.all[i%len(p.all)], request)
		p.said = append(p.said, got)
		if got.Allowed {
			allowed++
		}
	}
	return allowed
}

// sum adds up a series of all instances; it is 0 where there is none yet.
func (p *pairs) sum(name string) (n int) {
	p.t.Helper()
	for _, one := range p.all {
		if strings.Contains(ask(p.t, p.c, "GET", one.URL+"/metrics", "").Text, "\n"+name+" ") {
			n += series(p.t, p.c, one, name)
		}
	}
	return n
}

func decisions(how, rule string) string {
	return fmt.Sprintf(`weir_lease_decisions_total{how=%q,rule=%q}`, how, rule)
}

// lost is how many units of a rule were lost because an instance stood still.
func (p *pairs) lost(rule string) int {
	return p.sum(fmt.Sprintf(`weir_lease_units_lost_total{rule=%q}`, rule))
}

// within fails unless nearly all of the limit of a rule was allowed, never more, and most of it locally.
func (p *pairs) within(what, rule string, allowed, limit, local int) {
	p.t.Helper()
	if lost := p.lost(rule); allowed > limit || allowed+lost < limit*19/20 {
		p.t.Errorf("%s: %d were allowed under %d, %d units lost", what, allowed, limit, lost)
	}
	if local < limit/3 {
		p.t.Errorf("%s: %d of %d were allowed locally", what, local, limit)
	}
}

// Leases beside shadow rules, shares, lists, clients of a directory, responses that count, overrides, resets, Envoy's service, RESP, and in
// the end without Redis.
func TestLeasesBesideOthers(t *testing.T) {
	t.Parallel() // see leasing
	redis := testredis.Start(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "none" {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(upstream.Close)
	config := t.TempDir()
	write(t, config, "edge.yaml", "domain: edge\ndescriptors:\n  - key: remote_address\n    rate_limit: {unit: year, requests_per_unit: 600}\n")
	clients := write(t, config, "clients.ndjson", `{"client": "user:dora", "limits": {"dir": "600/1d"}}`+"\n")
	one := func(id, more string) string {
		return fmt.Sprintf("  - {id: %s, match: {path: /%[1]s}, key: user, algorithm: sliding_log, lease: 5s, %s}\n", id, more)
	}
	rules := "block: {ip: [192.0.2.66]}\nexempt: {ip: [192.0.2.77]}\nrules:\n  - {id: warm, match: {path: /warm}, key: global, limit: 10000000/1h}\n" +
		one("real", "limit: 2000/1d") + strings.Replace(one("trial", "limit: 600/1d, mode: shadow"), "/trial", "/real", 1) +
		one("share", "limit: 1000/1d, shares: {low: 60%}") + one("lists", "limit: 600/1d") + one("dir", "limit: 2000/1d") +
		one("over", "limit: 10000/1d") + strings.Replace(one("failed", "limit: 1000/1d, count: {status: [404]}"), "key: user", "key: global", 1) +
		strings.ReplaceAll(one("reset", "limit: 1000/1d")+one("open", "limit: 1000/1d, on_failure: open")+one("closed", "limit: 1000/1d, on_failure: closed")+
			one("local", "limit: 1000/1d, on_failure: {local: 1h, limit: 5/1d, then: closed}"), "lease: 5s", "lease: 1h") // which outlasts the test
	c := client(t)
	p := &pairs{t: t, c: c, all: leasing(t, c, 2, rules, "gateway", "--listen", "127.0.0.1:0", "--upstream", upstream.URL, "--store", "redis://"+redis.Addr+"?timeout=10s", "--lease", "1s",
		"--clients", clients, "--envoy-config", config, "--resp", "127.0.0.1:0")}

	// A shadow rule denies nothing, and is never exceeded, either.
	if n := p.spread(1500, `{"user": "sue", "path": "/real"}`) + p.lost("real"); n < 1500 {
		t.Errorf("%d of 1500 requests within the limit were allowed beside a shadow rule", n)
	}
	would := 0
	for _, v := range p.said {
		for _, r := range v.Results {
			if r.Rule == "trial" && r.Allowed {
				would++
			}
		}
	}
	p.within("a shadow rule", "trial", would, 600, p.sum(decisions("local", "trial")))

	p.page("trial")

	// Less important requests leave units for others, which get all of them.
	low := p.spread(1000, `{"user": "sid", "path": "/share", "priority": "low"}`)
	p.within("low priority", "share", low, 600, p.sum(decisions("local", "share")))
	rest := p.spread(1000, `{"user": "sid", "path": "/share", "priority": "high"}`)
	p.within("all priorities", "share", low+rest, 1000, p.sum(decisions("local", "share")))

	p.lists()

	// A client of the directory has its own limit.
	p.within("a limit of its own", "dir", p.spread(1000, `{"user": "dora", "path": "/dir"}`), 600, p.sum(decisions("local", "dir")))
	p.responses()
	p.overrides()
	p.resets()
	p.envoy()
	p.resp()
	p.failures(redis)
}

// page looks at what a rule with leases, and one without, say of these in the dashboard.
func (p *pairs) page(rule string) {
	b := openBrowser(p.t)
	page := b.open(p.all[0].URL, "#/rules/view/"+rule)
	page.see(id("rule-leases"), "Decided by leased units, without asking Redis")
	page.see(id("rule-leases"), "on lease now")
	other := b.open(p.all[0].URL, "#/rules/view/open")
	other.see(id("rule-facts"), "1000/1d")
	if n := other.count(id("rule-leases")); n != 0 {
		p.t.Error("a rule that nobody has asked for says something of leases")
	}
}

// What is on a list is decided before units are asked for, or spent.
func (p *pairs) lists() {
	const blocked, exempt, other = `{"user": "lis", "path": "/lists", "ip": "192.0.2.66"}`, `{"user": "lis", "path": "/lists", "ip": "192.0.2.77"}`, `{"user": "lis", "path": "/lists", "ip": "192.0.2.5"}`
	if n := p.spread(100, blocked); n != 0 {
		p.t.Errorf("%d requests of a blocked client were allowed", n)
	}
	if n := p.spread(1000, exempt); n != 1000 {
		p.t.Errorf("%d of 1000 requests of an exempt client were allowed", n)
	}
	if n := p.sum(decisions("asked", "lists")) + p.sum(decisions("local", "lists")); n != 0 {
		p.t.Errorf("%d requests of clients on lists were counted", n)
	}
	p.spread(300, other)
	if a := ask(p.t, p.c, "PUT", p.all[0].URL+"/v1/block?ip=192.0.2.5", ""); a.Status != 200 {
		p.t.Fatal(a.Text)
	}
	if v := p.check(p.all[0], other); v.Allowed || v.Reason != "blocked" {
		p.t.Errorf("a client that was blocked while units of it are leased: %+v", v)
	}
}

// A lowered limit reaches all who hold units of the former one, and so does its end.
func (p *pairs) overrides() {
	const request = `{"user": "oto", "path": "/over"}`
	if n := p.spread(400, request); n != 400 {
		p.t.Errorf("%d of 400 were allowed", n)
	}
	if p.sum(decisions("local", "over")) == 0 {
		p.t.Error("nothing was leased before the override")
	}
	a := ask(p.t, p.c, "POST", p.all[0].URL+"/v1/overrides", `{"rule": "over", "key": "user:oto", "limit": "100/1d", "for": "1h", "reason": "test"}`)
	var made overridden
	if err := json.Unmarshal([]byte(a.Text), &made); err != nil || made.State != "active" {
		p.t.Fatal(a.Text)
	}
	more := 0 // before the other instance knows
	waitFor(p.t, "the lowered limit", func() bool { n := p.spread(20, request); more += n; return n == 0 })
	if more > 5000 {
		p.t.Errorf("%d were allowed although the limit was lowered", more)
	}
	waitFor(p.t, "what is leased under the former limit is returned", func() bool { return p.sum(`weir_lease_units{rule="over"}`) == 0 })
	if n := p.spread(100, request); n != 0 {
		p.t.Errorf("%d were allowed beyond a lowered limit", n)
	}
	if a := ask(p.t, p.c, "DELETE", p.all[1].URL+"/v1/overrides/"+made.ID, ""); a.Status != 200 {
		p.t.Fatal(a.Text)
	}
	waitFor(p.t, "the end of the override", func() bool { return p.spread(20, request) == 20 })
}

// A reset clears the usage, and not what is on lease.
func (p *pairs) resets() {
	const request, key = `{"user": "ria", "path": "/reset"}`, "/v1/keys?key=user:ria&rule=reset"
	if n := p.spread(700, request); n != 700 {
		p.t.Errorf("%d of 700 were allowed", n)
	}
	held := series(p.t, p.c, p.all[1], `weir_lease_units{rule="reset"}`)
	if a := ask(p.t, p.c, "DELETE", p.all[0].URL+key, ""); a.Status != 200 {
		p.t.Fatal(a.Text)
	}
	var now struct {
		Results []struct{ Limit, Remaining, Leased int }
	}
	if err := json.Unmarshal([]byte(ask(p.t, p.c, "GET", p.all[0].URL+key, "").Text), &now); err != nil || len(now.Results) != 1 {
		p.t.Fatal(err, now)
	}
	if r := now.Results[0]; r.Leased < held || r.Limit-r.Remaining-r.Leased > 200 {
		p.t.Errorf("after a reset: %+v; the other instance held %d", r, held)
	}
	// What was spent before and not yet reported is charged after the reset: less than half, as each message asks for as much as was used.
	if n := p.spread(2000, request); n > 1000 || n < 650 {
		p.t.Errorf("%d were allowed under 1000 after a reset", n)
	}
}

// The gateway reserves leased units, and settles them by the response: of two requests, one counts.
func (p *pairs) responses() {
	var counted, denied int
	for i := range 3000 {
		path := []string{"/failed", "/failed?none"}[i%2]
		switch a := ask(p.t, p.c, "GET", p.all[i/2%2].Gateway+path, ""); a.Status {
		case http.StatusNotFound:
			counted++
		case http.StatusTooManyRequests:
			denied++
		}
	}
	if denied == 0 {
		p.t.Error("nothing was denied")
	}
	p.within("responses", "failed", counted, 1000, p.sum(decisions("local", "failed"))/2)
}

// Envoy's service decides by leases, too.
func (p *pairs) envoy() {
	before, ok := p.sum(localChecks), 0
	of := []*envoy{newEnvoy(p.t, p.all[0]), newEnvoy(p.t, p.all[1])}
	for i := range 1000 {
		if of[i%2].ask("remote_address=192.0.2.1") == "OK" {
			ok++
		}
	}
	p.within("Envoy", "@envoy", ok, 600, p.sum(localChecks)-before)
}

// So do commands of Redis clients.
func (p *pairs) resp() {
	before, ok := p.sum(localChecks), 0
	var servers []*bufio.ReadWriter
	for _, one := range p.all {
		conn, err := net.Dial("tcp", one.RESP)
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { conn.Close() })
		servers = append(servers, bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn)))
	}
	for i := range 1000 {
		s := servers[i%2]
		for _, part := range strings.Fields("*5 $11 CL.THROTTLE $3 ray $3 599 $3 600 $8 31536000") {
			s.WriteString(part + "\r\n")
		}
		s.Flush()
		var lines [6]string
		for j := range lines {
			line, err := s.ReadString('\n')
			if err != nil && err != io.EOF || !strings.HasPrefix(line, ":") && line != "*5\r\n" {
				p.t.Fatal(line, err)
			}
			lines[j] = line
		}
		if lines[1] == ":0\r\n" {
			ok++
		}
	}
	p.within("RESP", "@resp", ok, 600, p.sum(localChecks)-before)
}

// While Redis is unavailable, what is held is spent, and is not degraded. Then on_failure of each rule applies.
func (p *pairs) failures(redis *testredis.Server) {
	request := func(rule string) string { return fmt.Sprintf(`{"user": "fay", "path": "/%s"}`, rule) }
	all := []string{"open", "closed", "local"}
	for _, rule := range all {
		p.spread(200, request(rule))
	}
	redis.Kill()
	for _, rule := range all {
		held, degraded := 0, map[bool]int{}
		for range 600 {
			switch v := p.check(p.all[0], request(rule)); {
			case v.Degraded:
				degraded[v.Allowed]++
			case v.Allowed && len(degraded) == 0:
				held++
			default:
				p.t.Fatalf("%s: after %d and %v: %+v", rule, held, degraded, v)
			}
		}
		if held == 0 || held > 500 {
			p.t.Errorf("%s: %d were allowed by what was held", rule, held)
		}
		rest := 600 - held
		if want := map[string]int{"open": rest, "closed": 0, "local": 5}[rule]; degraded[true] != want || degraded[false] != rest-want {
			p.t.Errorf("%s: %d held, then %v", rule, held, degraded)
		}
	}
}
