package httpapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/stats"
)

// Requests in flight are with their rule, in summaries, in series and in the stream.
func TestStatsInFlight(t *testing.T) {
	s := newStatsStand(t, Options{})
	c := s.recorder.Places("api")
	c.Reach(3)
	c.Take()
	s.pass(4)
	var summary SummaryAnswer
	ask := func() *stats.InFlight {
		t.Helper()
		summary = SummaryAnswer{}
		s.call(fmt.Sprintf("GET /v1/stats/summary?from=%d&to=%d", begin.Unix(), begin.Unix()+8), "").want(t, 200, &summary)
		if len(summary.Rules) != 1 || summary.Rules[0].Rule != "api" || summary.Rules[0].InFlight == nil {
			t.Fatalf("%+v", summary.Rules)
		}
		return summary.Rules[0].InFlight
	}
	if in := ask(); in.Mean != 0.5 || in.Highest != 3 || in.Held != (stats.Percentiles{}) {
		t.Errorf("%+v", in)
	}
	c.Leave(4 * time.Second)
	s.pass(1)
	if in := ask(); in.Mean != 0.5 || in.Held.Mean != 4*time.Second || in.Held.P50 < 4*time.Second || in.Held.P99 > 4500*time.Millisecond {
		t.Errorf("%+v", in)
	}
	s.check(aliceAsks, 1, 1)
	s.pass(1)
	query := fmt.Sprintf("GET /v1/stats/series?from=%d&to=%d&step=8&rule=api", begin.Unix(), begin.Unix()+8)
	for more, want := range map[string]bool{"": true, "&tier=pro": false} {
		var series SeriesAnswer
		s.call(query+more, "").want(t, 200, &series)
		if (series.InFlight != nil) != want || want && (series.InFlight.Mean != 0.5 || series.InFlight.Held.Mean != 4*time.Second) {
			t.Errorf("%s: %+v", more, series.InFlight)
		}
		if in := series.Points[0].InFlight; (in != nil) != want || want && (in.Mean != 0.5 || in.Highest != 3) || series.Points[0].Requests != 1 {
			t.Errorf("%s: %+v", more, series.Points)
		}
	}
}
