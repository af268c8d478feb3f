package notation

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"1m":     time.Minute,
		"1h30m":  90 * time.Minute,
		"1.5s":   1500 * time.Millisecond,
		"250us":  250 * time.Microsecond,
		"250µs":  250 * time.Microsecond,
		"1d":     24 * time.Hour,
		"1d12h":  36 * time.Hour,
		"2w":     14 * 24 * time.Hour,
		"minute": time.Minute,
		"5min":   5 * time.Minute,
		"2hour":  2 * time.Hour,
		"1.5day": 36 * time.Hour,
		"1week":  7 * 24 * time.Hour,
		"day":    24 * time.Hour,
		"s":      time.Second,
		"month":  Month,
		"year":   Year,
		"0":      0,
		"0s":     0,

		"9223372036854775807ns": math.MaxInt64,
	} {
		got, err := ParseDuration(in)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "1", "m1", "-1s", "+1s", "1x", "1 m", "1mm", "..s", "1e3s", "9999999999h", "999999w", "1d-1h", "1ß", "106751d106751d", "1month", "2year", "1dmonth", "9223372036854775807ns1ns"} {
		if got, err := ParseDuration(in); err == nil {
			t.Errorf("Parse(%q) = %v; want an error", in, got)
		}
	}
}

func TestHintOfDuration(t *testing.T) {
	const units = "write a number and a unit"
	for in, want := range map[string]string{
		"1hr":       `did you mean "1h"?`,
		"1H":        `did you mean "1h"?`,
		"1 hour":    `did you mean "1hour"?`,
		"1h30mins":  `did you mean "1h30m"?`,
		"90secs":    `did you mean "90s"?`,
		"minit":     `did you mean "minute"?`,
		"90secnds":  `did you mean "90second"?`,
		"months":    `did you mean "month"?`,
		"1y":        "years differ in length; write days, such as 365d",
		"3months":   "months differ in length; write days, such as 30d",
		"1d1mo":     "months differ in length",
		"1x":        units,
		"soon":      units,
		"1":         units,
		"-1s":       units,
		"1m..5hr":   units,
		"99999999w": units,

		strings.Repeat("1hr", 1e5): units,
	} {
		if _, err := ParseDuration(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %.200v, want %q", in, err, want)
		}
	}
}

// The reference of rules lists each unit.
func TestUnitsAreDocumented(t *testing.T) {
	for page, between := range map[string][2]string{"reference/rules.md": {"; ", ", "}, "zh/rules.md": {"；", "、"}} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, u := range slices.Backward(units) {
			list = append(list, "`"+strings.Join(u.words, "`"+between[1]+"`")+"`")
		}
		if want := strings.Join(list, between[0]); !strings.Contains(string(text), want) {
			t.Errorf("%s does not list the units; write %s", page, want)
		}
	}
}

func TestFormatIsReadBack(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"1m": time.Minute, "90s": 90 * time.Second, "36h": 36 * time.Hour, "7d": 7 * 24 * time.Hour,
		"1500ms": 1500 * time.Millisecond, "7us": 7 * time.Microsecond, "0s": 0, "3ns": 3, "month": Month, "year": Year,
	} {
		got := FormatDuration(d)
		if got != want {
			t.Errorf("Format(%v) = %q; want %q", d, got, want)
		}
		if back, err := ParseDuration(got); err != nil || back != d {
			t.Errorf("Parse(FormatDuration(%v)) = %v, %v", d, back, err)
		}
	}
}
