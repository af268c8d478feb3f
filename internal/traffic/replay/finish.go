package replay

import (
	"bytes"
	"errors"
	"net/netip"
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
