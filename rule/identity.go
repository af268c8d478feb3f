package rule

import (
	"bytes"
	"crypto/sha256"
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/match"
)

// maxValue is the longest value that stands in an identity as it is.
const maxValue = 256

// MaxIdentities is the maximum number of clients for which a request counts under one rule.
const MaxIdentities = 8

// Identity appends the client's identity under the rule, which is the key that a store
// counts by: "ip:203.0.113.7", "user:alice", "header:X-Tenant:acme". If the request
// lacks a part of the rule's key, the rule does not apply: Identity returns false and
// appends nothing. If the request has several values of a part, or the rule counts at several levels, Identity uses the
// first; see [Hit.Identities] for all.
//
// Requests that differ in any part have different identities, whatever bytes a client
// sends. The parts of a composed key are joined by "|"; in values, "|" and "\" are
// escaped with "\". IPv6 addresses are masked, as in "ip:2001:db8::/64". A tier, host,
// method or route is written as the rule names it, as in "route:/users/{id}", and as "*" if
// the rule does not name it, so that clients cannot invent identities. API keys,
// cookies and query parameters are hashed, and so are headers and attributes whose name
// sounds secret; see [HashAPIKey]. A value of more than 256 bytes, or an identity
// longer than weir.MaxKeyLen, is hashed too, and marked by "\sha256:". Identity
// allocates only to grow dst.
func (c *Entry) Identity(dst []byte, req *Request) ([]byte, bool) {
	if len(c.levels) > 0 {
		all, ends, err := Hit{Entry: c}.levelIdentities(dst, nil, req)
		if err != nil || len(ends) == 0 {
			return dst, false
		}
		return all[:ends[0]], true
	}
	var buf [usualParts]span
	dst, ok, _ := Hit{Entry: c}.identity(dst, req, c.spans(&buf))
	return dst, ok
}

// Identities appends all identities of the request under the rule to dst, one after the
// other, and the end of each to ends. Usually there is one, as Identity returns it, or
// none. A request with several values of a part, such as two cookies of the same name,
// counts as several clients. Servers disagree about which value they use. If weir counted
// only one value, a client could avoid its limit with a new value in each request. If there
// are more than MaxIdentities, the error is a [ValuesError]. It is a [RequestError] if the
// condition of the rule cannot read the request.
func (c Hit) Identities(dst []byte, ends []int, req *Request) ([]byte, []int, error) {
	if c.err != nil {
		return dst, ends, c.err
	}
	if c.MCP != nil && len(req.Batch) > 0 {
		return c.batchIdentities(dst, ends, req)
	}
	var buf [usualParts]span
	at := c.spans(&buf)
	begin, first := len(dst), len(ends)
	if c.Tokens != nil && req.Prompt != nil {
		if most, err := c.tokenUnits(req.Prompt, c.mostOutput(req.Prompt)); most == 0 && err == nil {
			return dst, ends, nil // it uses none of what the rule counts
		}
	}
	if len(c.levels) > 0 {
		return c.levelIdentities(dst, ends, req)
	}
	for n := 1; ; n++ {
		var ok, several bool
		start := len(dst)
		if dst, ok, several = c.identity(dst, req, at); !ok {
			return dst, ends, nil
		}
		if n > 1 && known(dst[begin:], begin, ends[first:]) {
			dst = dst[:start]
		} else {
			ends = append(ends, len(dst))
		}
		if !several {
			return dst, ends, nil
		}
		more := c.advance(req, at)
		switch {
		case more < 0:
			return dst, ends, nil
		case n == MaxIdentities:
			return dst[:begin], ends[:first], &ValuesError{What: c.key[more].describe()}
		}
	}
}

// ValuesError reports a request with too many values of a part of the key, so that it would
// count for too many clients.
type ValuesError struct{ What string } // the part with too many values, as in "header X-Tenant"

func (e *ValuesError) Error() string {
	return "rule: the request has too many values for " + e.What + "; send one"
}

// span is where the values of a part begin and end: the one that is looked at, and
// the one behind it.
type span struct{ from, next int }

// usualParts is how many parts a key has at most, as a rule.
const usualParts = 4

func (c *Entry) spans(buf *[usualParts]span) []span {
	if len(c.key) <= usualParts {
		return buf[:len(c.key)]
	}
	return make([]span, len(c.key))
}

// identity appends the identity by the values at some places. It reports whether the request
// has all parts, and whether it may have several values of one.
func (c Hit) identity(dst []byte, req *Request, at []span) (_ []byte, ok, several bool) {
	begin, key := len(dst), c.key
	for i := range at {
		p, next := &key[i], 0
		if p.texts != nil {
			var name int
			name, next = p.name(req, c.route, at[i].from)
			dst = append(dst, p.texts[name]...)
		} else if dst, next = p.append(dst, req, at[i].from); next == 0 {
			return dst[:begin], false, false
		}
		at[i].next = next
		several = several || next != match.Only
	}
	if len(dst)-begin > weir.MaxKeyLen {
		dst = bound(dst, begin)
	}
	return dst, true, several
}

// advance goes on to the next combination of values, and returns which part has made the
// step; -1 if there is no further combination.
func (c Hit) advance(req *Request, at []span) int {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i].next != match.Only && c.key[i].hasMore(req, at[i].next) {
			at[i].from = at[i].next
			return i
		}
		at[i].from = 0
	}
	return -1
}

