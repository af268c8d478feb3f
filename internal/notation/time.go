// Package notation reads and writes values as people do: durations, time zones, settings on one
// line, plurals and columns, and the known word that is nearest to a misspelled one.
package notation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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

// units are the lengths of time from long to short, with the words for each, which may also stand alone: "100/minute" is
// "100/1m". docs/reference/rules.md lists them.
var units = []struct {
	length time.Duration
	words  []string
}{
	{week, []string{"w", "week"}},
	{day, []string{"d", "day"}},
	{time.Hour, []string{"h", "hour"}},
	{time.Minute, []string{"m", "min", "minute"}},
	{time.Second, []string{"s", "sec", "second"}},
	{time.Millisecond, []string{"ms"}},
	{time.Microsecond, []string{"us", "µs"}},
	{1, []string{"ns"}},
}

// ofCalendar differ in length, so only one at a time makes sense: "100/month".
var ofCalendar = map[string]time.Duration{"month": Month, "year": Year}

// elsewhere are spellings that are not read, and what they are called here.
var elsewhere = map[string]string{
	"wk": "w", "wks": "w", "weeks": "w", "days": "d", "hr": "h", "hrs": "h", "hours": "h", "mins": "m", "minutes": "m",
	"secs": "s", "seconds": "s", "msec": "ms", "millis": "ms", "milliseconds": "ms", "usec": "us", "microseconds": "us",
	"mo": "month", "mon": "month", "mos": "month", "months": "month", "y": "year", "yr": "year", "yrs": "year", "years": "year",
}

func unitLength(word string) (length time.Duration, known bool) {
	for _, u := range units {
		if slices.Contains(u.words, word) {
			return u.length, true
		}
	}
	return 0, false
}

// ParseDuration reads "1m", "1h30m", "1.5s", "1d", "2w", or a bare unit such as "m", "minute" or
// "month". It rejects signs: a negative length of time limits nothing.
func ParseDuration(s string) (time.Duration, error) { return ParseDurationAfter("", s) }

// ParseDurationAfter reads a duration that follows something, such as the period of "100/1m". What it suggests begins with
// that.
func ParseDurationAfter(before, s string) (time.Duration, error) {
	if d, ok := ofCalendar[s]; ok {
		return d, nil
	}
	if s == "" {
		return 0, fmt.Errorf("empty duration; write a number and a unit, like 1m or 30s")
	}
	d, ok := parseTerms(s)
	if !ok {
		return 0, fmt.Errorf("bad duration %q; %s", s, durationHint(before, s))
	}
	return d, nil
}

func parseTerms(s string) (total time.Duration, ok bool) {
	if d, known := unitLength(s); known || s == "0" {
		return d, true
	}
	for rest := s; rest != ""; {
		number := leading(rest, digits)
		unit := leading(rest[len(number):], "abcdefghijklmnopqrstuvwxyzµ")
		rest = rest[len(number)+len(unit):]
		part, err := term(number, unit)
		if err != nil || total > math.MaxInt64-part {
			return 0, false
		}
		total += part
	}
	return total, true
}

// durationHint is what to write instead of something that is no length of time.
func durationHint(before, s string) string {
	const longest = 64
	meant := ""
	for rest := s; rest != "" && len(s) <= longest; {
		number := leading(rest, digits)
		unit := rest[len(number):]
		if next := strings.IndexAny(unit, digits); next >= 0 {
			unit = unit[:next]
		}
		rest = rest[len(number)+len(unit):]
		word := unitMeant(strings.TrimSpace(unit))
		if length, found := ofCalendar[word]; found && number != "" {
			hint := fmt.Sprintf("%ss differ in length; write days, such as %s%dd", word, before, length/day)
			if before != "" {
				hint += ", or " + before + word + " for that of the calendar"
			}
			return hint
		}
		meant += number + word
	}
	if _, ok := parseTerms(meant); meant != "" && ok || ofCalendar[meant] != 0 {
		return fmt.Sprintf("did you mean %q?", before+meant)
	}
	return "write a number and a unit (us, ms, s, m, h, d, w), like 1m or 1h30m"
}

// unitMeant is the word for a unit that is spelled otherwise, or what was given.
func unitMeant(given string) string {
	word := strings.ToLower(given)
	if here := NameHere(word, elsewhere); here != "" {
		return here
	}
	if _, known := unitLength(word); known || ofCalendar[word] != 0 {
		return word
	}
	if len(word) < 4 { // of short words, anything is near
		return given
	}
	return cmp.Or(Nearest(word, []string{"week", "hour", "minute", "second", "month", "year"}), given)
}

const digits = "0123456789."

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
	switch length, known := unitLength(unit); {
	case length >= day:
		unit, times = "h", length/time.Hour
	case known:
		unit = strings.TrimPrefix(FormatDuration(length), "1")
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
	for _, u := range units[1:] { // weeks are written as days
		if d%u.length == 0 {
			return append(strconv.AppendInt(dst, int64(d/u.length), 10), u.words[0]...)
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
