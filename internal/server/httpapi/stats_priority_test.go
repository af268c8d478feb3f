package httpapi

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// A summary has requests by priority if not all are normal, and what a gateway sheds if it does.
func TestStatsPriorities(t *testing.T) {
	protect := &StatsProtect{CPU: 0.875, CPULimit: 0.85, Memory: 0.25, Shed: map[string]uint64{"critical": 0, "high": 0, "normal": 1, "low": 7}}
	var shown *StatsProtect
	s := newStatsStand(t, Options{Protect: func() *StatsProtect { return shown }})
	ask := func() (summary SummaryAnswer) {
		t.Helper()
		s.call(fmt.Sprintf("GET /v1/stats/summary?from=%d&to=%d", begin.Unix(), begin.Unix()+8), "").want(t, 200, &summary)
		return summary
	}
	s.check(aliceAsks, 1, 1)
	s.pass(1)
	if got := ask(); got.Requests != 1 || got.Priorities != nil || got.Protect != nil {
		t.Errorf("%+v", got)
	}
	shown = protect
	s.check(`{"ip": "192.0.2.1", "method": "POST", "path": "/api/login", "priority": "low"}`, 3, 2)
	s.pass(1)
	got := ask()
	want := []stats.PrioritySummary{
		{Priority: "critical"}, {Priority: "high"},
		{Priority: "normal", Requests: 1, Counts: archive.Counts{Allowed: 1}},
		{Priority: "low", Requests: 3, Counts: archive.Counts{Allowed: 2, Denied: 1}},
	}
	if !reflect.DeepEqual(got.Priorities, want) || !reflect.DeepEqual(got.Protect, protect) {
		t.Errorf("%+v, %+v", got.Priorities, got.Protect)
	}
}
