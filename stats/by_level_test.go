package stats

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// Each level that denies counts a request once, also in the shadow, whatever becomes of the rules meanwhile.
func TestDenialsByLevel(t *testing.T) {
	rules := func(levels string) string {
		return "{levels: [org, team, user], rules: [{id: a, key: levels, algorithm: fixed_window, levels: {" + levels + "}}, {id: s, key: levels, mode: shadow, levels: {org: 1/1h}}, {id: b, key: user, limit: 3/1h}]}"
	}
	d := newDesk(t, rules("org: 3/1h, user: {limits: [2/1h, 2/1d]}"))
	send := func(user string, n int) {
		t.Helper()
		d.check(t, rule.Request{User: user, Attributes: map[string]string{"org": "acme"}}, n)
	}
	levels := func(s *Summary) map[string][]LevelSummary {
		byRule := map[string][]LevelSummary{}
		for _, r := range s.Rules {
			byRule[r.Rule] = r.Levels
		}
		return byRule
	}
	send("ann", 3) // the third is denied by both limits of the user
	send("bob", 1)
	d.install(t, rules("team: 5/1h, org: 3/1h"))
	send("ann", 1) // by the organization; the user is no level any more
	d.pass(1)
	send("eve", 2)
	d.pass(1)

	summary := testkit.Must(d.Summary(t.Context(), noon, noon.Add(2*time.Second)))(t)
	want := map[string][]LevelSummary{"a": {{"org", 3}, {"user", 1}}, "b": nil, "s": {{"org", 6}}}
	if got := levels(summary); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	series := testkit.Must(d.Series(t.Context(), Query{From: noon, To: noon.Add(2 * time.Second), Rule: "a"}))(t)
	if p := series.Points; len(p) != 2 || !reflect.DeepEqual(p[0].Levels, []LevelSummary{{"org", 1}, {"user", 1}}) || !reflect.DeepEqual(p[1].Levels, []LevelSummary{{"org", 2}}) {
		t.Errorf("%+v", series.Points)
	}
	for _, q := range []Query{{Rule: "b"}, {Rule: "a", Tier: NoTier}, {}} {
		q.From, q.To = noon, noon.Add(2*time.Second)
		for _, p := range testkit.Must(d.Series(t.Context(), q))(t).Points {
			if p.Levels != nil {
				t.Errorf("%+v has %+v", q, p.Levels)
			}
		}
	}
	var last *Summary
	testkit.OK(t, d.Replay(t.Context(), noon.Add(time.Second), noon.Add(2*time.Second), func(l Live) { last = l.Summary() }))
	if got := levels(last); !reflect.DeepEqual(got["a"], []LevelSummary{{"org", 2}}) {
		t.Errorf("the last second: %+v", got)
	}

	var saved bytes.Buffer
	testkit.OK(t, d.memory.Snapshot(&saved))
	again := testkit.Must(archive.NewMemory(archive.Keep{}))(t)
	testkit.OK(t, again.Restore(&saved))
	r := newRecorder(t, Options{Archive: again, Clock: d.clock.now})
	if got := levels(testkit.Must(r.Summary(t.Context(), noon, noon.Add(2*time.Second)))(t)); !reflect.DeepEqual(got, want) {
		t.Errorf("after a restart: %+v, want %+v", got, want)
	}
}
