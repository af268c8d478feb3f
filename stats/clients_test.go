package stats

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

const threeRules = `
rules:
  - {id: narrow, key: user, limit: 2/1m}
  - {id: wide, key: ip, limit: 1000/1m}
  - {id: trial, key: user, limit: 1/1m, mode: shadow}
`

// Whatever the range, counts over time add up to the ranking, and that to what happened.
func TestClientsAddUp(t *testing.T) {
	d := newDesk(t, threeRules)
	chance := rand.New(rand.NewPCG(3, 4))
	type event struct {
		at  int64
		key string
		ok  bool
	}
	var events []event
	var v engine.Verdict
	for range 3 * 360 { // three hours by ten seconds
		for range chance.IntN(4) {
			req := rule.Request{User: fmt.Sprint("u", chance.IntN(6))}
			if err := d.engine.Check(t.Context(), &req, &v); err != nil {
				t.Fatal(err)
			}
			events = append(events, event{d.clock.now().Unix(), "user:" + req.User, v.Allowed})
		}
		d.clock.advance(10 * time.Second)
		d.tick(d.clock.now())
		d.sendAll(t.Context())
	}
	now := d.clock.now()
	for _, c := range []struct{ ago, long, step time.Duration }{
		{time.Minute, time.Minute, 10 * time.Second},
		{9 * time.Minute, 5 * time.Minute, 10 * time.Second},
		{time.Hour, time.Hour, 5 * time.Minute},
		{115 * time.Minute, 20 * time.Minute, 5 * time.Minute},
		{3 * time.Hour, 3 * time.Hour, time.Hour},
	} {
		for _, by := range []By{ByTotal, ByAllowed, ByDenied} {
			got, err := d.Clients(t.Context(), ClientsQuery{From: now.Add(-c.ago), To: now.Add(c.long - c.ago), By: by, N: 5})
			if err != nil || got.Step != c.step || got.From.After(now.Add(-c.ago)) || got.To.Before(now.Add(c.long-c.ago)) {
				t.Fatalf("%+v: %+v, %v", c, got, err)
			}
			truth, total := map[string]int64{}, int64(0)
			for _, e := range events {
				if e.at >= got.From.Unix() && e.at < got.To.Unix() && (by == ByTotal || e.ok == (by == ByAllowed)) {
					truth[e.key]++
					total++
				}
			}
			if got.Total != total || len(got.Clients) != min(5, len(truth)) {
				t.Errorf("%+v by %v: %d of %d clients, %d requests; want %d of %d", c, by, len(got.Clients), len(truth), got.Total, total, total)
			}
			for _, one := range got.Clients {
				sum, first := int64(0), slices.IndexFunc(one.Values, func(n int64) bool { return n > 0 })
				for _, n := range one.Values {
					sum += n
				}
				if one.Count != truth[one.Key] || sum != one.Count || one.Error != 0 || int64(len(one.Values)) != int64(got.To.Sub(got.From)/got.Step) {
					t.Errorf("%+v by %v: %+v, want %d", c, by, one, truth[one.Key])
				}
				if !one.First.Equal(got.From.Add(time.Duration(first)*got.Step)) || one.Last.Before(one.First) {
					t.Errorf("%+v by %v: since %v, until %v: %v", c, by, one.First, one.Last, one.Values)
				}
			}
			for _, e := range truthOutside(truth, got.Clients) {
				if truth[e] > got.Floor {
					t.Errorf("%s came %d times, and the floor is %d", e, truth[e], got.Floor)
				}
			}
		}
	}
	day, err := d.ClientSeries(t.Context(), "user:u1", now.Add(-24*time.Hour), now)
	if err != nil || day.Step != time.Hour || len(day.Points) < 24 {
		t.Fatalf("%+v, %v", day, err)
	}
	var allowed, denied, wantAllowed, wantDenied int64
	for _, p := range day.Points {
		allowed, denied = allowed+p.Allowed, denied+p.Denied
	}
	for _, e := range events {
		switch {
		case e.key != "user:u1":
		case e.ok:
			wantAllowed++
		default:
			wantDenied++
		}
	}
	if allowed != wantAllowed || denied != wantDenied || denied == 0 {
		t.Errorf("%d and %d, want %d and %d", allowed, denied, wantAllowed, wantDenied)
	}
}

// truthOutside are the clients that are not in a list.
func truthOutside(truth map[string]int64, listed []Client) (rest []string) {
	for key := range truth {
		if !slices.ContainsFunc(listed, func(c Client) bool { return c.Key == key }) {
			rest = append(rest, key)
		}
	}
	return rest
}

