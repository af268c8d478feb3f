package clientip

import (
	"net/netip"
	"strings"
)

// lastComma finds the last comma that is not in quotes, reading from the end: what
// the nearest proxy wrote stands there and is well-formed, whatever a client may have
// put before it to confuse a reader, such as a quote that is never closed.
func lastComma(list string) int {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch {
		case list[i] == '"' && !(quoted && escaped(list, i)):
			quoted = !quoted
		case list[i] == ',' && !quoted:
			return i
		}
	}
	return -1
}

// escaped reports whether an odd number of backslashes stands before s[i].
func escaped(s string, i int) bool {
	bare := strings.TrimRight(s[:i], `\`)
	return (i-len(bare))%2 == 1
}

// parseElement reads one hop, as in for=192.0.2.60;proto=http;by=203.0.113.43. There
// must be exactly one "for".
func parseElement(element string) (addr netip.Addr, found bool) {
	for rest := element; rest != ""; {
		if rest[0] == ';' || rest[0] == ' ' || rest[0] == '\t' {
			rest = rest[1:]
			continue
		}
		name, value, after, ok := cutPair(rest)
		if !ok {
			return netip.Addr{}, false
		}
		rest = after
		if !strings.EqualFold(name, "for") {
			continue
		}
		if found {
			return netip.Addr{}, false
		}
		if addr, found = parseNode(value); !found {
			return netip.Addr{}, false
		}
	}
	return addr, found
}

// cutPair reads name=value or name="value" from the beginning of s. Escapes within
// quotes are left as they are: no address has one.
func cutPair(s string) (name, value, rest string, ok bool) {
	name, value, ok = strings.Cut(s, "=")
	if !ok || name == "" || strings.ContainsAny(name, " \t;\"") {
		return "", "", "", false
	}
	if !strings.HasPrefix(value, `"`) {
		value, rest, _ = strings.Cut(value, ";")
		value = strings.TrimRight(value, " \t")
		return name, value, rest, value != "" && !strings.ContainsAny(value, " \t\"")
	}
	value = value[1:]
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case '"':
			rest = strings.TrimLeft(value[i+1:], " \t")
			return name, value[:i], rest, rest == "" || rest[0] == ';'
		}
	}
	return "", "", "", false // the quote is never closed
}

// parseNode reads an address with or without a port: 192.0.2.1, 192.0.2.1:80,
// 2001:db8::1, [2001:db8::1], [2001:db8::1]:80. There is none in "unknown" and in
// obfuscated names such as _hidden, with which RFC 7239 lets a proxy keep silent.
func parseNode(s string) (netip.Addr, bool) {
	if inside, ok := strings.CutPrefix(s, "["); ok {
		host, port, ok := strings.Cut(inside, "]")
		if !ok || !isPort(port) || !strings.Contains(host, ":") {
			return netip.Addr{}, false
		}
		return parseAddr(host)
	}
	// With one colon it is IPv4 and a port, with more it is IPv6.
	if colon := strings.IndexByte(s, ':'); colon >= 0 && colon == strings.LastIndexByte(s, ':') {
		if !isPort(s[colon:]) {
			return netip.Addr{}, false
		}
		s = s[:colon]
	}
	return parseAddr(s)
}

// parseAddr reads an address. Its zone is about the machine that wrote it down, not
// about the client, and netip would keep it for ever.
func parseAddr(s string) (netip.Addr, bool) {
	host, zone, zoned := strings.Cut(s, "%")
	if zoned && (zone == "" || !strings.Contains(host, ":")) {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// isPort reports whether s is nothing, or a colon and a port, which RFC 7239 lets a
// proxy obfuscate as well.
func isPort(s string) bool {
	port, ok := strings.CutPrefix(s, ":")
	if !ok {
		return s == ""
	}
	if name, ok := strings.CutPrefix(port, "_"); ok {
		return name != "" && strings.Trim(name, obfuscated) == ""
	}
	return port != "" && len(port) <= 5 && strings.Trim(port, "0123456789") == ""
}

// obfuscated is what RFC 7239 allows in the place of a port.
const obfuscated = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// How far a header is read, from its end. No honest chain comes near.
const (
	maxHops  = 64
	maxBytes = 8 << 10
)

// syntax is how a header lists the hops of a request, the last one last.
type syntax struct {
	comma func(list string) int // where the last entry is cut off; -1 if there is but one
	node  func(entry string) (netip.Addr, bool)
}

var (
	xForwardedFor = syntax{func(list string) int { return strings.LastIndexByte(list, ',') }, parseNode}
	forwarded     = syntax{lastComma, parseElement}
)

// follow goes from the peer towards the client, from the end of the list to its
// beginning, as long as each hop is trusted to tell the next. An entry that names no
// address ends the walk at the hop that wrote it. The result is invalid if the list
// has no entry at all. Several lines are one list, in their order.
func (r *Resolver) follow(hop netip.Addr, lines []string, s *syntax) netip.Addr {
	var found netip.Addr
	hops, left := maxHops, maxBytes
	for i := len(lines) - 1; i >= 0; i-- {
		rest, torn := lines[i], false
		if len(rest) > left {
			rest, torn = rest[len(rest)-left:], true
		}
		left -= len(rest)
		for more := true; more; {
			comma := s.comma(rest)
			if more = comma >= 0; !more && torn {
				return hop // a part of an entry is not what was written
			}
			entry := strings.Trim(rest[comma+1:], " \t")
			rest = rest[:max(comma, 0)]
			if hops--; hops < 0 {
				return hop
			}
			if entry == "" {
				continue // RFC 9110 has a list's reader skip it
			}
			next, ok := s.node(entry)
			if !ok {
				return hop
			}
			if hop, found = next, next; !r.trusted.contain(hop) {
				return hop
			}
		}
	}
	return found
}
