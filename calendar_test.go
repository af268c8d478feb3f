package weir_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
)

func instant(t *testing.T, text string) weir.Micros {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return weir.MicrosOf(at)
}

// The periods of cases that people ask about.
func TestCalendarPeriods(t *testing.T) {
	for _, c := range []struct{ limit, at, begin, end string }{
		// Months without a zone are those of UTC.
		{"1/month", "2026-02-28T23:59:59.999999Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"1/month", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"},
		{"1/month", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-02-01T00:00:00Z"},
		{"1/month zone Asia/Shanghai", "2026-01-31T16:00:00Z", "2026-02-01T00:00:00+08:00", "2026-03-01T00:00:00+08:00"},
		{"1/year", "2028-02-29T12:00:00Z", "2028-01-01T00:00:00Z", "2029-01-01T00:00:00Z"},
		// Day 31 is the last day of a shorter month.
		{"1/month starts 31", "2026-02-28T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"},
		{"1/month starts 31", "2026-02-27T23:59:59Z", "2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z"},
		{"1/month starts 31", "2028-02-28T12:00:00Z", "2028-01-31T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"1/month starts 30", "2026-04-30T12:00:00Z", "2026-04-30T00:00:00Z", "2026-05-30T00:00:00Z"},
		// A year from February 29 begins on the 28th, unless it is a leap year.
		{"1/year starts 02-29", "2026-12-01T00:00:00Z", "2026-02-28T00:00:00Z", "2027-02-28T00:00:00Z"},
		{"1/year starts 02-29", "2028-02-28T12:00:00Z", "2027-02-28T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"1/year zone America/New_York starts 04-06", "2026-04-06T03:59:59Z", "2025-04-06T00:00:00-04:00", "2026-04-06T00:00:00-04:00"},
		// Clocks go forward and back: a day of 23 and one of 25 hours.
		{"1/day zone Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"},
		{"1/day zone Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"},
		// 02:30 is skipped: clocks show 03:00 right after 01:59:59.
		{"1/day zone Europe/Berlin starts 02:30", "2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		// 02:30 comes twice, and the first counts.
		{"1/day zone Europe/Berlin starts 02:30", "2026-10-25T00:45:00Z", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		// An hour that comes twice is one.
		{"1/hour zone Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-25T02:00:00+02:00", "2026-10-25T03:00:00+01:00"},
		{"1/hour zone Asia/Kolkata", "2026-10-25T01:10:00Z", "2026-10-25T06:00:00+05:30", "2026-10-25T07:00:00+05:30"},
		// Midnight is skipped, and here it comes twice.
		{"1/day zone America/Santiago", "2024-09-08T12:00:00Z", "2024-09-08T01:00:00-03:00", "2024-09-09T00:00:00-03:00"},
		{"1/day zone America/Havana", "2024-11-03T12:00:00Z", "2024-11-03T00:00:00-04:00", "2024-11-04T00:00:00-05:00"},
		// A day that never was.
		{"1/day zone Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"1/week zone UTC", "2026-11-16T00:00:00Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"},
		{"1/week starts sunday", "2026-11-16T00:00:00Z", "2026-11-15T00:00:00Z", "2026-11-22T00:00:00Z"},
		{"1/day starts 06:00", "2026-11-16T05:59:59Z", "2026-11-15T06:00:00Z", "2026-11-16T06:00:00Z"},
	} {
		b, ok := weir.MustCompile(c.limit).Periods(instant(t, c.at))
		if begin, end := instant(t, c.begin), instant(t, c.end); !ok || b[1] != begin || b[2] != end {
			t.Errorf("%s at %s: from %v to %v, want %v to %v", c.limit, c.at, b[1].Time(), b[2].Time(), begin.Time(), end.Time())
		}
	}
}

// slowLabel says in which period a time of a clock is, by the definition alone.
func slowLabel(period time.Duration, starts string, clock time.Time) string {
	switch period {
	case time.Hour:
		return clock.Format("2006-01-02 15")
	case 24 * time.Hour:
		if starts != "" && clock.Format("15:04") < starts {
			clock = clock.AddDate(0, 0, -1)
		}
		return clock.Format("2006-01-02")
	case 7 * 24 * time.Hour:
		for !strings.EqualFold(clock.Weekday().String(), starts) {
			clock = clock.AddDate(0, 0, -1)
		}
		return clock.Format("2006-01-02")
	case weir.Month:
		var day int
		fmt.Sscan(starts, &day)
		first := time.Date(clock.Year(), clock.Month(), 1, 0, 0, 0, 0, time.UTC)
		if last := first.AddDate(0, 1, -1).Day(); clock.Day() < min(day, last) {
			first = first.AddDate(0, -1, 0)
		}
		return first.Format("2006-01")
	}
	if year := fmt.Sprint(clock.Year()); clock.Format("01-02") >= starts {
		return year
	}
	return fmt.Sprint(clock.Year() - 1)
}

// The bounds are where, quarter by quarter of an hour, the clocks first show another
// period.
func TestCalendarAgainstOracle(t *testing.T) {
	periods := []struct {
		period time.Duration
		starts []string
	}{
		{time.Hour, []string{""}},
		{24 * time.Hour, []string{"", "00:30", "01:00", "02:30", "23:45"}},
		{7 * 24 * time.Hour, []string{"sunday", "monday", "saturday"}},
		{weir.Month, []string{"1", "15", "29", "30", "31"}},
		{weir.Year, []string{"01-01", "03-31", "12-31"}},
	}
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Asia/Kolkata", "Pacific/Apia", "Pacific/Kiritimati", "Asia/Tehran"}
	checks := flag.Lookup("rapid.checks")
	defer flag.Set("rapid.checks", checks.Value.String())
	flag.Set("rapid.checks", "150") // it is slow
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(periods).Draw(t, "period")
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		starts := rapid.SampledFrom(p.starts).Draw(t, "starts")
		from := time.Date(rapid.IntRange(2009, 2040).Draw(t, "year"), time.Month(rapid.IntRange(1, 12).Draw(t, "month")), 20, 0, 0, 0, 0, time.UTC)
		checkCalendar(t, p.period, zone, starts, from)
	})
}

// The last day of a leap year is a day like others, also where the list of a zone's changes
// has ended and its rule goes on: in each list that is before 2040.
func TestLastDayOfALeapYear(t *testing.T) {
	from := time.Date(2040, 12, 29, 0, 0, 0, 0, time.UTC)
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
		for _, period := range []time.Duration{time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, weir.Month, weir.Year} {
			starts := map[time.Duration]string{7 * 24 * time.Hour: "monday", weir.Month: "1", weir.Year: "01-01"}[period]
			checkCalendar(t, period, zone, starts, from)
		}
	}
}

func checkCalendar(t rapid.TB, period time.Duration, name, starts string, from time.Time) {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	l := weir.Limit{Algorithm: weir.FixedWindow, N: 1, Period: period, Zone: zone, Starts: starts}
	c, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	span := min(2*period, 70*24*time.Hour) + 50*time.Hour
	var clock time.Time // the latest that was shown
	label, begin := "", time.Time{}
	for at := from; at.Before(from.Add(span)); at = at.Add(15 * time.Minute) {
		_, offset := at.In(zone).Zone()
		if shown := at.Add(time.Duration(offset) * time.Second); shown.After(clock) {
			clock = shown
		}
		next := slowLabel(period, starts, clock)
		if next == label {
			continue
		}
		if label != "" {
			before, _ := c.Periods(weir.MicrosOf(at) - 1)
			after, _ := c.Periods(weir.MicrosOf(at))
			if before[2].Time() != at || after[1].Time() != at || !begin.IsZero() && before[1].Time() != begin {
				t.Fatalf("%v: the clocks first show %s at %v; bounds before it %v to %v, and then %v to %v", l, next, at, before[1].Time(), before[2].Time(), after[1].Time(), after[2].Time())
			}
			// A period that the clocks skip is empty, also as a neighbor.
			if before[3] != before[2] && before[3] != after[2] || after[0] != after[1] && after[0] != before[1] {
				t.Fatalf("%v: neighbors differ: %v and %v", l, before, after)
			}
			begin = at
		}
		label = next
	}
}

// drawCalendar draws limits of one kind: only where their periods end differs.
func drawCalendar(t *rapid.T) (limits []*weir.Compiled) {
	texts := rapid.SampledFrom([][]string{
		{"3/month", "3/month starts 15", "3/month zone Pacific/Kiritimati starts 31", "4/month zone America/Havana"},
		{"fixed_window 3/day", "3/day zone Europe/Berlin", "3/day zone Europe/Berlin starts 02:30", "2/day zone UTC starts 23:00"},
		{"3/year", "3/year starts 02-29", "5/year zone Asia/Shanghai starts 04-01"},
	}).Draw(t, "limits")
	for _, text := range texts {
		limits = append(limits, weir.MustCompile(text))
	}
	return limits
}

// No client gets more than N before its period is over, whatever becomes of zone and
// start and whatever the clock does, and a period ends where one of the limit that
// opened it does.
func TestOneQuotaInAPeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawCalendar(t)
		for _, l := range limits {
			if l.Kind() != limits[0].Kind() || l.KindText() != limits[0].KindText() {
				t.Fatalf("%v is of another kind than %v", l.Limit(), limits[0].Limit())
			}
		}
		k := key{}
		now := weir.MicrosOf(time.Date(2026, 2, 20, 0, 0, 0, 0, time.UTC))
		var end weir.Micros
		var used int64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			period := limits[0].Limit().Period.Microseconds()
			now = max(0, now+weir.Micros(rapid.Int64Range(-period/4, period/2).Draw(t, "stride")))
			k.limit = rapid.SampledFrom(limits).Draw(t, "limit")
			cost := rapid.Int64Range(1, 3).Draw(t, "cost")
			oldEnd, oldUsed := end, used
			if now >= end {
				b, ok := k.limit.Periods(now)
				if used = 0; ok {
					end = b[2]
				} else {
					end = now - now%weir.Micros(period) + weir.Micros(period)
				}
			}
			before := k.State
			d := k.take(now, cost)
			n := k.limit.Limit().N
			if want := used+cost <= n; d.Allowed != want || d.Allowed && d.ResetAt != end {
				t.Fatalf("%v at %v after %d until %v: %+v", k.limit.Limit(), now.Time(), used, end.Time(), d)
			}
			if d.Allowed {
				used += cost
			} else if cost <= n && (d.RetryAfter != end.Sub(now) || k.State != before) {
				t.Fatalf("%v at %v until %v: %+v", k.limit.Limit(), now.Time(), end.Time(), d)
			}
			if !d.Allowed && used == 0 {
				end, used = oldEnd, oldUsed // no period was opened
			}
		}
	})
}

