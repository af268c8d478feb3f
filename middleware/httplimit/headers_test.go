package httplimit

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// limits are the headers about limits, one a line.
func limits(h http.Header) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if strings.Contains(name, "Ratelimit") || name == "Retry-After" {
			lines = append(lines, name+": "+strings.Join(h[name], " | "))
		}
	}
	return strings.Join(lines, "\n")
}

func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		name, rules string
		requests    int
		want        string
	}{
		{"a window", "rules: [{id: api, key: ip, algorithm: sliding_log, limit: 5/1m}]", 2, `
Ratelimit: "api";r=3;t=60
Ratelimit-Policy: "api";q=5;w=60
X-Ratelimit-Limit: 5
X-Ratelimit-Remaining: 3
X-Ratelimit-Reset: 1767225661`},
		{"a window, denied", "rules: [{id: login, key: ip, algorithm: fixed_window, limit: 5/1m}]", 6, `
Ratelimit: "login";r=0;t=60
Ratelimit-Policy: "login";q=5;w=60
Retry-After: 60
X-Ratelimit-Limit: 5
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 1767225660`},
		// What is left of a bucket is counted in bursts, so its quota is, too, and
		// q/w is its rate: 200 in 120 s.
		{"a burst", "rules: [{id: api, key: ip, limit: 100/1m, burst: 200}]", 50, `
Ratelimit: "api";r=150;t=30
Ratelimit-Policy: "api";q=200;w=120
X-Ratelimit-Limit: 200
X-Ratelimit-Remaining: 150
X-Ratelimit-Reset: 1767225631`},
		// Denied, t is the wait and agrees with Retry-After; the reset is later.
		{"a burst, denied", "rules: [{id: api, key: ip, limit: 10/1m, burst: 20}]", 21, `
Ratelimit: "api";r=0;t=6
Ratelimit-Policy: "api";q=20;w=120
Retry-After: 6
X-Ratelimit-Limit: 20
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 1767225721`},
		{"less than a second", "rules: [{id: api, key: ip, limit: 10/100ms}]", 11, `
Ratelimit: "api";r=0;t=1
Ratelimit-Policy: "api";q=10
Retry-After: 1
X-Ratelimit-Limit: 10
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 1767225601`},
		{"not whole seconds", "rules: [{id: api, key: ip, limit: 10/1500ms}]", 1, `
Ratelimit: "api";r=9;t=1
Ratelimit-Policy: "api";q=10;w=2
X-Ratelimit-Limit: 10
X-Ratelimit-Remaining: 9
X-Ratelimit-Reset: 1767225601`},
		{"several limits of a rule", "rules: [{id: post, key: ip, algorithm: sliding_log, limits: [3/1m, 20/90m]}]", 4, `
Ratelimit: "post:1m";r=0;t=60
Ratelimit-Policy: "post:1m";q=3;w=60, "post:90m";q=20;w=5400
Retry-After: 60
X-Ratelimit-Limit: 3
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 1767225661`},
		{"several rules, one of them in the shadow", `
rules:
  - {id: everything, key: global, limit: 1000/1s}
  - {id: tried, key: ip, limit: 1/1d, mode: shadow}
  - {id: by-ip, key: ip, algorithm: sliding_log, limit: 7/1h}
`, 2, `
Ratelimit: "by-ip";r=5;t=3600
Ratelimit-Policy: "everything";q=1000;w=1, "by-ip";q=7;w=3600
X-Ratelimit-Limit: 7
X-Ratelimit-Remaining: 5
X-Ratelimit-Reset: 1767229201`},
		{"a threshold that is not reached", "rules: [{id: plan, key: ip, algorithm: sliding_log, limit: 10/1h, warn: [80%, 95%]}]", 7, `
Ratelimit: "plan";r=3;t=3600
Ratelimit-Policy: "plan";q=10;w=3600
X-Ratelimit-Limit: 10
X-Ratelimit-Remaining: 3
X-Ratelimit-Reset: 1767229201`},
		{"a threshold", "rules: [{id: plan, key: ip, algorithm: sliding_log, limit: 10/1h, warn: [80%, 95%]}]", 9, `
Ratelimit: "plan";r=1;t=3600
Ratelimit-Policy: "plan";q=10;w=3600
Ratelimit-Warning: "plan";used=80;r=1;t=3600
X-Ratelimit-Limit: 10
X-Ratelimit-Remaining: 1
X-Ratelimit-Reset: 1767229201`},
		{"a threshold, denied", "rules: [{id: plan, key: ip, algorithm: sliding_log, limit: 2/1h, warn: 50%}]", 3, `
Ratelimit: "plan";r=0;t=3600
Ratelimit-Policy: "plan";q=2;w=3600
Retry-After: 3600
X-Ratelimit-Limit: 2
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 1767229201`},
		{"a soft rule", "rules: [{id: plan, key: ip, algorithm: sliding_log, limit: 2/1h, mode: soft}]", 2, `
Ratelimit: "plan";r=0;t=3600
Ratelimit-Policy: "plan";q=2;w=3600
X-Ratelimit-Limit: 2
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 1767229201`},
		{"soft, exceeded, and thresholds of enforced and shadow rules", `
rules:
  - {id: soft, key: ip, algorithm: sliding_log, limit: 2/1h, mode: soft, warn: 100%}
  - {id: softer, key: ip, algorithm: sliding_log, limit: 1/1h, mode: soft}
  - {id: hidden, key: ip, algorithm: sliding_log, limit: 2/1h, mode: shadow, warn: 50%}
  - {id: hard, key: ip, algorithm: sliding_log, limits: [4/1h, 1000/1d], warn: 50%}
`, 3, `
Ratelimit: "soft";r=0;t=3600
Ratelimit-Policy: "hard:1h";q=4;w=3600, "hard:1d";q=1000;w=86400, "soft";q=2;w=3600, "softer";q=1;w=3600
Ratelimit-Warning: "hard:1h";used=50;r=1;t=3600, "soft";used=100;r=0;t=3600;soft, "softer";r=0;t=3600;soft
X-Ratelimit-Limit: 2
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 1767229201`},
		{"a number that structured fields do not have", "rules: [{id: api, key: ip, algorithm: fixed_window, limit: 1125899906842624/1d}]", 1, `
Ratelimit: "api";r=999999999999999;t=86400
Ratelimit-Policy: "api";q=999999999999999;w=86400
X-Ratelimit-Limit: 1125899906842624
X-Ratelimit-Remaining: 1125899906842623
X-Ratelimit-Reset: 1767312000`},
		{"no rule applies", "rules: [{id: api, key: user, limit: 5/1m}]", 1, ``},
		{"exempt", "{rules: [{id: api, key: ip, limit: 5/1m}], exempt: {ip: [203.0.113.0/24]}}", 1, ``},
		{"blocked", "{rules: [{id: api, key: ip, limit: 5/1m}], block: {ip: [203.0.113.0/24]}}", 1, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.rules, Options{})
			var h http.Header
			for range c.requests {
				h = b.ask().Result().Header
			}
			if got := limits(h); got != strings.TrimPrefix(c.want, "\n") {
				t.Errorf("got\n%s\nwant%s", got, c.want)
			}
			agree(t, h)
		})
	}
}

