package httpapi

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/stats"
)

// Statistics tell which level of a rule has denied, and at which level the clients of a ranking are.
func TestStatsLevels(t *testing.T) {
	rules := openRules(t, "{levels: [org, user], rules: [{id: spend, key: levels, levels: {org: 4/1h, user: 2/1h}}]}")
	s := newStatsStand(t, Options{Service: manage.Service{Rules: rules}})
	ask := func(user string, times, allowed int) {
		t.Helper()
		s.check(fmt.Sprintf(`{"user": %q, "attributes": {"org": "acme"}}`, user), times, allowed)
	}
	ask("ann", 4, 2)
	ask("bob", 2, 2)
	ask("eve", 1, 0)
	s.pass(1)
	span := fmt.Sprintf("from=%d&to=%d", begin.Unix(), begin.Unix()+1)
	want := []stats.LevelSummary{{Level: "user", Denied: 2}, {Level: "org", Denied: 1}}
	var summary SummaryAnswer
	s.call("GET /v1/stats/summary?"+span, "").want(t, 200, &summary)
	if len(summary.Rules) != 1 || !reflect.DeepEqual(summary.Rules[0].Levels, want) {
		t.Errorf("%+v", summary.Rules)
	}
	var series SeriesAnswer
	s.call("GET /v1/stats/series?rule=spend&"+span, "").want(t, 200, &series)
	if len(series.Points) != 1 || !reflect.DeepEqual(series.Points[0].Levels, want) {
		t.Errorf("%+v", series.Points)
	}
	entries := []TopEntry{{Key: "user:ann", Level: "user", Count: 2}, {Key: "org:acme", Level: "org", Count: 1}}
	var top TopAnswer
	s.call("GET /v1/stats/top?rule=spend", "").want(t, 200, &top)
	if !reflect.DeepEqual(top.Entries, entries) {
		t.Errorf("%+v", top.Entries)
	}
	var clients ClientsAnswer
	s.call("GET /v1/stats/clients?rule=spend&"+span, "").want(t, 200, &clients)
	if len(clients.Clients) != 2 || clients.Clients[0].TopEntry != entries[0] || clients.Clients[1].TopEntry != entries[1] {
		t.Errorf("%+v", clients.Clients)
	}
	top = TopAnswer{}
	s.call("GET /v1/stats/top", "").want(t, 200, &top)
	if len(top.Entries) != 2 || top.Entries[0].Level != "" {
		t.Errorf("without a rule: %+v", top.Entries)
	}
}