// Two whole quotas around a bound are the most without a whole period between.
func TestBoundOfCalendarsIsReached(t *testing.T) {
	for _, text := range []string{"7/month zone Europe/Berlin starts 31", "7/day zone Europe/Berlin", "7/year", "7/hour zone Asia/Kolkata", "7/week starts friday"} {
		k := key{limit: weir.MustCompile(text)}
		b, _ := k.limit.Periods(weir.MicrosOf(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)))
		var got int64
		for now := b[2] - 10; now < b[2]+10; now++ {
			for k.take(now, 1).Allowed {
				got++
			}
		}
		if got != 14 || k.limit.Bound(1) != got {
			t.Errorf("%s: %d around a bound, and Bound is %d; want 14", text, got, k.limit.Bound(1))
		}
		if d := k.take(b[3]-1, 1); d.Allowed || d.RetryAfter != time.Microsecond {
			t.Errorf("%s: at the end of the period: %+v", text, d)
		}
	}
}

func TestCalendarNotation(t *testing.T) {
	for in, want := range map[string]string{
		"10000/month":                         "fixed_window 10000/month",
		"fixed_window 5/year starts 04-01":    "fixed_window 5/year starts 04-01",
		"100/day starts 06:00 zone UTC":       "fixed_window 100/1d zone UTC starts 06:00",
		"9/week zone Asia/Shanghai":           "fixed_window 9/7d zone Asia/Shanghai",
		"9/month starts 31 count_denied":      "fixed_window 9/month starts 31 count_denied",
		"fixed_window 9/1h zone Asia/Kolkata": "fixed_window 9/1h zone Asia/Kolkata",
	} {
		l, err := weir.ParseLimit(in)
		if err != nil || l.String() != want {
			t.Errorf("%s is %q, %v; want %q", in, l, err, want)
			continue
		}
		if back, err := weir.ParseLimit(l.String()); err != nil || back != l {
			t.Errorf("%s read back is %+v, %v", l, back, err)
		}
	}
	for in, want := range map[string]string{
		"token_bucket 10/month":           "algorithm: a month of the calendar is a fixed_window, and token_bucket is not; choose fixed_window, or a period of constant length such as 30d",
		"sliding_log 10/day zone UTC":     "algorithm: a day of the calendar is a fixed_window",
		"10/2month":                       "months differ in length; write days, such as 10/30d, or 10/month for that of the calendar",
		"10/90s zone UTC":                 "period: 90s is not a period of the calendar",
		"10/month zone Mars/Olympus":      `zone: "Mars/Olympus" is not in the time zone database; write a name such as Europe/Berlin`,
		"10/month zone Local":             "zone: ",
		"10/month zone":                   "zone: a value is required",
		"10/month starts":                 "starts: a value is required",
		"10/month starts 32":              `starts: "32" is not where a month can start; write a day of the month, from 1 to 31`,
		"10/month starts 0":               "from 1 to 31",
		"10/month starts 05":              "from 1 to 31",
		"10/month starts monday":          "from 1 to 31",
		"10/week starts Monday":           "a weekday, as in monday",
		"10/day starts 6":                 "a time, as in 06:00",
		"10/day starts 24:00":             "a time, as in 06:00",
		"10/year starts 02-30":            "a month and a day, as in 04-01",
		"10/year starts 4-1":              "a month and a day, as in 04-01",
		"10/hour starts 00:30":            "starts: an hour starts when it begins; remove starts",
		"10/month burst 5":                "burst: fixed_window has no burst",
		"10/month starts 3 starts 4":      `"starts" is given twice`,
		"10/month zone UTC zone Asia/Oma": `"zone" is given twice`,
	} {
		if l, err := weir.ParseLimit(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", in, l, err, want)
		}
	}
	for _, zone := range []*time.Location{time.Local, time.FixedZone("my zone", 3600)} {
		if err := weir.PerMonth(10, zone).Validate(); err == nil || !strings.Contains(err.Error(), "time.LoadLocation") {
			t.Errorf("%v: %v", zone, err)
		}
	}
	if err := weir.PerMonth(10, nil).Validate(); err != nil {
		t.Error(err)
	}
	if weir.MustCompile("10/month").KindText() != "Fmonth" {
		t.Error(weir.MustCompile("10/month").KindText())
	}
}

