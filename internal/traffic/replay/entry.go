package replay

import (
	"bytes"
	"errors"
	"math"
	"net/netip"
	"strings"
	"time"
	"unsafe"
)

var errNoTime = errors.New("no time; set --time-field or --format")

// finish makes an entry of what was found.
func (p *Parser) finish(e *Entry) error {
	extra := e.Extra[:0]
	*e = Entry{
		User: value(p.found[slotUser]), APIKey: value(p.found[slotAPIKey]), Tier: value(p.found[slotTier]),
		Method: value(p.found[slotMethod]), Host: value(p.found[slotHost]),
	}
	for _, found := range p.found[slots:] {
		extra = append(extra, value(found))
	}
	e.Extra = extra
	if err := p.when(e); err != nil {
		return err
	}
	e.IP = address(p.found[slotIP], p.hop)
	p.what(e)
	return nil
}

// when finds the time at which the request came. Servers write a line when a
// request is over, and most of them that time, too.
func (p *Parser) when(e *Entry) error {
	if start := p.found[slotStart]; len(start) > 0 {
		at, whole, err := parseTime(start)
		e.At, e.Whole = at, whole
		return err
	}
	if len(p.found[slotTime]) == 0 {
		return errNoTime
	}
	at, whole, err := parseTime(p.found[slotTime])
	if err != nil {
		return err
	}
	took := seconds(p.found[slotDuration], p.wholeSeconds)
	e.At, e.Whole = max(0, at-took), whole && took == 0
	return nil
}

// what finds the path, in a field of its own or in the line of the request.
func (p *Parser) what(e *Entry) {
	target := p.found[slotPath]
	if request := p.found[slotRequest]; len(request) > 0 && request[0] != '-' {
		method, rest, ok := bytes.Cut(request, []byte(" "))
		if ok {
			if e.Method == "" {
				e.Method = text(method)
			}
			if len(target) == 0 {
				if at := bytes.LastIndexByte(rest, ' '); at >= 0 {
					rest = rest[:at]
				}
				target = rest
			}
		}
	}
	if len(target) == 0 {
		return
	}
	if target[0] != '/' {
		target = p.absolute(e, target)
	}
	path, query, _ := bytes.Cut(target, []byte("?"))
	e.Path, e.Query = text(path), text(query)
}

// absolute takes apart http://host/path, which a proxy is asked for. Anything else
// that is no path, such as * or host:port, is not known.
func (p *Parser) absolute(e *Entry, target []byte) []byte {
	_, rest, ok := bytes.Cut(target, []byte("://"))
	if !ok {
		return nil
	}
	at := bytes.IndexByte(rest, '/')
	host := rest
	if at >= 0 {
		host, rest = rest[:at], rest[at:]
	} else {
		rest = nil
	}
	if e.Host == "" {
		e.Host = text(host)
	}
	return rest
}

// address reads the client's address out of one or several with commas between.
// What is none leaves the request without.
func address(field []byte, hop int) netip.Addr {
	for ; hop > 1; hop-- {
		at := bytes.LastIndexByte(field, ',')
		if at < 0 {
			return netip.Addr{}
		}
		field = field[:at]
	}
	if at := bytes.LastIndexByte(field, ','); at >= 0 {
		field = field[at+1:]
	}
	field = bytes.TrimSpace(field)
	if len(field) == 0 || len(field) > 80 || field[0] == '-' {
		return netip.Addr{}
	}
	bare := field
	if field[0] == '[' && field[len(field)-1] == ']' {
		bare = field[1 : len(field)-1]
	}
	if ip, err := netip.ParseAddr(text(bare)); err == nil {
		return ip.WithZone("")
	}
	with, err := netip.ParseAddrPort(text(field))
	if err != nil {
		return netip.Addr{}
	}
	return with.Addr().WithZone("")
}

// value is a field, of which "-" is how servers write that there is none.
func value(field []byte) string {
	if len(field) == 1 && field[0] == '-' {
		return ""
	}
	return text(field)
}

// text is the bytes as they stand in the line.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

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
