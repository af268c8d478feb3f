package weir

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/notation"
)

// start is where periods of the calendar begin by the clocks of their zone.
type start struct {
	// Hours, days and weeks are a length, and begin so long after a multiple of it since
	// 1970. Both are in seconds. The length of months and years is 0.
	length, shift int64

	months int64 // from one to the next: 1 or 12
	month  int64 // of the year, from 0
	day    int   // of the month; in a shorter one its last
}

// startNames say how to write a start.
var startNames = map[time.Duration]string{
	day:   "a time, as in 06:00",
	week:  "a weekday, as in monday",
	Month: "a day of the month, from 1 to 31",
	Year:  "a month and a day, as in 04-01",
}

var weekdays = []string{"thursday", "friday", "saturday", "sunday", "monday", "tuesday", "wednesday"} // 1970 began on a Thursday

// parseStart parses Limit.Starts. Each start has one spelling.
func parseStart(period time.Duration, text string) (s start, err error) {
	switch period {
	case time.Hour:
		s.length = 60 * 60
		if text != "" {
			return s, invalid("starts", "an hour starts when it begins; remove starts")
		}
		return s, nil
	case day, week:
		s.length = int64(period / time.Second)
	case Month:
		s = start{months: 1, day: 1}
	case Year:
		s = start{months: 12, day: 1}
	default:
		return s, invalid("period", "%s is not a period of the calendar, which has hour, day, week, month and year; write one of these, or remove zone and starts", notation.FormatDuration(period))
	}
	ok := true
	switch {
	case text == "":
		if period == week {
			text = "monday"
			s.shift, ok = parseWeekday(text)
		}
	case period == day:
		s.shift, ok = parseTime(text)
	case period == week:
		s.shift, ok = parseWeekday(text)
	case period == Month:
		s.day, err = strconv.Atoi(text)
		ok = err == nil && 1 <= s.day && s.day <= 31 && strconv.Itoa(s.day) == text
	case period == Year:
		s.month, s.day, ok = parseDate(text)
	}
	if !ok {
		return s, invalid("starts", "%.40q is not where a %s can start; write %s", text, PeriodName(period), startNames[period])
	}
	return s, nil
}

// CanFollowCalendar reports whether a period is one that a calendar has: an hour, a day of 24
// hours, a week, Month or Year.
func CanFollowCalendar(period time.Duration) bool {
	_, err := parseStart(period, "")
	return err == nil
}

// StartsFor reports whether text is where a period of the calendar can start: a day such
// as "15" for Month, "04-01" for Year, "monday" for weeks, or "06:00" for days.
func StartsFor(period time.Duration, text string) bool {
	_, err := parseStart(period, text)
	return err == nil && text != ""
}

// PeriodName returns the name of a period of the calendar, such as "month"; of another
// period its length, such as "90s".
func PeriodName(period time.Duration) string {
	switch period {
	case time.Hour:
		return "hour"
	case day:
		return "day"
	case week:
		return "week"
	}
	return notation.FormatDuration(period)
}

func parseWeekday(text string) (shift int64, ok bool) {
	i := slices.Index(weekdays, text)
	return int64(i) * 24 * 60 * 60, i >= 0
}

func parseTime(text string) (shift int64, ok bool) {
	t, err := time.Parse("15:04", text)
	return int64(t.Hour()*60+t.Minute()) * 60, err == nil && t.Format("15:04") == text
}

func parseDate(text string) (month int64, day int, ok bool) {
	t, err := time.Parse("2006-01-02", "2000-"+text) // a leap year
	return int64(t.Month()) - 1, t.Day(), err == nil && t.Format("01-02") == text
}

// index returns the number of a period that begins about when the clocks show a time, in
// seconds since 1970.
func (s *start) index(clock int64) int64 {
	if s.length > 0 {
		return floorDiv(clock-s.shift, s.length)
	}
	t := time.Unix(clock, 0).UTC()
	return (int64(t.Year())*12 + int64(t.Month()) - 1) / s.months
}

// clock returns what the clocks show when the i-th period begins.
func (s *start) clock(i int64) int64 {
	if s.length > 0 {
		return i*s.length + s.shift
	}
	year, month := int(floorDiv(i*s.months, 12)), time.Month((i*s.months)%12+s.month)+1
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC)
	return last.AddDate(0, 0, min(s.day, last.Day())-last.Day()).Unix()
}

// isCalendar reports whether the periods are those of the calendar.
func (l Limit) isCalendar() bool {
	return l.Period == Month || l.Period == Year || l.Zone != nil || l.Starts != ""
}

func (l Limit) validateCalendar() error {
	if !l.isCalendar() {
		return nil
	}
	if l.Algorithm != FixedWindow {
		return invalid("algorithm", "a %s of the calendar is a fixed_window, and %s is not; choose fixed_window, or a period of constant length such as %s without zone and starts",
			PeriodName(l.Period), l.Algorithm, constantLength(l.Period))
	}
	if l.Zone != nil {
		if name := l.ZoneName(); name == "Local" || name == "" || strings.ContainsAny(name, " \t\r\n") {
			return invalid("zone", "%q means another zone on another machine; use one with a name, as time.LoadLocation returns it", name)
		}
	}
	_, err := parseStart(l.Period, l.Starts)
	return err
}

func constantLength(period time.Duration) string {
	switch period {
	case Month:
		return "30d"
	case Year:
		return "365d"
	}
	return notation.FormatDuration(period)
}

// ZoneName returns the name of the Zone, "" if there is none.
func (l Limit) ZoneName() string {
	if l.Zone == nil {
		return ""
	}
	return l.Zone.String()
}

// calendarText is the part of the notation about zone and start.
func (l Limit) calendarText() string {
	text := ""
	if l.Zone != nil {
		text = " zone " + l.ZoneName()
	}
	if l.Starts != "" {
		text += " starts " + l.Starts
	}
	return text
}
