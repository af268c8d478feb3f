package respapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// plain turns an answer into what encoding/json reads of the same.
func plain(v any) any {
	switch v := v.(type) {
	case []pair:
		all := map[string]any{}
		for _, p := range v {
			all[p.name.(string)] = plain(p.value)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = plain(v[i])
		}
		return all
	case int64:
		return float64(v)
	}
	return v
}

// flat turns an answer of RESP3 into that of RESP2.
func flat(v any) any {
	switch v := v.(type) {
	case []pair:
		all := []any{}
		for _, p := range v {
			all = append(all, flat(p.name), flat(p.value))
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = flat(v[i])
		}
		return all
	case bool:
		return map[bool]int64{false: 0, true: 1}[v]
	}
	return v
}

// drawn is a request in both languages.
type drawn struct {
	words []string
	body  map[string]any
}

func drawRequest(t *rapid.T) drawn {
	d := drawn{body: map[string]any{}}
	set := func(name string, values ...string) {
		if rapid.Bool().Draw(t, name) {
			value := rapid.SampledFrom(values).Draw(t, name)
			d.words, d.body[name] = append(d.words, name, value), value
		}
	}
	entry := func(field, name string, values ...string) {
		if rapid.IntRange(0, 3).Draw(t, field) == 0 {
			value := rapid.SampledFrom(values).Draw(t, field)
			d.words = append(d.words, field+"."+name, value)
			d.body[field] = map[string]any{name: value}
		}
	}
	set("path", "/api/x", "/login", "/llm", "/api/y?z", "broken")
	set("ip", "192.0.2.1", "2001:db8::1", "203.0.113.66", "x")
	set("user", "alice", "bob")
	set("api_key", "s3cret")
	set("tier", "pro", "none")
	set("method", "POST", "GET")
	set("host", "example.com")
	entry("headers", "x-tenant", "t1", "t2")
	entry("cookies", "lang", "en", "de")
	entry("query", "page", "1")
	entry("attributes", "action", "post", "get")
	switch rapid.IntRange(0, 5).Draw(t, "cost") {
	case 0:
		n := rapid.Int64Range(-1, 200).Draw(t, "cost")
		d.words, d.body["cost"] = append(d.words, "cost", fmt.Sprint(n)), n
	case 1:
		n := rapid.Int64Range(1, 700).Draw(t, "tokens")
		d.words, d.body["cost"] = append(d.words, "cost.tokens", fmt.Sprint(n)), map[string]any{"tokens": n}
	}
	return d
}

