package replay

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"time"
)

var errBadTime = errors.New("invalid time; write 15/Nov/2026:10:30:15 +0000, 2026-11-15T10:30:15Z or Unix seconds")

// latest is where instants end: the year 2200. Whatever is later is a slip, and
// would carry the clock away.
const latest = 7_258_118_400

const million = 1_000_000

// parseTime reads a time in any of the ways in which servers write it, to the
// microsecond. It tells whether it is a whole second.
func parseTime(b []byte) (at int64, whole bool, err error) {
	ok := false
	switch {
	case len(b) >= 20 && b[2] == '/' && b[6] == '/' && b[11] == ':': // 15/Nov/2026:10:30:15 +0100
		at, ok = join(b[7:11], monthNamed(b[3:6]), b[0:2], b[12:])
	case len(b) >= 19 && b[4] == '-' && b[7] == '-' && (b[10] == 'T' || b[10] == ' '): // 2026-11-15T10:30:15.250Z
		month, _ := digits(b[5:7])
		at, ok = join(b[0:4], month, b[8:10], b[11:])
	default:
		at, ok = unixTime(b)
	}
	if !ok || at < 0 || at >= latest*million {
		return 0, false, errBadTime
	}
	return at, at%million == 0, nil
}

// clockTime reads 10:30:15.250 as microseconds of a day, and returns what follows.
func clockTime(b []byte) (micros int64, rest []byte, ok bool) {
	if len(b) < 8 || b[2] != ':' || b[5] != ':' {
		return 0, nil, false
	}
	hour, ok1 := digits(b[0:2])
	minute, ok2 := digits(b[3:5])
	second, ok3 := digits(b[6:8])
	if !ok1 || !ok2 || !ok3 || hour > 23 || minute > 59 || second > 60 {
		return 0, nil, false
	}
	micros, b = (hour*3600+minute*60+second)*million, b[8:]
	if len(b) > 0 && (b[0] == '.' || b[0] == ',') {
		b = b[1:]
		for unit := int64(million / 10); len(b) > 0 && b[0] >= '0' && b[0] <= '9'; unit, b = unit/10, b[1:] {
			micros += int64(b[0]-'0') * unit
		}
	}
	return micros, b, true
}

// join puts a day together with the time of day and the zone that follow it. A month of 0
// is none.
func join(years []byte, month int64, days, rest []byte) (int64, bool) {
	year, ok1 := digits(years)
	day, ok2 := digits(days)
	micros, zone, ok3 := clockTime(rest)
	if !ok1 || !ok2 || !ok3 || month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, false
	}
	if len(zone) > 0 && zone[0] == ' ' {
		zone = zone[1:]
	}
	offset, ok := zoneOffset(zone)
	midnight := time.Date(int(year), time.Month(month), int(day), 0, 0, 0, 0, time.UTC)
	return midnight.UnixMicro() + micros - offset*million, ok
}

// zoneOffset reads Z, +0100 or +01:00 as seconds. Nothing at all is UTC.
func zoneOffset(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) == 1 && (b[0] == 'Z' || b[0] == 'z') {
		return 0, true
	}
	if len(b) == 6 && b[3] == ':' {
		b = []byte{b[0], b[1], b[2], b[4], b[5]}
	}
	if len(b) != 5 || b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	hours, ok1 := digits(b[1:3])
	minutes, ok2 := digits(b[3:5])
	offset := hours*3600 + minutes*60
	if b[0] == '-' {
		offset = -offset
	}
	return offset, ok1 && ok2
}

// unixTime reads seconds since 1970 with a fraction; or, if there are too many
// digits for that, milliseconds, microseconds or nanoseconds.
func unixTime(b []byte) (int64, bool) {
	whole, fraction, ok := decimal(b)
	switch {
	case !ok || whole < 0:
		return 0, false
	case whole < 1e11:
		return whole*million + fraction, true
	case whole < 1e14:
		return whole*1000 + fraction/1000, true
	case whole < 1e17:
		return whole, true
	}
	return whole / 1000, true
}

// decimal reads a number as its whole part and its millionths.
func decimal(b []byte) (whole, fraction int64, ok bool) {
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if whole > (math.MaxInt64-9)/10 {
			return 0, 0, false
		}
		whole = whole*10 + int64(b[i]-'0')
	}
	if i == 0 {
		return 0, 0, false
	}
	if i < len(b) && b[i] == '.' {
		unit := int64(million / 10)
		for i++; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
			fraction += int64(b[i]-'0') * unit
			unit /= 10
		}
	}
	return whole, fraction, i == len(b)
}

// seconds reads how long a request took, as microseconds. Anything else is nothing.
func seconds(b []byte, wholes bool) int64 {
	if !wholes && bytes.IndexByte(b, '.') < 0 {
		return 0
	}
	whole, fraction, ok := decimal(b)
	if !ok || whole > 86400*365 {
		return 0
	}
	return whole*million + fraction
}

func digits(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func monthNamed(b []byte) int64 {
	i := strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", text(b))
	if i < 0 || i%3 != 0 {
		return 0
	}
	return int64(i/3 + 1)
}
