package stats

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

const deniedRules = `
block: {user: [mallory], ip: [198.51.100.0/24]}
rules:
  - {id: login, match: {path: "/login"}, key: ip, limit: 1/1h}
  - {id: items, match: {path: ["/items/{id}", "/things/**"]}, key: user, cost: 2, limit: 3/1h, tiers: {pro: 4/1h}}
  - {id: trial, match: {path: "/try"}, key: user, limit: 1/1h, mode: shadow}
  - {id: all, match: {path: "/all/{x}"}, key: global, limit: 1/1h}
  - {id: safe, match: {path: "/safe"}, key: user, limit: 100/1h, on_failure: closed}
`

// told is what a denial says, without its time.
func told(all []archive.Denial) string {
	var text strings.Builder
	for _, d := range all {
		var marks []string
		for _, m := range []struct {
			name string
			set  bool
		}{{"shadow", d.Shadow}, {"blocked", d.Blocked}, {"unknown", d.Unknown}, {"degraded", d.Degraded}} {
			if m.set {
				marks = append(marks, m.name)
			}
		}
		fmt.Fprintf(&text, "%s|%s|%s|%s|%s|%d|%s\n", d.Rule, d.Key, d.Method, d.Path, d.Tier, d.Cost, strings.Join(marks, ","))
	}
	return text.String()
}

// A denial says who, by which rule and where, by the pattern and never by what was sent.
func TestDenials(t *testing.T) {
	d := newDesk(t, deniedRules)
	ip := netip.MustParseAddr("203.0.113.7")
	for _, c := range []struct {
		req  rule.Request
		n    int
		lost bool
		want string
	}{
		{rule.Request{IP: ip, Method: "post", Path: "/login"}, 2, false, "login|ip:203.0.113.7|POST|/login||1|\n"},
		{rule.Request{IP: ip, User: "bob", Method: "GET", Path: "/things/secret-7", Tier: "pro"}, 3, false, "items|user:bob|GET|/things/**|pro|2|\n"},
		{rule.Request{IP: ip, User: "bob", Method: "BREW", Path: "/items/secret-8", Tier: "gold"}, 1, false, "items|user:bob|(other)|/items/{id}|(other)|2|\n"},
		{rule.Request{User: "eve", Path: "/try"}, 2, false, "trial|user:eve||/try||1|shadow\n"},
		{rule.Request{User: "a|b", Path: "/all/secret", Method: "GET"}, 2, false, "all|user:a\\|b|GET|/all/{x}||1|\n"},
		{rule.Request{APIKey: "a secret", Path: "/all/secret", Method: "GET"}, 1, false, "all|api_key:sha256:"},
		{rule.Request{User: "zoe", Path: "/safe"}, 1, true, "safe|user:zoe||/safe||1|degraded\n"},
		{rule.Request{IP: ip, User: "mallory", Path: "/x"}, 1, false, "|user:mallory||||0|blocked\n"},
		{rule.Request{IP: netip.MustParseAddr("198.51.100.9"), User: "bob", Path: "/x", Method: "GET"}, 1, false, "|ip:198.51.100.9|GET|||0|blocked\n"},
	} {
		before := d.clock.now()
		d.store.lost.Store(c.lost)
		d.check(t, c.req, c.n)
		d.pass(1)
		got, err := d.Denials(t.Context(), LatestQuery{N: 1})
		if err != nil || !strings.HasPrefix(told(got.Events), c.want) || strings.Contains(told(got.Events), "secret") {
			t.Fatalf("%+v: %q, %v; want %q", c.req, told(got.Events), err, c.want)
		}
		address := ""
		if c.req.IP.IsValid() {
			address = c.req.IP.String()
		}
		if got.Events[0].Address != address {
			t.Errorf("the address is %q, want %q", got.Events[0].Address, address)
		}
		if at := got.Events[0].At.Time(); !at.Equal(before) || got.Events[0].Instance != "here" {
			t.Errorf("it was at %v, on %q", at, got.Events[0].Instance)
		}
	}
	for _, c := range []struct {
		query LatestQuery
		want  int
	}{
		{LatestQuery{}, 9}, {LatestQuery{Rule: "items"}, 2}, {LatestQuery{Key: "user:bob"}, 2}, {LatestQuery{Rule: "login", Key: "user:bob"}, 0}, {LatestQuery{N: 4}, 4},
		{LatestQuery{Since: d.clock.now()}, 0}, {LatestQuery{Since: d.clock.now().Add(-2 * time.Second)}, 2}, {LatestQuery{Since: d.clock.now().Add(-time.Hour), Rule: "items"}, 2},
	} {
		got, err := d.Denials(t.Context(), c.query)
		if err != nil || len(got.Events) != c.want {
			t.Errorf("%+v: %+v, %v; want %d", c.query, got, err, c.want)
		}
	}
	// A day later they are still known, and then no more.
	d.clock.advance(23 * time.Hour)
	d.pass(1)
	d.check(t, rule.Request{IP: ip, Path: "/login"}, 2)
	d.pass(1)
	if got, err := d.Denials(t.Context(), LatestQuery{}); err != nil || len(got.Events) != 10 || !slices.IsSortedFunc(got.Events, func(a, b archive.Denial) int { return int(b.At - a.At) }) {
		t.Errorf("%s, %v", told(got.Events), err)
	}
	d.clock.advance(26 * time.Hour)
	d.pass(1)
	d.check(t, rule.Request{IP: ip, Path: "/login"}, 2)
	d.pass(1)
	if got, err := d.Denials(t.Context(), LatestQuery{}); err != nil || len(got.Events) != 1 {
		t.Errorf("%s, %v", told(got.Events), err)
	}
	for _, n := range []int{-1, MaxLatest + 1} {
		if _, err := d.Denials(t.Context(), LatestQuery{N: n}); err == nil {
			t.Errorf("%d denials are listed", n)
		}
	}
}

