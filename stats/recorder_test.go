package stats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

const someRules = `
rules:
  - {id: api, key: user, algorithm: sliding_log, limit: 3/1h, tiers: {pro: 5/1h}, on_failure: open}
  - {id: soon, key: user, algorithm: sliding_log, limit: 2/1h, mode: shadow}
block: {user: [mallory]}
`

// summary is the last hour.
func (d *desk) summary(t testing.TB) *Summary {
	t.Helper()
	flush(t, d.Recorder)
	s, err := d.Summary(t.Context(), d.clock.now().Add(-30*time.Minute), d.clock.now().Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every request, and what every rule said of it, ends in exactly one way.
func TestOutcomes(t *testing.T) {
	d := newDesk(t, someRules)
	d.check(t, alice, 4)                                     // the third is too much for the shadow, the fourth for the rule
	d.check(t, rule.Request{User: "bob", Tier: "pro"}, 6)    // the same, later
	d.check(t, rule.Request{User: "carol", Tier: "gold"}, 1) // a tier that no rule names
	d.check(t, rule.Request{User: "mallory"}, 2)
	d.pass(1)
	d.store.lost.Store(true)
	d.check(t, alice, 3)
	d.install(t, strings.Replace(someRules, "open", "closed", 1))
	d.check(t, alice, 2)
	d.pass(1)

	s := d.summary(t)
	want := archive.Counts{Allowed: 2 + 2 + 1, Denied: 2, ShadowDenied: 1 + 3, DegradedAllowed: 3, DegradedDenied: 2, Blocked: 2}
	if s.Counts != want || s.Counts.Total() != 18 || s.Decision.Count != 18 {
		t.Errorf("requests %+v, want %+v; %d timed", s.Counts, want, s.Decision.Count)
	}
	if len(s.Rules) != 2 || s.Rules[0].Rule != "api" && s.Rules[1].Rule != "api" {
		t.Fatalf("rules %+v", s.Rules)
	}
	for _, r := range s.Rules {
		got := fmt.Sprintf("%+v", r.Tiers)
		want := "[{Tier: Requests:9 Counts:{Allowed:3 Denied:1 ShadowDenied:0 SoftDenied:0 DegradedAllowed:3 DegradedDenied:2 Blocked:0 UnknownClient:0}} {Tier:(other) Requests:1 Counts:{Allowed:1 Denied:0 ShadowDenied:0 SoftDenied:0 DegradedAllowed:0 DegradedDenied:0 Blocked:0 UnknownClient:0}} {Tier:pro Requests:6 Counts:{Allowed:5 Denied:1 ShadowDenied:0 SoftDenied:0 DegradedAllowed:0 DegradedDenied:0 Blocked:0 UnknownClient:0}}]"
		if r.Rule == "soon" {
			// The tier says nothing to it. Without the store a shadow is not asked, and
			// that it would have denied what others deny is counted, too.
			want = "[{Tier: Requests:9 Counts:{Allowed:2 Denied:0 ShadowDenied:2 SoftDenied:0 DegradedAllowed:5 DegradedDenied:0 Blocked:0 UnknownClient:0}} {Tier:(other) Requests:7 Counts:{Allowed:3 Denied:0 ShadowDenied:4 SoftDenied:0 DegradedAllowed:0 DegradedDenied:0 Blocked:0 UnknownClient:0}}]"
		}
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", r.Rule, got, want)
		}
		if r.Counts.Total() != r.Decision.Count {
			t.Errorf("%s: %d times of %d decisions", r.Rule, r.Decision.Count, r.Counts.Total())
		}
	}
}

// What statistics count has the names that metrics use.
func TestOutcomeNames(t *testing.T) {
	text, err := json.Marshal(archive.Counts{})
	if err != nil {
		t.Fatal(err)
	}
	var counts map[string]int64
	if err := json.Unmarshal(text, &counts); err != nil {
		t.Fatal(err)
	}
	for o := range engine.Outcomes {
		delete(counts, o.String())
	}
	if len(counts) > 0 {
		t.Errorf("engine.Outcome has no such names: %v", slices.Collect(maps.Keys(counts)))
	}
}

// The outcome of a request can differ from that of its only rule: in local fallback the
// request is degraded, and the rule allows or denies. Each is counted once.
func TestOutcomeOfLocalDecisions(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, algorithm: sliding_log, limit: 2/1h, on_failure: local}]")
	d.check(t, alice, 1)
	d.store.lost.Store(true)
	d.check(t, alice, 3)
	s := d.summary(t)
	if want := (archive.Counts{Allowed: 1, DegradedAllowed: 1, DegradedDenied: 2}); s.Counts != want || s.Decision.Count != 4 {
		t.Errorf("requests %+v, want %+v; %d timed", s.Counts, want, s.Decision.Count)
	}
	if want := (archive.Counts{Allowed: 2, Denied: 2}); len(s.Rules) != 1 || s.Rules[0].Counts != want || s.Rules[0].Decision.Count != 4 {
		t.Errorf("rules %+v, want %+v", s.Rules, want)
	}
}

