package counter

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir"
)

// Window is the calendar window of a counter. When it ends, the counter restarts from
// zero.
type Window uint8

const (
	Ever   Window = iota // no window: the counter never restarts
	Second               // windows begin on the full second, minute, hour or day,
	Minute               // or on the first day of the month or year, of the local
	Hour                 // time in the zone
	Day
	Month
	Year
)

var windows = [...]struct {
	name  string
	width int64 // in seconds; of most days, and of the longest months and years
}{
	Ever: {"ever", 0}, Second: {"second", 1}, Minute: {"minute", 60}, Hour: {"hour", 3600}, Day: {"day", day},
	Month: {"month", 31 * day}, Year: {"year", 366 * day},
}

const day = 86400

// Windows returns all windows, for tables and tests that must cover each of them.
func Windows() []Window { return []Window{Ever, Second, Minute, Hour, Day, Month, Year} }

// ParseWindow parses a name such as "day".
func ParseWindow(name string) (Window, error) {
	if w := slices.IndexFunc(Windows(), func(w Window) bool { return w.String() == name }); w >= 0 {
		return Window(w), nil
	}
	return 0, invalid("window", "%.40q is not a window; write ever, second, minute, hour, day, month or year", name)
}

func (w Window) valid() bool { return int(w) < len(windows) }

// String returns the name of the window, which ParseWindow accepts.
func (w Window) String() string {
	if !w.valid() {
		return fmt.Sprintf("Window(%d)", uint8(w))
	}
	return windows[w].name
}

// MarshalText returns the name, so that JSON contains the name.
func (w Window) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText parses a name as ParseWindow does.
func (w *Window) UnmarshalText(text []byte) error {
	parsed, err := ParseWindow(string(text))
	if err == nil {
		*w = parsed
	}
	return err
}

// Width returns the length of a window, or 0 for Ever: 31 days for a month and 366 days
// for a year, the longest ones. A day on which the clocks of the zone change is an hour
// shorter or longer.
func (w Window) Width() time.Duration { return time.Duration(windows[w].width) * time.Second }

// Index returns the number of the window that contains now, for stores; consecutive
// windows have consecutive numbers. All instants of a date in a zone have the same day,
// however long it is. An hour that the clock shows twice in autumn is two windows.
func (w Window) Index(now weir.Micros, zone *time.Location) int64 {
	second := floorDiv(int64(now), 1_000_000)
	return w.index(second, offset(second, zone))
}

func (w Window) index(second, offset int64) int64 {
	width := windows[w].width
	switch w {
	case Ever:
		return 0
	case Day:
		return floorDiv(second+offset, width)
	case Month, Year:
		year, month, _ := time.Unix(second+offset, 0).UTC().Date()
		if w == Year {
			return int64(year - epochYear)
		}
		return int64(year-epochYear)*12 + int64(month-1)
	}
	// Whole hours of an offset would only let the numbers jump when it changes.
	return floorDiv(second+floorMod(offset, width), width)
}

// Start returns when a window begins, by the clock of its zone, or the zero time for
// Ever.
func (w Window) Start(index int64, zone *time.Location) time.Time {
	zone = cmp.Or(zone, time.UTC)
	width := windows[w].width
	switch w {
	case Ever:
		return time.Time{}
	case Day:
		return w.midnight(epochYear, 1, 1+int(index), index, zone)
	case Month:
		return w.midnight(epochYear, time.Month(1+index), 1, index, zone)
	case Year:
		return w.midnight(epochYear+int(index), 1, 1, index, zone)
	}
	second := index * width
	return time.Unix(second-floorMod(offset(second, zone), width), 0).In(zone)
}

const epochYear = 1970

// midnight is the first instant of a date. Where the clocks are set forward at midnight,
// that is when they are.
func (w Window) midnight(year int, month time.Month, day int, index int64, zone *time.Location) time.Time {
	at := time.Date(year, month, day, 0, 0, 0, 0, zone)
	if w.Index(weir.MicrosOf(at), zone) != index {
		_, at = at.ZoneBounds()
	}
	return at
}

// ZoneName returns the name by which a store distinguishes zones.
func ZoneName(zone *time.Location) string { return cmp.Or(zone, time.UTC).String() }

// offset is how far the clocks of a zone are ahead, in seconds.
func offset(second int64, zone *time.Location) int64 {
	if zone == nil || zone == time.UTC {
		return 0
	}
	_, ahead := time.Unix(second, 0).In(zone).Zone()
	return int64(ahead)
}

func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }

func floorMod(a, b int64) int64 { return (a%b + b) % b }