// known reports whether the last of some identities, which has no end yet, is there a
// second time.
func known(all []byte, begin int, ends []int) bool {
	if len(ends) == 0 {
		return false
	}
	last := all[ends[len(ends)-1]-begin:]
	start := 0
	for _, end := range ends {
		if bytes.Equal(all[start:end-begin], last) {
			return true
		}
		start = end - begin
	}
	return false
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
	lead   string // the prefix, and a "|" before it behind another part
	secret bool   // always hashed
	host   bool   // it is the header Host, which is not among those of a server

	bits4, bits6 int            // of an address
	match        *match.Rule    // which names hosts, methods and routes
	tiers        map[string]int // where each is among the names
	levels       []part         // of Levels, from the top down
	texts        []string       // of names, ready to be appended; nil for a part that has none
	listed       []string       // values of an attribute, of which others are match.Any; nil if no other is
}

// append appends a part without names that a request has at a place, and returns the place behind
// it: match.Only if there is nothing behind it, 0 if the request does not have the part.
func (p *part) append(dst []byte, req *Request, from int) ([]byte, int) {
	dst = append(dst, p.lead...)
	switch p.source.Kind {
	case IP:
		return p.appendAddress(dst, req.IP)
	case Global:
		return dst, match.Only
	}
	value, next := p.value(req, from)
	if next == 0 {
		return dst, 0
	}
	return p.appendBare(dst, value), next
}

// in reports whether a request has the part.
func (p *part) in(req *Request) bool {
	if p.texts != nil {
		return true // at least as match.Any
	}
	if p.levels != nil {
		return slices.ContainsFunc(p.levels, func(level part) bool { return level.in(req) })
	}
	_, next := p.append(nil, req, 0)
	return next != 0
}

// value is what a request has in clear, at a place or behind it, and the place behind
// that.
func (p *part) value(req *Request, from int) (string, int) {
	switch p.source.Kind {
	case User:
		return req.users(from)
	case Level:
		return req.level(p, from)
	case APIKey:
		return several(req.APIKey, req.OtherAPIKeys, from)
	case Attribute:
		value, next := req.level(p, from)
		return p.listedValue(value), next
	}
	if p.host && req.Host != "" {
		return OneValue(match.CanonicalHost(req.Host), from)
	}
	if req.Values == nil {
		return "", 0
	}
	switch p.source.Kind {
	case Header:
		return req.Values.Header(p.source.Name, from)
	case Cookie:
		return req.Values.Cookie(p.source.Name, from)
	case Query:
		return req.Values.Query(p.source.Name, from)
	}
	return "", 0
}

// listedValue is the value of an attribute as the rule names it, if it names some.
func (p *part) listedValue(value string) string {
	if value != "" && p.listed != nil && !slices.Contains(p.listed, value) {
		return match.Any
	}
	return value
}

// hasMore reports whether a request has another value behind a place.
func (p *part) hasMore(req *Request, from int) bool {
	var next int
	if p.source.Kind == Route {
		_, next = p.match.Route(req.Path, from)
	} else {
		_, next = p.value(req, from)
	}
	return next != 0
}

// several is Listed for a first value and others.
func several(first string, others []string, from int) (string, int) {
	if from == 0 && first != "" {
		if len(others) == 0 {
			return first, match.Only
		}
		return first, 1
	}
	value, next := NextValue(others, max(from, 1)-1)
	if next > 0 {
		next++
	}
	return value, next
}

// appendValue appends a part with a value.
func (p *part) appendValue(dst []byte, value string) []byte {
	return p.appendBare(append(dst, p.prefix...), value)
}

// appendBare appends a value so that no other looks like it: a backslash, with
// which a hash of a long one is marked, never stands alone in a short one.
func (p *part) appendBare(dst []byte, value string) []byte {
	switch {
	case p.secret:
		return appendHash(dst, hashOf(p.prefix, value))
	case len(value) > maxValue:
		return appendHash(append(dst, '\\'), hashOf(p.prefix, value))
	}
	return appendEscaped(dst, value)
}

func appendEscaped(dst []byte, value string) []byte {
	if strings.IndexByte(value, '|') < 0 && strings.IndexByte(value, '\\') < 0 {
		return append(dst, value...)
	}
	for i := range len(value) {
		if value[i] == '|' || value[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, value[i])
	}
	return dst
}

// appendAddress appends an address, or its prefix. An IPv4 address may come mapped into IPv6.
// A zone is about this machine, not about the client.
func (p *part) appendAddress(dst []byte, ip netip.Addr) ([]byte, int) {
	if !ip.IsValid() {
		return dst, 0
	}
	if !ip.Is4() {
		ip = canonicalIP(ip)
	}
	bits := p.bitsOf(ip)
	if bits == ip.BitLen() {
		return ip.AppendTo(dst), match.Only
	}
	network, err := ip.Prefix(bits)
	if err != nil {
		return dst, 0 // Compile has seen to the bits
	}
	return network.AppendTo(dst), match.Only
}

// bitsOf is how much of an address tells clients apart.
func (p *part) bitsOf(ip netip.Addr) int {
	if ip.Is4() {
		return p.bits4
	}
	return p.bits6
}

func canonicalIP(ip netip.Addr) netip.Addr {
	return ip.Unmap().WithZone("")
}
