package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/duration"
)

// MaxLog is the longest log that ParseLog reads, in bytes.
const MaxLog = 64 << 20

const maxClient = 200 // bytes of a client's name in a log

const logExample = "write a time, and optionally a client and a cost, as in \"2026-11-15T10:30:15.250Z alice 2\", \"10:30:15\" or \"1.5s\""

// ParseLog reads a log with times: a line for each request, with its time and, if
// need be, the client and the cost. Empty lines, and those that begin with #, are
// left out. A line may be out of order.
//
// A time is an instant (2026-11-15T10:30:15.250Z, or Unix seconds with a fraction),
// a time of day (10:30:15.250), or a length of time since the start (1.5s), in all
// lines the same. Instants are shown as time since midnight UTC of the first day:
// windows that divide a day are where they really were. If the limit has periods of the
// calendar, they stay instants, and a time of day is one of January 1, 2026, UTC.
//
// The limit is what the log is to be played against: the two together are bounded.
func ParseLog(name, text string, limit weir.Limit) (Traffic, error) {
	if len(text) > MaxLog {
		return Traffic{}, fmt.Errorf("%s: larger than %d MiB; use a shorter log, or weir replay", name, MaxLog>>20)
	}
	var c collector
	var kind timeKind
	periods := periodsOf(limit)
	number, midnight := 0, weir.Micros(-1)
	for line := range strings.Lines(text) {
		number++
		r, k, err := parseLogLine(line)
		switch {
		case err == nil && k == noTime:
			continue
		case err == nil && kind != noTime && k != kind:
			err = fmt.Errorf("the time is %s, but the lines before have %s; write all times in the same form", k, kind)
		case err == nil:
			kind = k
			switch {
			case periods.calendar != nil && k == ofDay:
				c.start = theYear
			case k == sinceZero:
				c.start = periods.start()
			case periods.calendar == nil && k == instant:
				if midnight < 0 || r.At < midnight {
					midnight = shiftDay(c.requests, midnight, r.At)
				}
				r.At -= midnight
			}
			err = c.add(r)
		}
		if err != nil {
			return Traffic{}, fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	if len(c.requests) == 0 {
		return Traffic{}, fmt.Errorf("%s: no requests; %s", name, logExample)
	}
	t := Traffic{Text: "the log " + name, Requests: c.sorted()}
	if wordsFor(limit, t.Requests) > maxWords {
		return Traffic{}, fmt.Errorf("%s: the clients need more than %d MB in a log or in sub-windows; use fewer clients, a smaller limit, or fewer buckets", name, maxWords*8>>20)
	}
	if midnight >= 0 {
		day := time.UnixMicro(int64(midnight)).UTC().Format(time.DateOnly)
		t.Notes = []string{"times are from midnight UTC of " + day + " on."}
	}
	return t, nil
}

// shiftDay returns the midnight before an instant, and moves the requests that are
// there already, should it be an earlier one than theirs.
func shiftDay(requests []Request, old, at weir.Micros) weir.Micros {
	midnight := at - at%day
	for i := range requests {
		requests[i].At += old - midnight
	}
	return midnight
}

// timeKind is how a time is written.
type timeKind string

const (
	noTime    timeKind = ""
	instant   timeKind = "an instant"
	ofDay     timeKind = "a time of day"
	sinceZero timeKind = "a length of time"
)

func parseLogLine(line string) (Request, timeKind, error) {
	fields := strings.Fields(line)
	if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
		return Request{}, noTime, nil
	}
	at, kind, err := parseLogTime(fields[0])
	if err != nil {
		return Request{}, noTime, err
	}
	r := Request{At: at, Key: "client", Cost: 1}
	if len(fields) > 1 {
		r.Key = fields[1]
	}
	if len(fields) > 2 {
		r.Cost, err = strconv.ParseInt(fields[2], 10, 64)
	}
	switch {
	case err != nil || r.Cost < 1 || r.Cost > weir.MaxUnits:
		return Request{}, noTime, fmt.Errorf("%q is not a cost; write a whole number from 1 to %d", document.Clip(fields[2], 40), int64(weir.MaxUnits))
	case len(r.Key) > maxClient:
		return Request{}, noTime, fmt.Errorf("the client's name has more than %d bytes; shorten it", maxClient)
	case len(fields) > 3:
		return Request{}, noTime, fmt.Errorf("%q is unexpected; %s", document.Clip(fields[3], 40), logExample)
	}
	return r, kind, nil
}

func parseLogTime(s string) (weir.Micros, timeKind, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil && t.Unix() >= 0 && t.Unix() < 1<<32 {
		return weir.MicrosOf(t), instant, nil
	}
	if t, err := time.Parse("15:04:05.999999999", s); err == nil {
		return weir.Micros(t.Sub(t.Truncate(24 * time.Hour)).Microseconds()), ofDay, nil
	}
	if at, ok := unixSeconds(s); ok {
		return at, instant, nil
	}
	if d, err := duration.Parse(s); err == nil {
		return weir.Micros(d.Microseconds()), sinceZero, nil
	}
	return 0, noTime, fmt.Errorf("%q is not a time; %s", document.Clip(s, 40), logExample)
}

// unixSeconds reads seconds since 1970 with a fraction, to the microsecond.
func unixSeconds(s string) (weir.Micros, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseUint(whole, 10, 32)
	if err != nil || len(whole) < 9 {
		return 0, false
	}
	fraction = (fraction + "000000")[:6]
	micros, err := strconv.ParseUint(fraction, 10, 32)
	return weir.Micros(seconds*1_000_000 + micros), err == nil
}
