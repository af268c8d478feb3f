// Package clientip finds the address of the client that sent a request. It is the
// address of the connection, unless that is a trusted proxy: then it is the address
// that the proxy names, and if that is a trusted proxy, too, the address that this one
// names, and so on. Entries beyond the first address that is not trusted are not read,
// because the client may have forged them.
package clientip

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sort"
	"strings"
)

// Header is where trusted proxies write whom they serve.
type Header uint8

const (
	// Either is X-Forwarded-For or Forwarded, whichever is there. A proxy writes one
	// of them and passes the other on as the client sent it, so when both are there
	// and name different clients, one is forged and neither is believed: the client
	// is then the proxy itself.
	Either Header = iota
	XForwardedFor
	Forwarded // RFC 7239
)

// Doubt is what an operator should know about how an address was found.
type Doubt uint8

const (
	Clear         Doubt = iota
	Ignored             // a proxy's header is there, but no proxy is trusted
	Contradiction       // the two headers name different clients
	NoAddress           // the connection has no IP address, or none that can be read
)

// Unknown is the address of clients whose connection has none. They are limited as one client;
// without an address they would not be limited at all.
var Unknown = netip.IPv4Unspecified()

// Resolver finds the addresses of clients. It is immutable.
type Resolver struct {
	trusted networks
	header  Header
}

// New returns a resolver that believes the given proxies.
func New(trusted []netip.Prefix, header Header) (*Resolver, error) {
	if header > Forwarded {
		return nil, fmt.Errorf("clientip: header %d is unknown; use Either, XForwardedFor or Forwarded", header)
	}
	n, err := newNetworks(trusted)
	if err != nil {
		return nil, fmt.Errorf("clientip: %w", err)
	}
	return &Resolver{trusted: n, header: header}, nil
}

// Client returns the address of who sent a request: without zone, and as IPv4 where
// it is that. It is Unknown if the connection has none. The remote address is as in
// http.Request.RemoteAddr. Nothing is allocated, but for an entry that is malformed.
func (r *Resolver) Client(remoteAddr string, h http.Header) (netip.Addr, Doubt) {
	peer, ok := parsePeer(remoteAddr)
	switch {
	case !ok:
		return Unknown, NoAddress
	case len(r.trusted) == 0:
		if len(h["X-Forwarded-For"]) > 0 || len(h["Forwarded"]) > 0 {
			return peer, Ignored
		}
		return peer, Clear
	case !r.trusted.contain(peer):
		return peer, Clear
	}
	return r.behind(peer, h)
}

// Network is what tells one client from another: its address or, for IPv6, its network of 64 bits, of which a
// client can have any address.
func Network(client netip.Addr) netip.Addr {
	if client.Is6() && !client.Is4In6() {
		n, _ := client.WithZone("").Prefix(64)
		return n.Addr()
	}
	return client.Unmap()
}

// IsLoopback reports whether only this machine can reach an address, with or without a port.
func IsLoopback(address string) bool {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	ip, err := netip.ParseAddr(address)
	return address == "localhost" || err == nil && ip.IsLoopback()
}

// Trusts is whether a connection is of a proxy that is believed.
func (r *Resolver) Trusts(remoteAddr string) bool {
	peer, ok := parsePeer(remoteAddr)
	return ok && r.trusted.contain(peer)
}

// behind finds who is behind a trusted proxy.
func (r *Resolver) behind(peer netip.Addr, h http.Header) (netip.Addr, Doubt) {
	var plain, standard netip.Addr
	if r.header != Forwarded {
		plain = r.follow(peer, h["X-Forwarded-For"], &xForwardedFor)
	}
	if r.header != XForwardedFor {
		standard = r.follow(peer, h["Forwarded"], &forwarded)
	}
	switch {
	case !plain.IsValid() && !standard.IsValid():
		return peer, Clear
	case !standard.IsValid() || plain == standard:
		return plain, Clear
	case !plain.IsValid():
		return standard, Clear
	}
	return peer, Contradiction
}

// loopback is the address of clients on a Unix socket: they are on this machine, and
// trusted if this machine is.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// parsePeer parses the address of a connection. A remote client cannot choose its form.
func parsePeer(remoteAddr string) (netip.Addr, bool) {
	if remoteAddr == "" || strings.HasPrefix(remoteAddr, "@") || strings.HasPrefix(remoteAddr, "/") {
		return loopback, true
	}
	// Some listeners write brackets around IPv4, too.
	if host, port, ok := strings.Cut(remoteAddr, "]"); ok && host != "" && host[0] == '[' && !strings.Contains(host, ":") {
		remoteAddr = host[1:] + port
	}
	return parseNode(remoteAddr)
}

// networks are sorted, and none is within another, so that one comparison finds the
// only one that can contain an address: lists of a CDN are long.
type networks []netip.Prefix

func newNetworks(prefixes []netip.Prefix) (networks, error) {
	all := make(networks, 0, len(prefixes))
	for _, p := range prefixes {
		switch {
		case !p.IsValid():
			return nil, fmt.Errorf("%v is not a network; write for example 10.0.0.0/8", p)
		case p.Addr().Is4In6() && p.Bits() >= 96:
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if p.Bits() == 0 {
			return nil, fmt.Errorf("%v trusts every address, so any client could forge its address; list the networks of your proxies", p)
		}
		all = append(all, netip.PrefixFrom(p.Addr().WithZone(""), p.Bits()).Masked())
	}
	slices.SortFunc(all, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	outermost := all[:0]
	for _, p := range all {
		if n := len(outermost); n == 0 || !outermost[n-1].Contains(p.Addr()) {
			outermost = append(outermost, p)
		}
	}
	return outermost, nil
}

// contain reports whether an address, unmapped and without zone, is in one of them.
func (n networks) contain(addr netip.Addr) bool {
	after := sort.Search(len(n), func(i int) bool { return addr.Less(n[i].Addr()) })
	return after > 0 && n[after-1].Contains(addr)
}

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
