package simulate

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// A month is played by the algorithm that can, meets its end, and the others say why they are
// left out.
func TestCalendarIsPlayed(t *testing.T) {
	limit := weir.MustParseLimit("100/month zone Asia/Shanghai starts 15")
	lanes, leftOut := AllLanes(limit)
	if len(lanes) != 1 || lanes[0].Limit.Limit() != limit || !strings.Contains(strings.Join(leftOut, " "), "other algorithms are left out: a period of the calendar is a fixed_window") {
		t.Fatalf("%+v, %q", lanes, leftOut)
	}
	pattern, _ := patternNamed("boundary")
	var c collector
	if err := pattern.make(&c, limit, 1); err != nil {
		t.Fatal(err)
	}
	r := Run(limit, lanes, Traffic{Requests: c.sorted()}, 60)
	if got := r.Lanes[0]; got.Allowed != 200 || got.Worst != 200 || got.Bound != 200 || r.Limit != "100/month zone Asia/Shanghai starts 15" {
		t.Errorf("%+v", r)
	}
	if got := clock(weir.MicrosOf(time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC))); got != "2026-02-28" {
		t.Errorf("a date is written as %s", got)
	}
}