// The longest and the shortest present periods, for header fields.
func TestLengthOfPeriods(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1/month":                                31 * 24 * time.Hour,
		"1/month zone Europe/Berlin":             31*24*time.Hour - time.Hour,
		"1/year":                                 365 * 24 * time.Hour,
		"1/day zone Europe/Berlin":               23 * time.Hour,
		"token_bucket 1/month starts 9 zone UTC": 0,
		"token_bucket 1/1m":                      time.Minute,
	} {
		l, err := weir.ParseLimit(text)
		if want == 0 {
			if err == nil {
				t.Error(text)
			}
			continue
		}
		c, err := l.Compile()
		if err != nil || c.Length(instant(t, "2026-03-29T12:00:00Z")) != want {
			t.Errorf("%s: %v, %v; want %v", text, c.Length(instant(t, "2026-03-29T12:00:00Z")), err, want)
		}
	}
}

// Whatever the clock shows, there is an answer.
func TestCalendarAtTheEnds(t *testing.T) {
	for _, text := range []string{"1/month starts 31 zone Europe/Berlin", "1/year", "1/day zone America/Havana", "1/hour zone UTC", "1/week starts monday"} {
		c := weir.MustCompile(text)
		for _, at := range []weir.Micros{-1 << 63, -1, 0, 1, 1<<53 - 1, 1 << 62} {
			if b, _ := c.Periods(at); b[1] > max(0, at) || b[2] <= at || b[0] > b[1] || b[3] < b[2] {
				t.Errorf("%s at %d: %v", text, at, b)
			}
		}
	}
}
