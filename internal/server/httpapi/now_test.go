package httpapi

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/store/lease"
)

func someLeases() lease.Stats {
	return lease.Stats{Messages: 61, Keys: 3, Names: []lease.NameStats{
		{Name: "api", Local: 1204, Denied: 31, Asked: 45, Leased: 24, Returned: 40, Lost: 2}, {Name: "login", Asked: 7},
	}}
}

// Leases are told by rule, or of one rule.
func TestLeases(t *testing.T) {
	s := newStand(t, Options{Leases: someLeases})
	all := LeasesAnswer{61, 3, []RuleLease{{"api", 1204, 31, 45, 24, 40, 2}, {Rule: "login", Asked: 7}}}
	for path, want := range map[string]LeasesAnswer{
		"": all, "?rule=login": {61, 3, all.Rules[1:]}, "?rule=none": {61, 3, []RuleLease{}},
	} {
		var got LeasesAnswer
		if s.call("GET /v1/leases"+path, "").want(t, 200, &got); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
}

func (s *stand) present(t *testing.T) (a NowAnswer) {
	t.Helper()
	s.call("GET /v1/now", "").want(t, 200, &a)
	return a
}

// The most denied client comes with the rule and the endpoint of most of its denials, until somebody
// decides about it, or five minutes are over.
func TestNowDenied(t *testing.T) {
	s := newStatsStand(t, Options{})
	if a := s.present(t); !reflect.DeepEqual(a.Denied, &NowDenied{Window: 300}) {
		t.Fatalf("before any request: %+v", a.Denied)
	}
	s.traffic() // bob is denied three times
	want := &NowClient{Entry: archive.Entry{Key: "ip:192.0.2.9", Count: 3}, Sampling: 1, Rule: "login", Endpoint: &NowEndpoint{"POST", "/api/login"}, LastAt: begin.Unix()}
	before := s.present(t).Denied
	if !reflect.DeepEqual(before.Client, want) || before.Denied != 3 || before.High || before.Blocked != nil {
		t.Fatalf("%+v of %+v, want %+v", before.Client, before, want)
	}
	s.call("PUT /v1/block?ip=192.0.2.9", "").want(t, 200, nil)
	s.check(`{"ip": "192.0.2.9", "method": "POST", "path": "/api/login"}`, 20, 0)
	s.pass(1)
	if a, none := s.present(t).Denied, (&NowDenied{Window: 300, Requests: before.Requests - 3, Blocked: []archive.Entry{want.Entry}}); !reflect.DeepEqual(a, none) {
		t.Errorf("a client on the block list: %+v, want %+v", a, none)
	}
	s.call("DELETE /v1/block?ip=192.0.2.9", "").want(t, 200, nil)
	if a := s.present(t); !reflect.DeepEqual(a.Denied.Client, want) || a.Denied.Denied != 3 {
		t.Errorf("%+v, want %+v", a.Denied.Client, want)
	}
	s.pass(300)
	if a := s.present(t); a.Denied.Client != nil || a.Denied.Denied != 0 {
		t.Errorf("five minutes later: %+v", a.Denied)
	}
}

// Whoever guesses the password of an account is named, not the account, until that address is blocked;
// but if the guesses come from many addresses, it is the account. That most requests are denied is
// said, with the rule; what a blocked client was denied is no part of that, and another one is to act
// on only if it alone was denied that much of the rest.
func TestNowAttack(t *testing.T) {
	s := newStatsStand(t, Options{})
	s.call("PUT /v1/rules", `rules:
  - {id: login-ip, match: {path: /login}, key: ip, algorithm: sliding_log, limit: 9/1h}
  - {id: login-account, match: {path: /login}, key: "attr:account", algorithm: sliding_log, limit: 5/1h}
`, "If-Match: *").want(t, 200, nil)
	guess := func(ip, account string, n, pass int) {
		t.Helper()
		s.check(fmt.Sprintf(`{"ip": %q, "method": "POST", "path": "/login", "attributes": {"account": %q}}`, ip, account), n, pass)
	}
	guess("192.0.2.1", "bob", 4, 4)
	guess("192.0.2.1", "alice", 14, 5) // nine of which the rule by account denies, and both of them the last
	s.pass(1)
	client := func() string {
		t.Helper()
		c := s.present(t).Denied.Client
		return fmt.Sprint(c.Key, " ", c.Count, " ", c.High, " ", c.Rule, " ", c.LastAt-begin.Unix(), " ", c.Most)
	}
	if a := s.present(t).Denied; a.Requests != 18 || a.Denied != 9 || a.Share != 0.5 || a.High || a.Rule != "login-account" {
		t.Errorf("%+v", a)
	}
	guess("192.0.2.1", "carol", 1, 0)
	s.pass(1)
	if a := s.present(t).Denied; a.Denied != 10 || !a.High || a.Rule != "login-ip" {
		t.Errorf("%+v", a)
	}
	if got := client(); got != "ip:192.0.2.1 10 true login-ip 1 <nil>" {
		t.Error(got)
	}
	guess("192.0.2.2", "alice", 8, 0)
	s.pass(1)
	if got := client(); got != "ip:192.0.2.1 10 true login-ip 1 &{attr:account:alice 17 0}" {
		t.Error(got)
	}
	s.call("PUT /v1/block?ip=192.0.2.1", "").want(t, 200, nil)
	if got := client(); got != "attr:account:alice 17 true login-account 2 <nil>" { // the other one has less than half
		t.Error(got)
	}
	if a := s.present(t).Denied; a.Requests != 17 || a.Denied != 8 || a.High || a.Rule != "login-account" || len(a.Blocked) != 1 {
		t.Errorf("without the blocked one: %+v", a)
	}
	s.call("PUT /v1/block?ip=192.0.2.2", "").want(t, 200, nil)
	if a := s.present(t).Denied; a.Client != nil || a.Denied > 0 || a.Rule != "" || len(a.Blocked) != 2 {
		t.Errorf("all addresses are blocked: %+v", a)
	}
	for i := range 10 { // a bystander
		guess("192.0.2.3", fmt.Sprint("account", i), 1, min(1, 9-i))
	}
	s.pass(1)
	if got := client(); got != "ip:192.0.2.3 1 false login-ip 3 <nil>" {
		t.Error(got)
	}
	guess("192.0.2.3", "dora", 9, 0)
	s.pass(1)
	if got := client(); got != "ip:192.0.2.3 10 true login-ip 4 <nil>" {
		t.Error(got)
	}
}

// What weir denies because the store is unavailable accuses nobody. What a local limit denies
// meanwhile counts, for the requests as for the client.
func TestNowOutage(t *testing.T) {
	s := newStatsStand(t, Options{})
	s.call("PUT /v1/rules", `rules:
  - {id: login, match: {path: /login}, key: ip, limit: 9/1h, on_failure: closed}
  - {id: api, match: {path: /api}, key: user, limit: 2/1h, on_failure: local}
  - {id: pay, match: {path: /pay}, key: user, limit: 9/1h, on_failure: closed}
`, "If-Match: *").want(t, 200, nil)
	s.store.lost.Store(true)
	s.check(`{"ip": "192.0.2.80", "path": "/login"}`, 30, 0)
	s.pass(1)
	if a := s.present(t).Denied; !reflect.DeepEqual(a, &NowDenied{Window: 300, Requests: 30}) {
		t.Errorf("closed: %+v, %+v", a, a.Client)
	}
	s.check(`{"user": "bob", "path": "/api"}`, 20, 2)
	s.pass(1)
	s.check(`{"user": "bob", "path": "/pay"}`, 10, 0)
	s.store.lost.Store(false)
	s.pass(1)
	if a := s.present(t).Denied; a.Requests != 60 || a.Denied != 18 || a.Share != 0.3 || !a.High || a.Rule != "api" || a.Client.Key != "user:bob" || a.Client.Count != 18 || a.Client.LastAt != begin.Unix()+1 {
		t.Errorf("local: %+v, %+v", a, a.Client)
	}
}

// A shadow rule denies nobody, and what it would have denied is not what the client is denied for.
func TestNowClient(t *testing.T) {
	who := stats.Client{Entry: archive.Entry{Key: "user:a\xff", Count: 9, Error: 1}, Last: begin, Rules: []stats.RuleCount{{Rule: "trial", Count: 9, Shadow: true}, {Rule: "api", Count: 5}}}
	got := clientNow(&who, []archive.Denial{
		{Rule: "trial", Method: "PUT", Path: "/trial", Shadow: true}, {Rule: "trial", Method: "PUT", Path: "/trial", Shadow: true}, {Rule: "other", Method: "GET", Path: "/other"},
		{Rule: "api", Method: "GET", Path: "/new"}, {Rule: "api", Method: "POST", Path: "/often"}, {Rule: "api", Method: "POST", Path: "/often"}, {Rule: "api", Method: "GET", Path: "/new"},
	})
	if want := (&NowClient{Entry: archive.Entry{Key: "user:a\uFFFD", Count: 9, Error: 1}, Rule: "api", Endpoint: &NowEndpoint{"GET", "/new"}, LastAt: begin.Unix()}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := clientNow(&who, nil); got.Endpoint != nil || got.Rule != "api" {
		t.Errorf("without a sample: %+v", got)
	}
}

// What is broken is said with since when and why; what cannot be found out is marked.
func TestNowTrouble(t *testing.T) {
	var outage, broken error
	tell := func(err *error) func() (time.Time, error) {
		return func() (time.Time, error) {
			if *err == nil {
				return time.Time{}, nil
			}
			return begin, *err
		}
	}
	s := newStatsStand(t, Options{StoreKind: "redis", Outage: tell(&outage), NotLoaded: tell(&broken)})
	a := s.present(t)
	_, version := s.engine.Rules()
	if a.Store != (NowStore{"redis", StatsStore{Up: true}}) || a.Rules.Version != version || a.Rules.Count != strings.Count(testRules, "id: ") || a.Rules.NotLoaded != nil || a.At != begin.Unix() {
		t.Errorf("%+v", a)
	}
	var problems rule.Problems
	for i := range maxNotLoaded + 1 {
		problems = append(problems, rule.Problem{Line: i, Message: "line 3", Excerpt: "secret"})
	}
	outage, broken = errors.New("connection refused"), fmt.Errorf("file: %w", problems.Err())
	s.archive.lost.Store(true)
	a = s.present(t)
	if a.Store.Up || *a.Store.UnavailableSince != begin.Unix() || a.Store.Error != "connection refused" || !a.Denied.Unavailable {
		t.Errorf("%+v, %+v", a, a.Denied)
	}
	if n := a.Rules.NotLoaded; n.Since != begin.Unix() || !strings.HasSuffix(n.Error, "and 10 more errors") || len(n.Problems) != maxNotLoaded || n.Problems[9].Line != 9 || n.Problems[9].Excerpt != "" {
		t.Errorf("%+v", n)
	}
	if a := newStand(t, Options{}).present(t); a.Denied != nil || a.Alerts != nil || a.Store.Kind != "" {
		t.Errorf("without statistics: %+v", a)
	}
}

// An archive that does not answer delays the answer for a bounded time.
func TestNowDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStatsStand(t, Options{})
		s.archive.slow.Store(true)
		before := time.Now()
		if a := s.present(t); !a.Denied.Unavailable || time.Since(before) != maxFirst {
			t.Errorf("%+v after %v", a.Denied, time.Since(before))
		}
	})
}

// Silenced alerts are counted apart, and no more than a few are named. Those whose condition no
// longer holds are not said to be active.
func TestNowAlerts(t *testing.T) {
	var all []alert.Alert
	for i := range 9 {
		all = append(all, alert.Alert{ID: string(rune('a' + i)), Silenced: i < 2, Summary: "\xff"})
	}
	all = append(all, alert.Alert{ID: "over", QuietSince: begin}, alert.Alert{ID: "silent", QuietSince: begin, Silenced: true})
	a := alertsNow(all)
	if len(a.Quiet) != 1 || a.Quiet[0].ID != "over" || a.Active != 7 || a.Silenced != 2 || len(a.Latest) != maxNow || a.Latest[0].ID != "c" || a.Latest[0].Summary != "\uFFFD" {
		t.Errorf("%+v", a)
	}
	s := newStatsStand(t, Options{})
	s.alarm()
	if a := s.present(t); a.Alerts.Active == 0 || a.Alerts.Latest[0].Kind == "" {
		t.Errorf("%+v", a.Alerts)
	}
}
