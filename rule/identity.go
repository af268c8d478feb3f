package rule

import (
	"crypto/sha256"
	"net/netip"

	"github.com/weirhq/weir"
)

// maxValue is the longest value that stands in an identity as it is.
const maxValue = 256

// Identity appends who the request is under the rule, which is the key that a store
// counts by: "ip:203.0.113.7", "user:alice", "header:X-Tenant:acme". It is false,
// and nothing is appended, if the request lacks a part of the rule's key, so that
// the rule does not apply.
//
// Requests that differ in any part differ in identity, whatever bytes a client puts
// into them. The parts of a composed key are joined by "|"; in values, "|" and "\"
// have a "\" before them. IPv6 addresses are masked, as in "ip:2001:db8::/64". API
// keys, cookies, query parameters, and headers and attributes whose name sounds secret,
// are hashed; see [HashAPIKey]. So is, marked by "\sha256:", a value of more than 256
// bytes, and an identity that would be longer than weir.MaxKeyLen. It allocates nothing but room in dst.
func (c *Compiled) Identity(dst []byte, req *Request) ([]byte, bool) {
	begin := len(dst)
	for i := range c.key {
		if i > 0 {
			dst = append(dst, '|')
		}
		var ok bool
		if dst, ok = c.key[i].append(dst, req); !ok {
			return dst[:begin], false
		}
	}
	return bound(dst, begin), true
}

// bound hashes an identity that no store would take.
func bound(dst []byte, begin int) []byte {
	if len(dst)-begin <= weir.MaxKeyLen {
		return dst
	}
	h := sha256.New()
	h.Write([]byte(domain))
	h.Write(dst[begin:])
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return appendHash(append(dst[:begin], '\\'), sum)
}

// part is one of the things that make up an identity.
type part struct {
	source Source
	prefix string // "user:", "header:X-Tenant:"
	secret bool   // always hashed
	bits   int    // of an IPv6 address
}

// append appends the part that a request has, if it has it.
func (p *part) append(dst []byte, req *Request) ([]byte, bool) {
	switch p.source.Kind {
	case IP:
		return p.appendIP(dst, req.IP)
	case Global:
		return append(dst, p.prefix...), true
	}
	value := p.value(req)
	if value == "" {
		return dst, false
	}
	return p.appendValue(dst, value), true
}

// value is what a request has in clear, or "".
func (p *part) value(req *Request) string {
	switch p.source.Kind {
	case User:
		return req.User
	case APIKey:
		return req.APIKey
	case Attribute:
		return req.Attributes[p.source.Name]
	}
	if req.Values == nil {
		return ""
	}
	switch p.source.Kind {
	case Header:
		return req.Values.Header(p.source.Name)
	case Cookie:
		return req.Values.Cookie(p.source.Name)
	case Query:
		return req.Values.Query(p.source.Name)
	}
	return ""
}

// appendValue appends a value so that no other looks like it: a backslash, with
// which a hash of a long one is marked, never stands alone in a short one.
func (p *part) appendValue(dst []byte, value string) []byte {
	dst = append(dst, p.prefix...)
	switch {
	case p.secret:
		return appendHash(dst, hashOf(p.prefix, value))
	case len(value) > maxValue:
		return appendHash(append(dst, '\\'), hashOf(p.prefix, value))
	}
	return appendEscaped(dst, value)
}

func appendEscaped(dst []byte, value string) []byte {
	for i := range len(value) {
		if value[i] == '|' || value[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, value[i])
	}
	return dst
}

// appendIP appends an IPv4 address, also one that comes mapped into IPv6, or the
// prefix of an IPv6 address. Its zone is about this machine, not about the client.
func (p *part) appendIP(dst []byte, ip netip.Addr) ([]byte, bool) {
	if !ip.IsValid() {
		return dst, false
	}
	dst = append(dst, p.prefix...)
	ip = canonicalIP(ip)
	if ip.Is4() || p.bits == ip.BitLen() {
		return ip.AppendTo(dst), true
	}
	network, err := ip.Prefix(p.bits)
	if err != nil {
		return dst, false // Compile has seen to the bits
	}
	return network.AppendTo(dst), true
}

func canonicalIP(ip netip.Addr) netip.Addr {
	return ip.Unmap().WithZone("")
}