// agree parses the headers as a client would, and compares them.
func agree(t *testing.T, h http.Header) {
	t.Helper()
	if h["Ratelimit"] == nil {
		return
	}
	parse(t, h["Ratelimit-Warning"])
	quotas := map[string]int64{}
	for _, item := range parse(t, h["Ratelimit-Policy"]) {
		name, q := item.Value.(string), number(t, item, "q")
		if _, twice := quotas[name]; twice {
			t.Errorf("two policies are called %q", name)
		}
		quotas[name] = q
		if _, ok := item.Params.Get("w"); ok && number(t, item, "w") == 0 {
			t.Error("a window of 0 s")
		}
	}
	current := parse(t, h["Ratelimit"])
	if len(current) != 1 {
		t.Fatalf("%d items", len(current))
	}
	item := current[0]
	q, ok := quotas[item.Value.(string)]
	remaining, until := number(t, item, "r"), number(t, item, "t")
	if !ok || remaining > q {
		t.Errorf("%q has %d left of %d", item.Value, remaining, q)
	}
	header := func(name string) int64 {
		n, err := strconv.ParseInt(h.Get(name), 10, 64)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	if min(header("X-RateLimit-Limit"), 999_999_999_999_999) != q || min(header("X-RateLimit-Remaining"), 999_999_999_999_999) != remaining {
		t.Errorf("the families differ:\n%s", limits(h))
	}
	reset := header("X-RateLimit-Reset")
	switch h.Get("Retry-After") {
	case "":
		if diff := reset - begin.Unix() - until; diff < 0 || diff > 1 {
			t.Errorf("reset at %d, but t is %d", reset, until)
		}
	default:
		if wait := header("Retry-After"); wait != until || wait < 1 || begin.Unix()+wait > reset {
			t.Errorf("the waits differ:\n%s", limits(h))
		}
	}
}

// parse reads a list of RFC 9651.
func parse(t *testing.T, lines []string) []httpsfv.Item {
	t.Helper()
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		t.Fatalf("%q: %v", lines, err)
	}
	var items []httpsfv.Item
	for _, member := range list {
		items = append(items, member.(httpsfv.Item))
	}
	again, err := httpsfv.Marshal(list)
	if err != nil || again != strings.Join(lines, ", ") {
		t.Errorf("%q is not canonical: %q, %v", lines, again, err)
	}
	return items
}

