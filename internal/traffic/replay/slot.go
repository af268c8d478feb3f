package replay

import (
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
)

// slot is a place for what a line says about one thing. Extras come after the last.
type slot int

const (
	slotTime     slot = iota // any time
	slotStart                // a time that is certainly the beginning
	slotDuration             // seconds
	slotIP
	slotUser
	slotAPIKey
	slotTier
	slotMethod
	slotHost
	slotPath
	slotRequest // method, path and protocol in one
	slots
)

// target is a slot that a name of JSON goes to. Of several names for one slot, the
// one with the smallest rank is taken, wherever in the line it stands.
type target struct {
	slot slot
	rank int8
}

// names of the fields of the formats that are text, by position.
var textNames = [Envoy + 1][]string{
	Combined: {"remote_addr", "ident", "remote_user", "time_local", "request", "status", "bytes", "referer", "user_agent", "request_time"},
	Envoy: {
		"start_time", "request", "status", "flags", "bytes_received", "bytes_sent", "duration", "upstream_time",
		"x_forwarded_for", "user_agent", "request_id", "authority", "upstream_host",
	},
}

// usualText is where things are in the formats that are text.
var usualText = [Envoy + 1]map[slot]string{
	Combined: {
		slotTime: "time_local", slotIP: "remote_addr", slotUser: "remote_user", slotRequest: "request", slotDuration: "request_time",
	},
	Envoy: {slotStart: "start_time", slotIP: "x_forwarded_for", slotHost: "authority", slotRequest: "request"},
}

// usualJSON is where things are in JSON, as nginx is usually told to write it, and
// as Caddy, Traefik and Envoy write it by themselves. The first is preferred.
var usualJSON = map[slot][]string{
	slotTime:     {"msec", "ts", "time_iso8601", "@timestamp", "timestamp", "time", "time_local"},
	slotStart:    {"StartUTC", "StartLocal", "start_time"},
	slotDuration: {"request_time", "duration"},
	slotIP: {
		"request.client_ip", "request.remote_ip", "ClientHost", "remote_addr", "client_ip", "remote_ip",
		"x_forwarded_for", "downstream_remote_address", "ip",
	},
	slotUser:    {"user_id", "ClientUsername", "remote_user", "user"},
	slotAPIKey:  {"api_key"},
	slotTier:    {"tier"},
	slotMethod:  {"request.method", "RequestMethod", "request_method", "method"},
	slotHost:    {"request.host", "RequestHost", "http_host", "host", "authority", "server_name"},
	slotPath:    {"request.uri", "RequestPath", "request_uri", "path", "uri", "url"},
	slotRequest: {"request"},
}

// Bounds on what a command line may ask for.
const (
	maxExtra    = 64
	maxPosition = 64
)

// NewParser returns a parser of a format, with some fields elsewhere than usual.
func NewParser(format Format, fields Fields) (*Parser, error) {
	if fields.Hop < 0 || fields.Hop > 100 {
		return nil, fmt.Errorf("hop: %d is out of range; write 1 for the last address, 2 for the one before", fields.Hop)
	}
	p := &Parser{format: format, hop: max(1, fields.Hop), json: make(map[string][]target), open: make(map[string]bool)}
	asked := p.gather(fields)
	p.wholeSeconds = fields.Duration != ""
	if len(p.extra) > maxExtra {
		return nil, fmt.Errorf("%d headers, cookies and attributes are too many; use at most %d", len(p.extra), maxExtra)
	}
	for format := range p.text {
		if err := p.placeText(Format(format), asked); err != nil {
			return nil, err
		}
	}
	p.placeJSON(asked)
	n := int(slots) + len(p.extra)
	p.found, p.rank = make([][]byte, n), make([]int8, n)
	return p, nil
}

// gather lists what somebody has asked for, by slot.
func (p *Parser) gather(f Fields) map[slot]string {
	asked := map[slot]string{
		slotTime: f.Time, slotDuration: f.Duration, slotIP: f.IP, slotUser: f.User, slotAPIKey: f.APIKey,
		slotTier: f.Tier, slotMethod: f.Method, slotHost: f.Host, slotPath: f.Path,
	}
	maps.DeleteFunc(asked, func(_ slot, field string) bool { return field == "" })
	add := func(kind ExtraKind, name, field string) {
		asked[slots+slot(len(p.extra))] = field
		p.extra = append(p.extra, Extra{kind, name})
	}
	for _, name := range slices.Sorted(maps.Keys(f.Headers)) {
		add(Header, textproto.CanonicalMIMEHeaderKey(name), f.Headers[name])
	}
	for _, name := range slices.Sorted(maps.Keys(f.Cookies)) {
		add(Cookie, name, f.Cookies[name])
	}
	for _, name := range slices.Sorted(maps.Keys(f.Attributes)) {
		add(Attribute, name, f.Attributes[name])
	}
	// These two are in most logs, so rules that are keyed by them just work.
	for _, usual := range [][2]string{{"User-Agent", "user_agent"}, {"Referer", "referer"}} {
		if !slices.Contains(p.extra, Extra{Header, usual[0]}) {
			add(Header, usual[0], usual[1])
		}
	}
	return asked
}

// placeText finds the positions of what was asked for, and of the rest as usual.
func (p *Parser) placeText(format Format, asked map[slot]string) error {
	if textNames[format] == nil {
		return nil
	}
	places := make([][]slot, len(textNames[format]))
	put := func(s slot, field string) error {
		at := slices.Index(textNames[format], field)
		if number, err := strconv.Atoi(field); err == nil {
			at = number - 1
			if at < 0 || at >= maxPosition {
				return fmt.Errorf("field %q: not a field number; write 1 to %d", field, maxPosition)
			}
		}
		if at < 0 {
			if p.format == format {
				return p.unknown(format, field, s)
			}
			return nil // it is for a log of another format
		}
		for len(places) <= at {
			places = append(places, nil)
		}
		places[at] = append(places[at], s)
		return nil
	}
	for s, field := range asked {
		if err := put(s, field); err != nil {
			return err
		}
	}
	for s, field := range usualText[format] {
		if asked[s] == "" && !settled(s, asked) {
			put(s, field)
		}
	}
	p.text[format] = places
	return nil
}

// settled is whether what was asked for makes a usual field of no use: who names
// the time knows how long requests took, or does not want it to matter.
func settled(s slot, asked map[slot]string) bool {
	return (s == slotStart || s == slotDuration) && asked[slotTime] != ""
}

func (p *Parser) unknown(format Format, field string, s slot) error {
	if s >= slots && (field == "user_agent" || field == "referer") {
		return nil // not requested
	}
	return fmt.Errorf("field %q: unknown in a log in %s format; write the number of the field, or one of %s",
		field, format, strings.Join(textNames[format], ", "))
}

// placeJSON makes the table of names.
func (p *Parser) placeJSON(asked map[slot]string) {
	put := func(name string, t target) {
		p.json[name] = append(p.json[name], t)
		for at, c := range name {
			if c == '.' {
				p.open[name[:at]] = true
			}
		}
	}
	for s, field := range asked {
		put(field, target{s, 0})
		if s >= slots {
			put("http_"+field, target{s, 1})
		}
	}
	for s, names := range usualJSON {
		if asked[s] != "" || settled(s, asked) {
			continue
		}
		for rank, name := range names {
			put(name, target{s, int8(rank)})
		}
	}
	for i, x := range p.extra {
		if x.Kind == Header {
			put("request.headers."+x.Name, target{slots + slot(i), 2})
			put("request_"+x.Name, target{slots + slot(i), 3})
		}
	}
}
