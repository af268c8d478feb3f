package simulate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// played is what a limit of the calendar makes of traffic, on a page of 80 columns.
func played(t *testing.T, limit, traffic string) *Report {
	t.Helper()
	l := mustLimit(t, limit)
	lanes, leftOut := AllLanes(l)
	if len(lanes) != 1 || lanes[0].Limit.Limit() != l || !strings.Contains(strings.Join(leftOut, " "), "other algorithms are left out: a period of the calendar is a fixed_window") {
		t.Fatalf("%+v, %q", lanes, leftOut)
	}
	return Run(l, lanes, mustTraffic(t, traffic, l), 60)
}

// Patterns meet the periods as they are: those of a billing day in another zone, the short
// month and the night in which clocks change.
func TestCalendarIsPlayed(t *testing.T) {
	for _, c := range []struct {
		limit, traffic         string
		allowed, denied, worst int64
		ticks, within          string
	}{
		{"100/month zone Asia/Shanghai starts 15", "boundary", 200, 0, 200, "2026-02-09 2026-02-12 2026-02-15 2026-02-18 2026-02-21", "within a month"},
		{"100/month zone Asia/Shanghai starts 15", "steady", 400, 0, 110, "2026-01-15 2026-02-15 2026-03-15 2026-04-15", "within a month"},
		{"100/month", "overload", 400, 400, 120, "2026-01-01 2026-02-01 2026-03-01 2026-04-01", "within a month"},
		{"10/month", "burst", 30, 30, 10, "2026-01-01 2026-02-01 2026-03-01 2026-04-01", "within a month"},
		{"10/year starts 04-01", "burst", 30, 30, 10, "2026-04-01 2027-04-01 2028-04-01 2029-04-01 2030-04-01", "within a year"},
		{"10/day zone America/New_York starts 06:00", "boundary", 20, 0, 20, "2026-01-02 2026-01-02 02:00 2026-01-02 04:00 2026-01-02 06:00 2026-01-02 08:00 2026-01-02 10:00", "within 1d"},
		{"5/month", "1/1d@0s..400d", 69, 331, 8, "2026-01-01 2026-04-01 2026-07-01 2026-10-01 2027-01-01", "within a month"},
	} {
		r := played(t, c.limit, c.traffic)
		var ticks []string
		for _, tick := range r.Axis.Ticks {
			ticks = append(ticks, tick.Label)
		}
		got := r.Lanes[0]
		if got.Allowed != c.allowed || got.Denied != c.denied || got.Worst != c.worst || got.Bound != 2*mustLimit(t, c.limit).N || strings.Join(ticks, " ") != c.ticks || !strings.Contains(r.Summary, c.within) {
			t.Errorf("%s, %s: %d allowed, %d denied, worst %d of %d, %q, %q", c.limit, c.traffic, got.Allowed, got.Denied, got.Worst, got.Bound, ticks, r.Summary)
		}
	}
}

// A log keeps its dates, which decide in which month a request is. Times without a date are of
// the first period of 2026, or of its first day.
func TestCalendarLog(t *testing.T) {
	limit := mustLimit(t, "1/month zone Asia/Shanghai starts 15")
	for _, c := range []struct{ log, first, last string }{
		{"2026-02-14T15:59:59Z a\n2026-02-14T16:00:00Z a", "2026-02-14 23:59:59", "2026-02-15"},
		{"00:00:01\n12:00:00", "2026-01-01 08:00:01", "2026-01-01 20:00"},
		{"0s\n31d", "2026-01-15", "2026-02-15"},
	} {
		traffic, err := ParseLog("log", c.log, limit)
		if err != nil {
			t.Fatal(err)
		}
		p := periodsOf(limit)
		if first, last := p.instant(traffic.Requests[0].At), p.instant(traffic.Requests[1].At); first != c.first || last != c.last {
			t.Errorf("%q: from %s to %s", c.log, first, last)
		}
		lanes, _ := AllLanes(limit)
		r := Run(limit, lanes, traffic, 60)
		if same := strings.HasPrefix(c.log, "00"); (r.Lanes[0].Denied > 0) != same || fmt.Sprint(r.Notes) != "[times are in Asia/Shanghai.]" {
			t.Errorf("%q: %d denied, %q", c.log, r.Lanes[0].Denied, r.Notes)
		}
	}
	if got := clock(weir.MicrosOf(time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC))); got != "2026-02-28" {
		t.Errorf("a date is written as %s", got)
	}
}

// However short or long the traffic, ticks are on the axis and few, and no interval has more
// than the bound.
func TestCalendarAxis(t *testing.T) {
	for _, limit := range []string{"3/hour zone Asia/Kolkata", "3/day zone America/New_York", "3/week starts sunday", "3/month", "3/month starts 31", "3/year starts 02-29 zone Pacific/Apia"} {
		for _, traffic := range []string{"1@0s", "9@0s..1ms", "9@1h..2h", "900@0s..3d", "900@0s..40d", "2000@0s..500d", "3000@0s..35000d", "9@30d,9@40d,9@59d", "steady", "overload", "burst", "boundary", "sawtooth", "poisson"} {
			r := played(t, limit, traffic)
			if got := r.Lanes[0]; got.Worst > got.Bound || got.WorstBegin >= got.WorstEnd {
				t.Errorf("%s, %s: %d after %d until %d, the bound is %d", limit, traffic, got.Worst, got.WorstBegin, got.WorstEnd, got.Bound)
			}
			if n := len(r.Axis.Ticks); n > 7 || r.Axis.Count > 60 {
				t.Errorf("%s, %s: %d ticks, %+v", limit, traffic, n, r.Axis)
			}
			for _, tick := range r.Axis.Ticks {
				if tick.At < r.Axis.Begin || tick.At >= r.Axis.end() {
					t.Errorf("%s, %s: a tick at %s of %+v", limit, traffic, tick.Label, r.Axis)
				}
			}
		}
	}
}