// Clients of a shadow rule are those that it would have denied, and each client says which
// rules decided so, or would have.
func TestClientsOfRules(t *testing.T) {
	d := newDesk(t, threeRules)
	d.check(t, rule.Request{User: "alice", IP: alice.IP}, 4)
	d.check(t, rule.Request{User: "al|ex"}, 2)
	d.pass(1)
	for _, c := range []struct {
		query ClientsQuery
		want  string
	}{
		{ClientsQuery{By: ByDenied}, "[ip:203.0.113.7 2 [{narrow 2 false true}]][user:alice 2 [{trial 3 true false} {narrow 2 false false}]]"},
		{ClientsQuery{By: ByDenied, Rule: "narrow"}, "[user:alice 2 [{trial 3 true false} {narrow 2 false false}]]"},
		{ClientsQuery{By: ByDenied, Rule: "trial"}, "[user:alice 3 [{trial 3 true false} {narrow 2 false false}]][user:al\\|ex 1 [{trial 1 true false}]]"},
		{ClientsQuery{By: ByAllowed, Rule: "wide"}, "[ip:203.0.113.7 4 [{wide 4 false false}]]"},
		{ClientsQuery{By: ByTotal, Prefix: "al", N: 1}, "[user:alice 4 [{narrow 4 false false} {trial 4 true false}]]"},
		{ClientsQuery{By: ByTotal, Prefix: "user:al\\"}, "[user:al\\|ex 2 [{narrow 2 false false} {trial 2 true false}]]"},
		{ClientsQuery{By: ByTotal, Prefix: "lice"}, ""},
		{ClientsQuery{By: ByTotal, Rule: "none"}, ""},
	} {
		c.query.From, c.query.To = noon, d.clock.now()
		got, err := d.Clients(t.Context(), c.query)
		text := ""
		for _, one := range got.Clients {
			text += fmt.Sprint([]any{one.Key, one.Count, one.Rules})
		}
		if err != nil || text != c.want || got.Sampling != 1 {
			t.Errorf("%+v: %s, 1 in %d, %v; want %s", c.query, text, got.Sampling, err, c.want)
		}
	}
	for _, q := range []ClientsQuery{{By: ByShadowDenied}, {N: -1}, {N: MaxClients + 1}} {
		q.From, q.To = noon, d.clock.now()
		if _, err := d.Clients(t.Context(), q); err == nil {
			t.Errorf("%+v is answered", q)
		}
	}
	if _, err := d.Clients(t.Context(), ClientsQuery{From: noon, To: noon}); err == nil {
		t.Error("no time is a range")
	}
}

// Whichever rule denies a client, its ranking has the client, and the client names the rule:
// also where the rule counts all clients together, or by a key that is not the client's. That one is
// marked, and named only for requests that no rule with the key of the client denied.
func TestDeniedByAnotherRule(t *testing.T) {
	for name, c := range map[string]struct {
		rules, clients, rule string // clients that are denied, and those in the ranking of the rule "all"
	}{
		"alone": {
			"{id: all, key: global, limit: 1/1h}",
			"[user:alice 2 [{all 2 false false}]]", "[user:alice 2]",
		},
		"beside keys": {
			"{id: wide, key: user, limit: 9/1h}, {id: all, key: global, limit: 1/1h}, {id: net, key: ip, limit: 9/1h}",
			"[ip:203.0.113.7 2 [{all 2 false true}]][user:alice 2 [{all 2 false false}]]", "[user:alice 2]",
		},
		"two of them": {
			"{id: all, key: global, limit: 1/1h}, {id: more, key: global, limit: 2/1h}",
			"[user:alice 2 [{all 2 false false}]]", "[user:alice 2]",
		},
		"by another key": {
			"{id: wide, key: user, limit: 9/1h}, {id: all, key: ip, limit: 1/1h}, {id: trial, key: global, limit: 1/1h, mode: shadow}",
			"[ip:203.0.113.7 2 [{all 2 false false}]][user:alice 2 [{trial 2 true false} {all 2 false true}]]", "[ip:203.0.113.7 2]",
		},
		"by one and then by both": {
			"{id: wide, key: user, limit: 2/1h, algorithm: sliding_log, count_denied: true}, {id: all, key: ip, limit: 1/1h}",
			"[ip:203.0.113.7 2 [{all 2 false false}]][user:alice 2 [{wide 1 false false} {all 1 false true}]]", "[ip:203.0.113.7 2]",
		},
		"by both": {
			"{id: wide, key: user, limit: 1/1h}, {id: all, key: ip, limit: 1/1h}",
			"[ip:203.0.113.7 2 [{all 2 false false}]][user:alice 2 [{wide 2 false false}]]", "[ip:203.0.113.7 2]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "rules: ["+c.rules+"]")
			d.check(t, rule.Request{User: "alice", IP: alice.IP}, 3)
			flush(t, d.Recorder)
			got, err := d.Clients(t.Context(), ClientsQuery{From: noon, To: noon.Add(time.Minute), By: ByDenied})
			if err != nil {
				t.Fatal(err)
			}
			clients, ranked := "", ""
			for _, one := range got.Clients {
				clients += fmt.Sprint([]any{one.Key, one.Count, one.Rules})
			}
			top, err := d.Top(t.Context(), TopQuery{Rule: "all", By: ByDenied, Window: LastHour})
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range top.Keys {
				ranked += fmt.Sprint([]any{one.Key, one.Count})
			}
			if clients != c.clients || ranked != c.rule || top.Total != 2 || got.Total != 2 {
				t.Errorf("%s of %d; all: %s of %d", clients, got.Total, ranked, top.Total)
			}
		})
	}
}

