package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/server/httpapi"
)

func TestCheck(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	login := []string{"check", "--method", "POST", "--path", "/api/login", "--ip", "203.0.113.7", "--user", "alice"}
	got := r.on(t, login...)
	const want = `allowed: login has 4 of 5 remaining, resets in 1m

rule   key             limit                remaining  resets in  retry after
login  ip:203.0.113.7  fixed_window 5/1m    4 of 5     1m         -
api    user:alice      token_bucket 100/1m  99 of 100  600ms      -
`
	if got.code != 0 || got.stdout != want || got.stderr != "" {
		t.Errorf("exit code %d\n%s\nwant\n%s%s", got.code, got.stdout, want, got.stderr)
	}
	r.on(t, append(login, "--peek")...).want(t, 0, `^allowed: login has 4 of 5 remaining, resets in 1m; nothing was charged$`, "")
	r.on(t, append(login, "--cost", "4")...).want(t, 0, `^allowed: login has 0 of 5 remaining`, "")
	r.now += weir.Micros(18_500_000)
	denied := r.on(t, login...)
	denied.want(t, 3, `^denied: login has 0 of 5 remaining, retry after 42s\nmessage to the client: too many logins\n\nrule`, "")
	denied.want(t, 3, `^login .* 0 of 5 +42s +42s$`, "")
	r.on(t, append(login, "--cost", "6")...).want(t, 3, `^denied: the cost is more than login ever allows at once$`, "")

	got = r.on(t, append(login, "--output", "json")...)
	var answer httpapi.CheckAnswer
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || got.code != 3 || answer.Allowed || answer.Code != 10007 || len(answer.Results) != 2 {
		t.Errorf("exit code %d, %v\n%s", got.code, err, got.stdout)
	}
}

func TestCheckSendsEverything(t *testing.T) {
	r := serveRules(t, `rules:
  - {id: all, match: {method: PUT, host: a.example, path: /p, attributes: {action: post}},
     key: [ip, user, api_key, "header:X-A", "cookie:c", "query:q"], limit: 7/1m, tiers: {pro: 9/1m}}
`, "")
	r.on(t, "check", "--method", "PUT", "--host", "a.example", "--path", "/p", "--attr", "action=post", "--ip", "192.0.2.1", "--user", "u",
		"--api-key-file", file(t, "key", "  the key\n"), "--header", "x-a=1", "--cookie", "c=2", "--query", "q=3", "--tier", "pro", "--cost", "2").
		want(t, 0, `^allowed: all has 7 of 9 remaining`, "")
	r.on(t, "check", "--method", "PUT").want(t, 0, `^allowed: no rule applies\n\z`, "")
	for content, want := range map[string]string{
		"": "does not contain exactly one key", "a\nb": "does not contain exactly one key",
		strings.Repeat("x", 9000): "is larger than 8 KiB, the maximum for a key",
	} {
		r.on(t, "check", "--api-key-file", file(t, "key", content)).want(t, 1, "", want)
	}
}

func TestCheckLists(t *testing.T) {
	r := serveRules(t, loginAndAPI+"exempt: {user: [healthcheck]}\nblock: {ip: [198.51.100.0/24]}\n", "")
	r.on(t, "check", "--user", "healthcheck").want(t, 0, `^allowed: the client is exempt, and no limit applies\n\z`, "")
	r.on(t, "check", "--ip", "198.51.100.9").want(t, 3, `^denied: the client is blocked$`, "")
}

func TestCheckShapesAndShadows(t *testing.T) {
	r := serveRules(t, `rules:
  - {id: queue, key: global, algorithm: leaky_bucket, limit: 1/1s, burst: 3, shape: true}
  - {id: trial, key: global, limit: 1/1h, mode: shadow}
`, "")
	r.on(t, "check").want(t, 0, `^allowed: `, "")
	r.on(t, "check").want(t, 0, `^allowed after 1s: queue has 1 of 3 remaining`, "")
	r.on(t, "check").want(t, 0, `^trial \(shadow\) +global +token_bucket 1/1h +0 of 1 +1h +1h$`, "")
}