// What a client asks here is answered as over HTTP: two engines with the same rules and
// clock, one behind each, are asked the same. A connection of RESP2 gets the same as one of
// RESP3, in its types.
func TestSameAsHTTP(t *testing.T) {
	s := newStand(t, Options{})
	twin := newStand(t, Options{})
	e := s.newEngine(t)
	h, err := httpapi.New(httpapi.Options{Service: manage.Service{Engine: e, Rules: struct{ repo.Repository }{}}})
	if err != nil {
		t.Fatal(err)
	}
	over := []engine.Override{{
		ID: "88d2", Rule: "api", Key: "user:alice", Quota: rule.Quota{Rates: []rule.Rate{{N: 7, Period: time.Minute}}},
		Ends: s.micros().Time().Add(time.Hour),
	}}
	directory, problems, err := rule.ReadDirectory("", strings.NewReader(`{"client": "api_key:s3cret", "parent": "user:carol"}
{"client": "user:carol", "parent": "attr:action:post", "tier": "pro"}
{"client": "user:bob", "limits": {"tokens": "900/1m"}}
{"client": "attr:action:post"}`))
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	for _, e := range []*engine.Engine{e, s.engine, twin.engine} {
		e.InstallOverrides(over)
		e.InstallClients(engine.Clients{Directory: directory})
	}
	c, old := s.dial(t), twin.dial(t)
	c.do("HELLO 3")
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range rapid.IntRange(1, 20).Draw(t, "requests") {
			by := time.Duration(rapid.Int64Range(0, 20_000_000).Draw(t, "µs")) * time.Microsecond
			s.move(by)
			twin.move(by)
			d := drawRequest(t)
			name, path := "WEIR.CHECK", "/v1/check"
			switch rapid.IntRange(0, 6).Draw(t, "kind") {
			case 0:
				name, d.body["peek"] = "WEIR.PEEK", true
			case 1:
				name, path = "WEIR.RESERVE", "/v1/reserve"
			case 2:
				d.words, d.body["charge"] = append(d.words, "charge", "always"), "always"
				if d.body["cost"] == nil && rapid.Bool().Draw(t, "much") {
					d.words, d.body["cost"] = append(d.words, "cost", "20000"), 20_000
				}
			}
			d.words = append([]string{name}, append(d.words, "results", "1")...)
			body, err := json.Marshal(d.body)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(body)))
			r.Host = "localhost"
			r.Header.Set("Content-Type", "application/json")
			over := httptest.NewRecorder()
			h.ServeHTTP(over, r)
			c.send(array(d.words...))
			got := c.read()
			old.send(array(d.words...))
			before := old.read()
			var want map[string]any
			if err := json.Unmarshal(over.Body.Bytes(), &want); err != nil {
				t.Fatal(err)
			}
			if text, failed := got.(failure); failed {
				code := strings.ReplaceAll(strings.ToUpper(want["type"].(string)), "-", "_")
				code = code[strings.LastIndexByte(code, ':')+1:]
				if string(text) != code+" "+want["detail"].(string) || before != text {
					t.Fatalf("%q: got %q and %q, want %s %s", d.words, text, before, code, want["detail"])
				}
				seen["mistake"]++
				continue
			}
			answer := plain(got).(map[string]any)
			if answer["hold"] != nil {
				seen["held"]++
				if want["hold"] == nil || len(answer["hold"].(string)) != len(want["hold"].(string)) {
					t.Fatalf("held: %v, want %v", answer, want)
				}
				delete(answer, "hold")
				delete(want, "hold")
			} else if !reflect.DeepEqual(flat(got), before) {
				t.Fatalf("%q: RESP2 got %v, want %v", d.words, before, flat(got))
			}
			if !reflect.DeepEqual(answer, want) {
				t.Fatalf("%q: got %v, want %v", d.words, answer, want)
			}
			seen[fmt.Sprint(want["allowed"])]++
			if strings.Contains(over.Body.String(), `"user:carol"`) && d.body["user"] == nil {
				seen["known by its API key"]++
			}
			if strings.Contains(over.Body.String(), `"excess"`) {
				seen["excess"]++
			}
		}
	})
	for _, what := range []string{"mistake", "held", "true", "false", "excess", "known by its API key"} {
		if seen[what] == 0 {
			t.Errorf("there was no %s among %v", what, slices.Collect(maps.Keys(seen)))
		}
	}
}

func TestCheckFields(t *testing.T) {
	s := newStand(t, Options{})
	c := s.dial(t)
	for command, want := range map[string]string{
		"WEIR.CHECK user":                                   "BAD_FIELD user: it has no value; send names and values in pairs.",
		"WEIR.CHECK usr alice":                              "BAD_FIELD usr: there is no such field; did you mean user?",
		"WEIR.CHECK header.X-Tenant a":                      "BAD_FIELD header.X-Tenant: there is no such field; did you mean headers.NAME?",
		"WEIR.PEEK charge always":                           "BAD_FIELD charge: there is no such field; this command has ip, user, api_key, tier, priority, method, host, path, cost, results, cost., headers., cookies., query., attributes..",
		"WEIR.CHECK user a user b":                          "BAD_FIELD user: it is given twice; send it once.",
		"WEIR.CHECK headers.A a headers.A b":                "BAD_FIELD headers.A: it is given twice; send it once.",
		"WEIR.CHECK cost x":                                 `BAD_FIELD cost: "x" is not a whole number.`,
		"WEIR.CHECK cost 1 cost.tokens 2":                   "BAD_FIELD cost: it cannot be combined with the costs by unit; send one of them.",
		"WEIR.CHECK results maybe":                          `BAD_FIELD results: "maybe" is neither true nor false; send one of them, or 1 or 0.`,
		"WEIR.CHECK priority mediocre":                      `BAD_FIELD priority: "mediocre" is unknown; choose one of critical, high, normal, low.`,
		"WEIR.CHECK charge never":                           `BAD_FIELD charge: "never" is unknown; send always, or leave it out.`,
		"WEIR.CHECK user \xff":                              "BAD_FIELD user: it is not UTF-8; encode it, for example in hexadecimal.",
		"WEIR.CHECK cost.tokns 2":                           `BAD_FIELD cost: no rule has the unit "tokns"; there are tokens.`,
		"WEIR.PEEK cost.tokns 2":                            `BAD_FIELD cost: no rule has the unit "tokns"; there are tokens.`,
		"WEIR.RESERVE cost.tokns 2":                         `BAD_FIELD cost: no rule has the unit "tokns"; there are tokens.`,
		"WEIR.RESERVE ttl_ms -1":                            "BAD_FIELD ttl_ms: -1 is out of range; send 1 to 86400000, or leave it out for 60000.",
		"WEIR.SETTLE used 1":                                "BAD_FIELD hold: required; send the hold that the reservation returned.",
		"WEIR.SETTLE hold x used 1":                         "BAD_FIELD hold: it is not the id of a hold; send the one that the reservation returned.",
		"WEIR.SETTLE hold x":                                "BAD_FIELD used: required; send the units that were used, or WEIR.CANCEL if there are none.",
		"WEIR.SETTLE hold x used -1":                        "BAD_FIELD used: -1 is out of range; send 0 to 1125899906842624.",
		"WEIR.SETTLE hold x used 1 used.tokens 1":           "BAD_FIELD used: it cannot be combined with the units by name; send one of them.",
		"WEIR.RESET":                                        "BAD_FIELD key: required; send the key of a client, such as user:alice, as WEIR.CHECK returns it.",
		"WEIR.RESET key user:a rule none":                   `NO_RULE There is no rule "none".`,
		"WEIR.RESET key nonsense":                           `BAD_FIELD key: No rule counts by such keys; write it as in "user:alice" or "ip:203.0.113.7".`,
		"WEIR.CANCEL hold " + strings.Repeat("0", 31) + "1": "HOLD_UNKNOWN There is no such hold, or it ended too long ago; charge what is not charged yet with WEIR.CHECK and charge always.",
	} {
		if got := c.do(command); got != failure(want) {
			t.Errorf("%.60q: got %q, want %q", command, got, want)
		}
	}
}