// Rules over time add up to the series of each, whatever the step and how many are named.
func TestRulesAddUp(t *testing.T) {
	d := newDesk(t, threeRules)
	for i := range 300 {
		d.check(t, rule.Request{User: fmt.Sprint("u", i%7), IP: alice.IP}, 1+i%3)
		d.pass(1)
	}
	for _, by := range []By{ByTotal, ByAllowed, ByDenied, ByShadowDenied, BySoftDenied} {
		for _, n := range []int{1, 2, 50} {
			for _, step := range []time.Duration{0, 7 * time.Second, time.Minute} {
				got, err := d.RuleSeries(t.Context(), RuleQuery{From: noon, To: d.clock.now(), Step: step, By: by, N: n})
				if err != nil || len(got.Rules) > n {
					t.Fatalf("%+v, %v", got, err)
				}
				rest := make([]int64, len(got.Times))
				for _, id := range []string{"narrow", "wide", "trial"} {
					s, err := d.Series(t.Context(), Query{From: noon, To: d.clock.now(), Step: step, Rule: id})
					if err != nil || len(s.Points) != len(got.Times) || got.Step != s.Step {
						t.Fatalf("%+v, %v", s, err)
					}
					named := slices.IndexFunc(got.Rules, func(v RuleValues) bool { return v.Rule == id })
					for i, p := range s.Points {
						want := by.of(&p.Counts)
						switch {
						case named < 0:
							rest[i] += want
						case got.Rules[named].Values[i] != want || !got.Times[i].Equal(p.Time):
							t.Fatalf("%s by %v: point %d is %d, want %d", id, by, i, got.Rules[named].Values[i], want)
						}
					}
				}
				if !slices.Equal(got.Other.Values, rest) {
					t.Errorf("by %v, %d rules: the others are %v, want %v", by, n, got.Other.Values, rest)
				}
			}
		}
	}
	for _, q := range []RuleQuery{{By: BySoftDenied + 1}, {N: -1}, {N: MaxSeriesRules + 1}, {Step: -1}} {
		q.From, q.To = noon, d.clock.now()
		if _, err := d.RuleSeries(t.Context(), q); err == nil {
			t.Errorf("%+v is answered", q)
		}
	}
}

// Percentiles of usage are never too low, never beyond the limit, and an eighth too high at
// most.
func TestUsageOfLimits(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, algorithm: fixed_window, limit: 100/1h, tiers: {pro: 1000/1h}}]")
	d.check(t, rule.Request{User: "a"}, 130)
	d.check(t, rule.Request{User: "b", Tier: "pro"}, 50)
	d.check(t, rule.Request{User: "c", Tier: "gold"}, 10)
	flush(t, d.Recorder)
	got, err := d.Usage(t.Context(), "api", noon, noon.Add(time.Hour))
	if err != nil || len(got.Limits) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	plain, pro := got.Limits[0], got.Limits[1]
	if plain.Tier != "" || plain.Limit != 100 || plain.Requests != 140 || plain.Denied != 30 || plain.Max != 100 || plain.P99 != 100 {
		t.Errorf("%+v", plain)
	}
	if pro.Tier != "pro" || pro.Limit != 1000 || pro.Requests != 50 || pro.Denied != 0 || pro.P50 < 25 || pro.P50 > 28 || pro.Max < 50 || pro.Max > 56 {
		t.Errorf("%+v", pro)
	}
	for _, l := range got.Limits {
		sum, before := int64(0), int64(0)
		for _, s := range l.Slots { // every number of units was in use, so no slot is missing
			if s.From != before+1 || s.UpTo < s.From || s.Count < 1 || s.UpTo > l.Limit {
				t.Errorf("%+v", l.Slots)
			}
			sum, before = sum+s.Count, s.UpTo
		}
		if sum != l.Requests-l.Denied || before != l.Max {
			t.Errorf("%+v", l)
		}
	}
	// A limit that is not in force any more is not known.
	d.install(t, "rules: [{id: api, key: user, limit: 7/1m}]")
	if got, err = d.Usage(t.Context(), "api", noon, noon.Add(time.Hour)); err != nil || got.Limits[0].Limit != 0 || got.Limits[0].Max != archive.SlotTop(archive.HistogramSlot(100)) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = d.Usage(t.Context(), "none", noon, noon.Add(time.Hour)); err != nil || len(got.Limits) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