func number(t *testing.T, item httpsfv.Item, name string) int64 {
	t.Helper()
	v, _ := item.Params.Get(name)
	n, ok := v.(int64)
	if !ok || n < 0 {
		t.Errorf("%s is %v", name, v)
	}
	return n
}

// Ids that no rule file has still make headers that can be read, and different ones.
func TestStrangeIDs(t *testing.T) {
	minute, hour := rule.Rate{N: 5, Period: time.Minute}, rule.Rate{N: 50, Period: time.Hour}
	set := rule.Set{Rules: []rule.Rule{{ID: "a", Quota: rule.Quota{Rates: []rule.Rate{minute, hour}}}}}
	for _, id := range []string{"a:1m", "a%3A1m", `a"b`, `a\b`, "ä", "a b", "a\r\nSet-Cookie: x", "a%0A", "%22"} {
		set.Rules = append(set.Rules, rule.Rule{ID: id, Quota: rule.Quota{Rates: []rule.Rate{minute}}})
	}
	for i := range set.Rules {
		set.Rules[i].Key = []rule.Source{{Kind: rule.Global}}
	}
	table, err := rule.Compile(&set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, "rules: [{id: a, key: ip, limit: 1/1s}]", Options{})
	b.engine.Install(table, 2)
	h := b.ask().Result().Header
	agree(t, h)
	if n := len(parse(t, h["Ratelimit-Policy"])); n != len(set.Rules)+1 {
		t.Errorf("%d policies in %q", n, h["Ratelimit-Policy"])
	}
}

// However many limits there are, the one that speaks is in the list.
func TestManyPolicies(t *testing.T) {
	var rules strings.Builder
	for i := range 40 {
		fmt.Fprintf(&rules, "\n  - {id: rule-%d, key: ip, algorithm: sliding_log, limit: %d/1h}", i, 100-i)
	}
	b := newBench(t, "rules:"+rules.String(), Options{})
	h := b.ask().Result().Header
	agree(t, h)
	if items := parse(t, h["Ratelimit-Policy"]); len(items) != 16 || items[16-1].Value != "rule-39" {
		t.Errorf("%q", h["Ratelimit-Policy"])
	}
}

func TestFamilies(t *testing.T) {
	for families, want := range map[Headers][]string{
		0:          {"Ratelimit", "Ratelimit-Policy", "Retry-After", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		XRateLimit: {"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		RateLimit:  {"Ratelimit", "Ratelimit-Policy"},
		RetryAfter: {"Retry-After"},
		NoHeaders:  nil,
	} {
		b := newBench(t, "rules: [{id: a, key: ip, limit: 1/1h}]", Options{Headers: families})
		b.ask()
		w := b.ask()
		got := slices.Sorted(maps.Keys(w.Header()))
		got = slices.DeleteFunc(got, func(s string) bool { return s == "Cache-Control" || s == "Content-Type" })
		if w.Code != 429 || !slices.Equal(got, want) {
			t.Errorf("families %d: %d %q, want %q", families, w.Code, got, want)
		}
	}
}

// A handler that changes a header changes no other one, and none of another answer.
func TestHeadersAreApart(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: ip, limit: 100/1h}]", Options{})
	h := b.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("X-RateLimit-Limit", "more")
		w.Header()["Ratelimit"][0] = "less"
	}))
	for i := range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, from("203.0.113.7:1", "GET", "/"))
		want := fmt.Sprintf("Ratelimit: less\nRatelimit-Policy: \"a\";q=100;w=3600\nX-Ratelimit-Limit: 100 | more\nX-Ratelimit-Remaining: %d\n", 99-i)
		if got := limits(w.Header()); !strings.HasPrefix(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// What the service and the gateway use is the same.
func TestWriteHeaders(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: ip, limit: 1/1h}]", Options{})
	for range 2 {
		var v engine.Verdict
		r := from("203.0.113.8:1", "GET", "/")
		p := new(pass)
		b.readRequest(p, r)
		if err := b.engine.Check(t.Context(), &p.request, &v); err != nil {
			t.Fatal(err)
		}
		h, w := http.Header{}, b.ask()
		WriteHeaders(h, &v, AllHeaders)
		if limits(h) != limits(w.Header()) {
			t.Errorf("got\n%s\nwant\n%s", limits(h), limits(w.Header()))
		}
		if !v.Allowed {
			direct := httptest.NewRecorder()
			WriteDenial(direct, &v, AllHeaders)
			if direct.Code != w.Code || direct.Body.String() != w.Body.String() || limits(direct.Header()) != limits(w.Header()) {
				t.Errorf("%d %s %s", direct.Code, direct.Body, limits(direct.Header()))
			}
		}
	}
}