func TestHolds(t *testing.T) {
	s := newStand(t, Options{})
	c := s.dial(t)
	c.do("HELLO 3")
	field := func(answer any, name string) any {
		t.Helper()
		all, ok := plain(answer).(map[string]any)
		if !ok {
			t.Fatalf("got %v", answer)
		}
		return all[name]
	}
	remaining := func() any {
		t.Helper()
		return field(c.do("WEIR.PEEK path /llm user alice"), "remaining")
	}
	id := field(c.do("WEIR.RESERVE path /llm user alice cost.tokens 600 ttl_ms 5000"), "hold").(string)
	if got := remaining(); got != 400.0 {
		t.Errorf("reserved: %v remain", got)
	}
	s.move(4 * time.Second)
	if got := c.do("WEIR.EXTEND hold " + id + " ttl_ms 10000"); field(got, "state") != "open" || field(got, "expires_at") != "2026-01-01T00:00:14Z" {
		t.Errorf("extended: %v", got)
	}
	if got := c.do("WEIR.SETTLE hold " + id + " used.tokns 100"); got != failure(`BAD_FIELD used: no rule has the unit "tokns"; there are tokens.`) {
		t.Errorf("misspelt: %v", got)
	}
	got := plain(c.do("WEIR.SETTLE hold " + id + " used.tokens 100"))
	want := map[string]any{"state": "settled", "parts": []any{map[string]any{"rule": "tokens", "unit": "tokens", "reserved": 600.0, "used": 100.0}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("settled: %v", got)
	}
	id = field(c.do("WEIR.RESERVE path /llm user bob cost.tokens 600"), "hold").(string)
	if got := c.do("WEIR.CANCEL hold " + id); field(got, "state") != "settled" {
		t.Errorf("canceled: %v", got)
	}
	id = field(c.do("WEIR.RESERVE path /llm user bob cost.tokens 600 ttl_ms 1000"), "hold").(string)
	s.move(2 * time.Second)
	if got := c.do("WEIR.SETTLE hold " + id + " used 5"); !strings.HasPrefix(fmt.Sprint(got), "HOLD_EXPIRED ") {
		t.Errorf("expired: %v", got)
	}
	if got := c.do("WEIR.RESET key user:alice"); !reflect.DeepEqual(field(got, "rules"), []any{"api", "tokens"}) || remaining() != 1000.0 {
		t.Errorf("reset: %v", got)
	}
}

// A reservation for which there is no place says so.
func TestReserveWithoutPlace(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Engine: newEngine(t, memory.Options{MaxKeys: 64})}})
	c := s.dial(t)
	c.do("HELLO 3")
	for i := range 64 {
		a, _ := plain(c.do(fmt.Sprint("WEIR.RESERVE path /llm cost.tokens 1 user ", i))).(map[string]any)
		_, held := a["hold"]
		unheld, _ := a["unheld"].(bool)
		if a["allowed"] != true || a["degraded"] != false || held == unheld {
			t.Fatalf("%d: %v", i, a)
		}
		if unheld {
			if got := c.do("PING"); got != "PONG" {
				t.Errorf("then %v", got)
			}
			return
		}
	}
	t.Error("there is always a place")
}