// Requests of clients that no directory knows are counted and listed apart from those of blocked ones.
func TestUnknownClients(t *testing.T) {
	d := newDesk(t, deniedRules)
	directory, problems, err := rule.ReadDirectory("", strings.NewReader(`{"client": "user:bob"}`))
	testkit.OK(t, errors.Join(err, problems.Err()))
	d.engine.InstallClients(engine.Clients{Directory: directory, DenyUnknown: true})
	d.check(t, rule.Request{APIKey: "a secret", Method: "GET", Priority: rule.Low}, 1)
	d.check(t, rule.Request{User: "mallory"}, 1)
	d.check(t, rule.Request{User: "bob"}, 1)
	d.pass(1)
	got, err := d.Denials(t.Context(), LatestQuery{})
	if text := told(got.Events); err != nil || strings.Contains(text, "secret") || !strings.Contains(text, "|user:mallory||||0|blocked\n") || !strings.Contains(text, "|api_key:sha256:") || !strings.Contains(text, "|GET|||0|unknown\n") {
		t.Errorf("%q, %v", text, err)
	}
	s, err := d.Summary(t.Context(), d.clock.now().Add(-time.Minute), d.clock.now())
	if err != nil || s.Counts != (archive.Counts{Allowed: 1, Blocked: 1, UnknownClient: 1}) {
		t.Errorf("%+v, %v", s.Counts, err)
	}
}

// The tier that the directory gives a client is that of its requests in all that is recorded.
func TestTiersOfTheDirectory(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, algorithm: fixed_window, limit: 3/1h, tiers: {pro: 5/1h}}]")
	directory, problems, err := rule.ReadDirectory("", strings.NewReader(`{"client": "user:ann", "parent": "org:acme"}
{"client": "api_key:k", "parent": "user:ann"}
{"client": "org:acme", "tier": "pro"}
{"client": "user:ben", "tier": "pro"}`))
	testkit.OK(t, errors.Join(err, problems.Err()))
	d.engine.InstallClients(engine.Clients{Directory: directory})
	d.check(t, rule.Request{APIKey: "k"}, 6)
	d.check(t, rule.Request{User: "ben", Tier: "gold"}, 2)
	d.check(t, rule.Request{User: "carl"}, 1)
	d.engine.InstallClients(engine.Clients{Directory: directory, TrustRequest: true})
	d.check(t, rule.Request{User: "ben", Tier: "gold"}, 1)
	d.pass(1)

	var tiers []string
	for _, of := range d.summary(t).Rules[0].Tiers {
		tiers = append(tiers, fmt.Sprintf("%s %d", of.Tier, of.Counts.Total()))
	}
	if got := strings.Join(tiers, ", "); got != " 1, (other) 1, pro 8" {
		t.Errorf("tiers %q", got)
	}
	denials, err := d.Denials(t.Context(), LatestQuery{})
	if text := told(denials.Events); err != nil || text != "api|user:ann|||pro|1|\n" {
		t.Errorf("denials %q, %v", text, err)
	}
	usage, err := d.Usage(t.Context(), "api", noon, noon.Add(time.Hour))
	if err != nil || len(usage.Limits) != 2 {
		t.Fatalf("usage %+v, %v", usage, err)
	}
	if pro := usage.Limits[1]; pro.Tier != "pro" || pro.Limit != 5 || pro.Requests != 8 || pro.Denied != 1 || pro.Max != 5 {
		t.Errorf("usage %+v", pro)
	}
}

// However often one client is denied, those of others are known, and of its own the last.
func TestDenialsOfALoudClient(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, limit: 1/1h}]")
	quiet := func(second int) string { return fmt.Sprint("quiet", second) }
	often := 500
	if testkit.Race {
		often /= 10
	}
	for second := range 60 {
		for range 8 {
			d.check(t, rule.Request{User: "loud"}, often)
			d.tick(d.clock.now())
		}
		d.check(t, rule.Request{User: quiet(second)}, 2) // one of 8*often + 2
		d.pass(1)
	}
	got, err := d.Denials(t.Context(), LatestQuery{N: MaxLatest})
	if err != nil {
		t.Fatal(err)
	}
	var loud, others int
	for _, one := range got.Events {
		if one.Key == "user:loud" {
			loud++
		} else {
			others++
		}
	}
	if loud == 0 || loud > 7*4 || others < 45 { // some share a place with the loud one
		t.Errorf("%d of the loud client, %d of 60 others", loud, others)
	}
	if got, err = d.Denials(t.Context(), LatestQuery{Key: "user:loud", N: 1}); err != nil || len(got.Events) != 1 || got.Events[0].At.Time().Before(d.clock.now().Add(-2*time.Second)) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A hundred thousand clients, all denied, take no more room than some.
func TestDenialsOfManyClients(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, limit: 1/1h}]")
	var v engine.Verdict
	clients := 100_000
	if testkit.Race {
		clients /= 10
	}
	for i := range clients {
		for range 2 {
			if err := d.engine.Check(context.Background(), &rule.Request{User: fmt.Sprint(i)}, &v); err != nil {
				t.Fatal(err)
			}
		}
		if i%1000 == 999 {
			d.tick(d.clock.now())
		}
		if n := len(d.collector.ranks.denials.of); n > maxRecent {
			t.Fatalf("%d are remembered", n)
		}
	}
	d.pass(1)
	got, err := d.Denials(t.Context(), LatestQuery{N: MaxLatest})
	if err != nil || len(got.Events) != MaxLatest {
		t.Errorf("%d denials, %v", len(got.Events), err)
	}
}