// Percentiles of a longer time are those of all its requests.
func TestPercentilesAreMerged(t *testing.T) {
	d := newDesk(t, someRules)
	v := &engine.Verdict{Allowed: true}
	for range 98 { // a second of quick ones, and then seconds of a slow one
		d.Observe(&alice, v, time.Millisecond)
	}
	d.pass(1)
	for range 2 {
		d.Observe(&alice, v, time.Second)
		d.pass(1)
	}
	s := d.summary(t)
	within := func(got, want time.Duration) bool { return got >= want && got <= want+want/8 }
	if !within(s.Decision.P50, time.Millisecond) || !within(s.Decision.P90, time.Millisecond) || !within(s.Decision.P99, time.Second) {
		t.Errorf("percentiles %+v", s.Decision)
	}
	if s.Decision.Mean != (98*time.Millisecond+2*time.Second)/100 {
		t.Errorf("mean %v", s.Decision.Mean)
	}
}

func TestUpstream(t *testing.T) {
	d := newDesk(t, someRules)
	d.ObserveUpstream("shop", 200, time.Millisecond, nil)
	d.ObserveUpstream("shop", 503, time.Millisecond, nil)
	d.ObserveUpstream("shop", 502, time.Second, errors.New("denied"))
	d.ObserveUpstream("blog", 499, time.Second, fmt.Errorf("client: %w", context.Canceled))
	for i := range 500 {
		d.ObserveUpstream(fmt.Sprint("made up ", i), 200, time.Millisecond, nil)
	}
	d.ObserveUpstream(strings.Repeat("x", 1000), 200, time.Millisecond, nil)
	d.ObserveUpstream("\xff", 200, time.Millisecond, nil)
	s := d.summary(t)
	if s.Upstream.Requests != 506 || s.Upstream.Errors != 2 || s.Upstream.Latency.Count != 506 {
		t.Errorf("all: %+v", s.Upstream)
	}
	if len(s.Routes) != DefaultMaxRoutes+1 {
		t.Errorf("%d routes", len(s.Routes))
	}
	i := slices.IndexFunc(s.Routes, func(u Upstream) bool { return u.Route == "shop" })
	if shop := s.Routes[i]; shop.Requests != 3 || shop.Errors != 2 || shop.ErrorShare < 0.66 {
		t.Errorf("shop: %+v", shop)
	}
	i = slices.IndexFunc(s.Routes, func(u Upstream) bool { return u.Route == archive.Other })
	if s.Routes[i].Requests != 502-(DefaultMaxRoutes-2) {
		t.Errorf("others: %+v", s.Routes[i])
	}
}

// Rules change while requests are decided: nothing is lost, and late results of
// previous rules are counted for the rule.
func TestInstall(t *testing.T) {
	d := newDesk(t, someRules)
	d.check(t, alice, 1)
	old, _ := d.engine.Rules()
	d.install(t, "rules: [{id: new, key: global, limit: 9/1h}, {id: api, key: ip, limit: 9/1h}]")
	v := engine.Verdict{Allowed: true, Results: []engine.Result{{Rule: old.Rules()[0], Asked: true}, {Rule: old.Rules()[1], Asked: true}}}
	for i := range v.Results {
		v.Results[i].Allowed = true
	}
	d.Observe(&alice, &v, 1) // of the old rules
	d.check(t, alice, 1)
	s := d.summary(t)
	got := map[string]int64{}
	for _, r := range s.Rules {
		got[r.Rule] = r.Counts.Allowed
	}
	if fmt.Sprint(got) != "map[(other):1 api:3 new:1 soon:1]" || s.Counts.Allowed != 3 {
		t.Errorf("rules %v, requests %+v", got, s.Counts)
	}
}

