package clientip

import (
	"net/netip"
	"strings"
)

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
