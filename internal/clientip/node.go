package clientip

import (
	"net/netip"
	"strings"
)

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
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return false
		}
	}
	return port != "" && len(port) <= 5
}

// obfuscated is what RFC 7239 allows in the place of a port.
const obfuscated = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
