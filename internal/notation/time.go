// Package notation reads and writes values as people do: durations, time zones, settings on one
// line, plurals and columns, and the known word that is nearest to a misspelled one.
package notation

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day

	// Month and Year are the average ones of the calendar, of 400 years.
	Month = 2_629_746 * time.Second
	Year  = 12 * Month
)

// words are the units, which may also stand alone: "100/minute" is "100/1m".
var words = map[string]time.Duration{
	"us": time.Microsecond, "µs": time.Microsecond,
	"ms": time.Millisecond,
	"s":  time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": day, "day": day,
	"w": week, "week": week,
}

// ofCalendar differ in length, so only one at a time makes sense: "100/month".
var ofCalendar = map[string]time.Duration{"month": Month, "year": Year}

// ParseDuration reads "1m", "1h30m", "1.5s", "1d", "2w", or a bare unit such as "m", "minute" or
// "month". It rejects signs: a negative length of time limits nothing.
func ParseDuration(s string) (time.Duration, error) {
	if d, ok := words[s]; ok {
		return d, nil
	}
	if d, ok := ofCalendar[s]; ok {
		return d, nil
	}
	if s == "" {
		return 0, fmt.Errorf("empty duration; write a number and a unit, like 1m or 30s")
	}
	if s == "0" {
		return 0, nil
	}
	var total time.Duration
	for rest := s; rest != ""; {
		number := leading(rest, "0123456789.")
		unit := leading(rest[len(number):], "abcdefghijklmnopqrstuvwxyzµ")
		rest = rest[len(number)+len(unit):]
		part, err := term(number, unit)
		if err != nil || total > math.MaxInt64-part {
			return 0, fmt.Errorf("bad duration %q; write a number and a unit (us, ms, s, m, h, d, w), like 1m or 1h30m", s)
		}
		total += part
	}
	return total, nil
}

// leading returns the longest prefix of s made of the given characters.
func leading(s, chars string) string {
	return s[:len(s)-len(strings.TrimLeft(s, chars))]
}

func term(number, unit string) (time.Duration, error) {
	if number == "" || unit == "" {
		return 0, fmt.Errorf("a number and a unit belong together")
	}
	// time.ParseDuration does the fractions; it knows no more than hours.
	times := time.Duration(1)
	switch length := words[unit]; {
	case length >= day:
		unit, times = "h", length/time.Hour
	case length >= time.Second:
		unit = map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h"}[length]
	}
	d, err := time.ParseDuration(number + unit)
	if err != nil {
		return 0, err
	}
	if d > math.MaxInt64/times {
		return 0, fmt.Errorf("out of range")
	}
	return d * times, nil
}

// FormatDuration writes d in the largest unit that divides it, so that ParseDuration gives d
// back: "1m" and "90s", never "1m30s" or "1m0s".
func FormatDuration(d time.Duration) string { return string(AppendDuration(nil, d)) }

// AppendDuration appends what FormatDuration writes.
func AppendDuration(dst []byte, d time.Duration) []byte {
	if d == 0 {
		return append(dst, "0s"...)
	}
	switch d {
	case Month:
		return append(dst, "month"...)
	case Year:
		return append(dst, "year"...)
	}
	for _, u := range [...]struct {
		unit time.Duration
		name string
	}{
		{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"},
		{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"}, {1, "ns"},
	} {
		if d%u.unit == 0 {
			return append(strconv.AppendInt(dst, int64(d/u.unit), 10), u.name...)
		}
	}
	return dst // every length is so many nanoseconds
}

// CeilDuration returns a duration in units, rounded up: a client that comes back a moment too
// early is denied again. A negative duration is 0.
func CeilDuration(d, unit time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/unit) + 1
}

const (
	maxName = 64

	// maxKnown is how many zones are remembered. There are fewer; but clients name them,
	// and some file systems have one file under many names.
	maxKnown = 1000
)

var (
	known sync.Map // of *time.Location, by name; only zones that exist are in it
	count atomic.Int64
)

// LoadZone returns the location with a name of the IANA time zone database, such as
// Europe/Berlin. Zone data is read at the first use of a name in a process.
func LoadZone(name string) (*time.Location, error) {
	if found, ok := known.Load(name); ok {
		return found.(*time.Location), nil
	}
	if name == "" || name == "Local" || name == "localtime" || len(name) > maxName || strings.ContainsFunc(name, outside) || strings.Contains(name, "//") {
		return nil, fmt.Errorf("%.40q is not the name of a time zone; write one such as Europe/Berlin, Asia/Shanghai or UTC", name)
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not in the time zone database; write a name such as Europe/Berlin, Asia/Shanghai or UTC", name)
	}
	if count.Load() >= maxKnown {
		return location, nil
	}
	found, loaded := known.LoadOrStore(name, location)
	if !loaded {
		count.Add(1)
	}
	return found.(*time.Location), nil
}

// outside are characters that no time zone has in its name. Names become paths of files.
func outside(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	return !letter && (r < '0' || r > '9') && !strings.ContainsRune("_-+/", r)
}
