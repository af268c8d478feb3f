package envoyconfig

import (
	"strings"
	"time"

	"github.com/weirhq/weir/internal/duration"
)

// Unit is a period that Envoy has a name for. The numbers are those of its protocol.
type Unit uint8

const (
	Unknown Unit = iota // any other period
	Second
	Minute
	Hour
	Day
	Month
	Year
	Week
)

var units = [...]struct {
	name   string
	period time.Duration
}{
	Unknown: {"unknown", 0},
	Second:  {"second", time.Second},
	Minute:  {"minute", time.Minute},
	Hour:    {"hour", time.Hour},
	Day:     {"day", 24 * time.Hour},
	Month:   {"month", 30 * 24 * time.Hour},
	Year:    {"year", 365 * 24 * time.Hour},
	Week:    {"week", 7 * 24 * time.Hour},
}

// String returns the name as it is written in a file.
func (u Unit) String() string {
	if int(u) < len(units) {
		return units[u].name
	}
	return units[Unknown].name
}

// Period is how long the unit is: a month has 30 days, a year 365. It is 0 for one that
// is Unknown.
func (u Unit) Period() time.Duration {
	if int(u) < len(units) {
		return units[u].period
	}
	return 0
}

// parseUnit reads a unit by its name in any case, or a period such as "10s", which may be
// as long as a unit.
func parseUnit(text string) (Unit, time.Duration, bool) {
	period, err := duration.Parse(text)
	for u := Second; int(u) < len(units); u++ {
		if strings.EqualFold(text, units[u].name) || err == nil && period == units[u].period {
			return u, units[u].period, true
		}
	}
	return Unknown, period, err == nil && period > 0
}