func TestRulesAreBounded(t *testing.T) {
	a, err := archive.NewMemory(archive.Keep{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder(t, Options{Archive: a, MaxRules: 2})
	table := tableOf(t, "rules: [{id: a, key: ip, limit: 9/1h}, {id: off, key: ip, limit: 8/1h, mode: 'off'}, {id: b, key: ip, limit: 7/1h}, {id: c, key: ip, limit: 6/1h}, {id: d, key: ip, limit: 5/1h}]")
	r.Install(table, 1)
	var v engine.Verdict
	for _, c := range table.Rules() {
		v.Results = append(v.Results, engine.Result{Rule: c, Asked: true, Key: "ip:203.0.113.7"})
	}
	r.Observe(&alice, &v, 1)
	flush(t, r)
	slots, err := a.Read(t.Context(), archive.Series, 0, time.Now().Unix()-10, time.Now().Unix()+10)
	if err != nil || len(slots) != 1 {
		t.Fatalf("%v, %v", slots, err)
	}
	if got := slots[0].Frame.Rules; len(got) != 3 || got[archive.Line{Rule: archive.Other}].Denied != 3 {
		t.Errorf("%v", got)
	}
}

// Rules that come with demands are counted by their ids, several with one id as one, in
// the room that the rules of the document leave.
func TestDemandsAreNamed(t *testing.T) {
	a, err := archive.NewMemory(archive.Keep{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder(t, Options{Archive: a, MaxRules: 3})
	table := tableOf(t, "rules: [{id: a, key: ip, limit: 9/1h}]")
	var demanded []*rule.Entry
	for _, id := range []string{"envoy:edge.x", "envoy:edge.y", "envoy:edge.x", "envoy:edge.z"} {
		demanded = append(demanded, &rule.Entry{Rule: &rule.Rule{ID: id}})
	}
	// In whichever order they come.
	r.InstallDemands(demanded)
	r.Install(table, 1)
	for _, c := range append(demanded, table.Rules()...) {
		r.Observe(&rule.Request{}, &engine.Verdict{Results: []engine.Result{{Rule: c, Asked: true, Key: "edge|x=1"}}}, 1)
	}
	flush(t, r)
	slots, err := a.Read(t.Context(), archive.Series, 0, time.Now().Unix()-10, time.Now().Unix()+10)
	if err != nil || len(slots) != 1 {
		t.Fatalf("%v, %v", slots, err)
	}
	got := map[string]int64{}
	for l, counts := range slots[0].Frame.Rules {
		got[l.Rule] += counts.Denied
	}
	if fmt.Sprint(got) != "map[(other):1 a:1 envoy:edge.x:2 envoy:edge.y:1]" {
		t.Error(got)
	}
	for _, id := range []string{"a", "envoy:edge.x", archive.Other} {
		if !r.Counts(id) || r.Counts("envoy:edge.z") {
			t.Errorf("%s is not counted, or another is", id)
		}
	}
	top, err := r.Top(t.Context(), TopQuery{Rule: "envoy:edge.x", By: ByDenied})
	if err != nil || len(top.Keys) != 1 || top.Keys[0].Key != "edge|x=1" {
		t.Errorf("%v, %v", top, err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	a, _ := archive.NewMemory(archive.Keep{})
	for _, o := range []Options{{}, {Archive: a, MaxRules: -1}, {Archive: a, MaxRoutes: 1e6}, {Archive: a, MaxPending: time.Millisecond}, {Archive: a, MaxSubscribers: -3}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// Who came most often is found, under a rule and over all, however many others came;
// API keys are there as hashes only.
func TestTop(t *testing.T) {
	d := newDesk(t, `
rules:
  - {id: by-user, key: user, algorithm: fixed_window, limit: 50/1d}
  - {id: by-key, key: api_key, limit: 10000/1h}
  - {id: everything, key: global, limit: 100000/1s}
`)
	for round := range 30 {
		d.check(t, rule.Request{User: "heavy"}, 20)
		d.check(t, rule.Request{User: "light"}, 2)
		d.check(t, rule.Request{APIKey: "secret"}, 5)
		for i := range 40 {
			d.check(t, rule.Request{User: fmt.Sprintf("guest%d-%d", round, i)}, 1)
		}
		d.pass(1)
	}
	flush(t, d.Recorder)
	hashed := "api_key:" + rule.HashAPIKey("secret")
	for _, c := range []struct {
		query TopQuery
		want  []archive.Entry // with the true counts
	}{
		{TopQuery{By: ByTotal, N: 2}, []archive.Entry{{Key: "user:heavy", Count: 600}, {Key: hashed, Count: 150}}},
		{TopQuery{By: ByDenied}, []archive.Entry{{Key: "user:heavy", Count: 550}, {Key: "user:light", Count: 10}}},
		{TopQuery{By: ByAllowed, Rule: "by-user", Window: LastHour, N: 2}, []archive.Entry{{Key: "user:heavy", Count: 50}, {Key: "user:light", Count: 50}}},
		{TopQuery{By: ByTotal, Rule: "by-user", Window: LastDay, N: 1}, []archive.Entry{{Key: "user:heavy", Count: 600}}},
		{TopQuery{Rule: "everything", N: 3}, []archive.Entry{{Key: "user:heavy", Count: 600}, {Key: hashed, Count: 150}, {Key: "user:light", Count: 60}}},
	} {
		top, err := d.Top(t.Context(), c.query)
		if err != nil {
			t.Fatal(err)
		}
		agrees := slices.EqualFunc(top.Keys, c.want, func(got, want archive.Entry) bool {
			return got.Key == want.Key && got.Count-got.Error <= want.Count && want.Count <= got.Count && got.Error < 20
		})
		if !agrees {
			t.Errorf("%v %v of %q: %v, want %v", c.query.Window, c.query.By, c.query.Rule, top.Keys, c.want)
		}
	}
	// After two minutes the last minute is empty, the last hour is not.
	d.pass(120)
	flush(t, d.Recorder)
	for window, want := range map[Window]int{LastMinute: 0, LastHour: 10, LastDay: 10} {
		top, err := d.Top(t.Context(), TopQuery{Window: window})
		if err != nil || len(top.Keys) != want {
			t.Errorf("%v: %d keys, %v", window, len(top.Keys), err)
		}
	}
	for _, q := range []TopQuery{{By: 9}, {Window: 9}, {N: -1}} {
		if _, err := d.Top(t.Context(), q); err == nil {
			t.Errorf("%+v is answered", q)
		}
	}
}

func TestNames(t *testing.T) {
	for _, by := range []By{ByTotal, ByAllowed, ByDenied} {
		if got, err := ParseBy(by.String()); got != by || err != nil {
			t.Errorf("%v is read as %v, %v", by, got, err)
		}
	}
	for _, w := range []Window{LastMinute, LastHour, LastDay} {
		if got, err := ParseWindow(w.String()); got != w || err != nil {
			t.Errorf("%v is read as %v, %v", w, got, err)
		}
	}
	if _, err := ParseBy("x"); err == nil {
		t.Error("x is a ranking")
	}
	if _, err := ParseWindow("x"); err == nil {
		t.Error("x is a window")
	}
}

// In JSON, durations are microseconds, and times Unix seconds, to the last digit.
func TestJSON(t *testing.T) {
	p := Percentiles{Count: 3, P50: 1500, P90: time.Microsecond, P99: 2 * time.Second, Mean: time.Millisecond + 1}
	in := InFlight{Mean: 0.5, Highest: 2}
	for _, c := range []struct {
		value any
		want  string
	}{
		{p, `{"p50":1.5,"p90":1,"p99":2000000,"mean":1000.001}`},
		{in, `{"mean":0.5,"highest":2}`},
		{archive.Instant(1767225600123456), `1767225600.123456`},
	} {
		if got, err := json.Marshal(c.value); err != nil || string(got) != c.want {
			t.Errorf("%s, %v; want %s", got, err, c.want)
		}
	}
	var again Percentiles
	if err := json.Unmarshal([]byte(`{"p50":1.5,"p90":1,"p99":2000000,"mean":1000.001}`), &again); err != nil {
		t.Fatal(err)
	}
	if p.Count = 0; again != p {
		t.Errorf("%+v, want %+v", again, p)
	}
}
