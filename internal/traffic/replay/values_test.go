package replay

import (
	"fmt"
	"strings"
	"testing"
)

// Rules find in a log what they are keyed by.
func TestKeys(t *testing.T) {
	fields := Fields{
		Headers:    map[string]string{"x-tenant": "tenant"},
		Cookies:    map[string]string{"sid": "session"},
		Attributes: map[string]string{"action": "do"},
	}
	for _, c := range []struct{ key, line, want string }{
		{"header:X-Tenant", `"tenant":"t1"`, "header:X-Tenant:t1"},
		{"header:User-Agent", `"user_agent":"curl"`, "header:User-Agent:curl"},
		{"header:Referer", `"http_referer":"r"`, "header:Referer:r"},
		{"cookie:sid", `"session":"s3cret"`, "cookie:sid:s3cret"},
		{"query:q", `"path":"/a?%71=x%20y&q=z"`, "query:q:x y"},
		{"query:q", `"path":"/a?p=1&q=a+b"`, "query:q:a b"},
		{"query:q", `"path":"/a?q=%zz"`, "query:q:%zz"},
		{"attr:action", `"do":"post"`, "attr:action:post"},
		{"user", `"user":"alice"`, "user:alice"},
		{"api_key", `"api_key":"s3cret"`, "api_key:s3cret"},
		{"ip", `"ip":"2001:db8::5"`, "ip:2001:db8::/64"},
		{"[user, ip]", `"ip":"192.0.2.1:80","user":"alice"`, "user:alice|ip:192.0.2.1"},
	} {
		table := compile(t, "rules:\n  - id: a\n    algorithm: fixed_window\n    limit: 1/1h\n    key: "+c.key)
		log := strings.Repeat(fmt.Sprintf("{\"time\":1794736800,%s}\n", c.line), 2) + "{\"time\":1794736801,\"other\":1}\n"
		r := run(t, Options{Table: table, Fields: fields}, log)
		want, err := table.Rules()[0].ParseIdentity(c.want)
		if err != nil {
			t.Fatal(err)
		}
		if r.Requests != 3 || r.Rules[0].Applied != 2 || len(r.Top) != 1 || r.Top[0].Client != want || strings.Contains(r.Top[0].Client, "s3cret") {
			t.Errorf("%s of %s: %d of %d, %+v", c.key, c.line, r.Rules[0].Applied, r.Requests, r.Top)
		}
	}
}

// The attributes of one request are not those of the next.
func TestAttributesAreNotKept(t *testing.T) {
	o := Options{
		Table:  compile(t, "rules: [{id: a, match: {attributes: {action: post}}, key: global, limit: 5/1m}]"),
		Fields: Fields{Attributes: map[string]string{"action": "do"}},
	}
	r := run(t, o, "{\"time\":1794736800,\"do\":\"post\"}\n{\"time\":1794736801}\n{\"time\":1794736802,\"do\":\"read\"}\n")
	if r.Rules[0].Applied != 1 || r.Free != 2 {
		t.Errorf("%+v", r)
	}
}

// What somebody should know before believing the figures is said.
func TestRemarks(t *testing.T) {
	const login = `192.0.2.1 - - [15/Nov/2026:10:00:00 +0000] "POST /api/login HTTP/1.1" 200 5` + "\n"
	for _, c := range []struct{ rules, log, want string }{
		{"{id: a, key: ip, limit: 5/1s}", login, "only whole seconds"},
		{"{id: a, key: ip, limit: 5/1m}", login, ""},
		{"{id: a, key: ip, limit: 5/1s}", "{\"time\":1794736800.5,\"ip\":\"192.0.2.1\"}\n", ""},
		{"{id: a, key: user, limit: 5/1m}", login, "a applied to no request: no line has a user; set --user-field."},
		{"{id: a, key: ip, limit: 5/1m}", "{\"time\":1794736800}\n", "no line has the address of a client"},
		{"{id: a, match: {host: x}, key: ip, limit: 5/1m}", login, "no line has a host"},
		{"{id: a, match: {path: /x}, key: ip, limit: 5/1m}", login, "no request matched"},
		{"{id: a, key: user, limit: 5/1m, mode: off}", login, ""},
		{"{id: a, key: ip, limit: 5/1m}", "", "there are no requests."},
		{"{id: a, key: ip, concurrency: 2}", login, "a applied to no request: it limits requests in flight, and a log does not say how long they took."},
		{"{id: a, key: ip, concurrency: 2, mode: off}", login, ""},
		{"{id: a, key: ip, limit: 5/1m, concurrency: 2}", login, "the concurrency of a was ignored, because a log does not say how long requests took."},
		{"{id: a, key: ip, limit: 5/1m, tokens: {}}", login, "tokens are in no log, so each request counted as 1 for a."},
	} {
		r := run(t, Options{Flags: true, Table: compile(t, "rules: ["+c.rules+"]")}, c.log)
		got := strings.Join(r.Notes, " ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.rules, got, c.want)
		}
	}
	host := Options{Host: "x", Table: compile(t, "rules: [{id: a, match: {host: x}, key: ip, limit: 5/1m}]")}
	if r := run(t, host, login); r.Rules[0].Applied != 1 {
		t.Errorf("%+v", r)
	}
}

// Exempt, blocked, shadow and shaped requests are told apart.
func TestOutcomes(t *testing.T) {
	table := compile(t, `
rules:
  - {id: shadow, key: user, algorithm: fixed_window, limit: 1/1h, mode: shadow}
  - {id: queue, match: {path: /slow}, key: global, algorithm: leaky_bucket, limit: 1/1s, burst: 3, shape: true}
exempt: {user: [healthcheck]}
block: {ip: [203.0.113.0/24]}
`)
	log := ""
	for _, who := range []string{`"user":"healthcheck"`, `"ip":"203.0.113.9"`, `"user":"a"`, `"user":"a"`, `"user":"a"`, `"path":"/slow"`, `"path":"/slow"`, `"path":"/slow"`, `"path":"/slow"`, `"path":"/"`} {
		log += "{\"time\":1794736800," + who + "}\n"
	}
	r := run(t, Options{Table: table}, log)
	if r.Requests != 10 || r.Exempt != 1 || r.Blocked != 1 || r.Denied != 2 || r.Free != 1 || r.Delayed != 2 || r.Longest != 2_000_000 {
		t.Errorf("%+v", r)
	}
	if shadow, queue := r.Rules[0], r.Rules[1]; shadow.Applied != 3 || shadow.Denied != 2 || queue.Applied != 4 || queue.Denied != 1 {
		t.Errorf("%+v", r.Rules)
	}
	var b strings.Builder
	if err := r.WriteText(&b, 80); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"of them 1 exempt, 1 blocked, 1 without a rule, 2 delayed for up to 2s", "shadow (shadow)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