// An answer given while the store is unavailable says so. The verdicts are the API's own types.
func TestVerdictsWithoutAStore(t *testing.T) {
	open := httpapi.CheckAnswer{Allowed: true, Reason: "limits", Rule: "a", Degraded: true, Results: []httpapi.LimitAnswer{{Rule: "a", Allowed: true}}}
	if got, want := summarize(&open, false), "allowed: no limit could be checked; degraded, because the store is unavailable"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	early := httpapi.CheckAnswer{Allowed: true, Reason: "limits", Degraded: true}
	if got, want := summarize(&early, false), "allowed: no rule applies; degraded, because the rules or the clients are not loaded yet"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	closed := httpapi.CheckAnswer{Reason: "unavailable", Rule: "a", Degraded: true}
	if got, want := summarize(&closed, false), "denied: the store is unavailable, and rule a fails closed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := strings.Join(limitRow(&open.Results[0]), " "); !strings.HasSuffix(got, "? ? -") {
		t.Errorf("the row of a limit that was not asked is %q", got)
	}
}

func TestSpan(t *testing.T) {
	const second, minute, hour, day = 1000, 60_000, 3_600_000, 86_400_000
	for _, c := range []struct {
		ms   int64
		want string
	}{
		{0, "0s"}, {1, "1ms"}, {999, "999ms"}, {second, "1s"}, {1001, "1.1s"}, {9900, "9.9s"}, {9999, "10s"},
		{10 * second, "10s"}, {10*second + 1, "11s"}, {minute, "1m"}, {90 * second, "1m30s"}, {hour - 1, "60m"},
		{hour, "1h"}, {hour + 1, "1h1m"}, {26 * hour, "1d2h"}, {day, "1d"}, {40*day + 1, "40d1h"},
		{math.MaxInt64, "53376d"},
	} {
		if got := span(c.ms); got != c.want {
			t.Errorf("span(%d) = %q, want %q", c.ms, got, c.want)
		}
	}
}

// Explain writes how many requests may be in flight in words. In JSON it is a limit like others.
func TestExplainInFlight(t *testing.T) {
	const rules = "rules: [{id: api, key: user, concurrency: 20, limit: 100/1m}]"
	if got := command(t, rules, "rules", "explain", "-", "--user", "alice"); !strings.HasPrefix(got.stdout, "+ api applies to user:alice: token_bucket 100/1m and 20 in flight (default)\n    in flight: ") || !strings.HasSuffix(got.stdout, "/v1/authz, for 1m\n") {
		t.Errorf("%+v", got)
	}
	if got := command(t, rules, "rules", "explain", "-", "--user", "alice", "--output", "json"); !strings.Contains(got.stdout, `"in_flight 20/1m"`) {
		t.Errorf("%+v", got)
	}
}

// A tier that no rule has is told, and one that a rule has is not.
func TestExplainUnknownTier(t *testing.T) {
	const rules = "rules: [{id: api, key: user, limit: 100/1m, tiers: {pro: 9/1m}}]"
	for tier, want := range map[string]string{
		"por":  "weir: no rule has the tier \"por\", so it gets the limits without a tier; did you mean \"pro\"?\n",
		"gold": "weir: no rule has the tier \"gold\", so it gets the limits without a tier; check --tier\n",
		"pro":  "", "": "",
	} {
		if got := command(t, rules, "rules", "explain", "-", "--user", "alice", "--tier", tier); got.stderr != want || got.stdout == "" {
			t.Errorf("%q: %+v", tier, got)
		}
	}
	if got := command(t, "", "rules", "list", "rules.yaml"); got.code != 2 || !strings.Contains(got.stderr, "for a file, use weir rules validate FILE or weir rules explain FILE") {
		t.Errorf("%+v", got)
	}
}
