package rule

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sort"
)

// list is whom a set exempts or blocks, made ready.
type list struct {
	networks []netip.Prefix // sorted; none within another
	users    map[string]struct{}
	apiKeys  map[string]struct{} // by hash
}

// Exempt reports whether the request is on the exempt list, so that it is neither
// limited nor blocked. If it has several users or API keys, all must be on the list.
func (t *Table) Exempt(req *Request) bool { return t.exempt.contains(req, true) }

// Blocked reports whether the request is on the block list. Check Exempt first. If the
// request has several users or API keys, one on the list is enough.
func (t *Table) Blocked(req *Request) bool { return t.block.contains(req, false) }

func (l List) isEmpty() bool { return len(l.IPs)+len(l.Users)+len(l.APIKeys) == 0 }

func newList(l List) (list, error) {
	out := list{users: map[string]struct{}{}, apiKeys: map[string]struct{}{}}
	for _, network := range l.IPs {
		if !network.IsValid() {
			return list{}, fmt.Errorf("ip: %v is not a network; write for example 10.0.0.0/8", network)
		}
		out.networks = append(out.networks, canonicalNetwork(network))
	}
	out.networks = outermost(out.networks)
	for _, user := range l.Users {
		out.users[user] = struct{}{}
	}
	for _, key := range l.APIKeys {
		if !isHash(key) {
			key = HashAPIKey(key)
		}
		out.apiKeys[key] = struct{}{}
	}
	return out, nil
}

// contains costs no more for a long list than for a short one, but for the depth
// of a binary search among the networks. Of several users or API keys, all must be on
// the list, or any.
func (l *list) contains(req *Request, all bool) bool {
	if len(l.networks) > 0 && req.IP.IsValid() {
		if _, found := l.network(req.IP); found {
			return true
		}
	}
	return len(l.users) > 0 && l.containsSome(User, req.User, req.OtherUsers, all) ||
		len(l.apiKeys) > 0 && l.containsSome(APIKey, req.APIKey, req.OtherAPIKeys, all)
}

func (l *list) containsSome(kind SourceKind, first string, others []string, all bool) bool {
	some := false
	for at := 0; ; {
		var value string
		if value, at = several(first, others, at); at == 0 {
			return some
		}
		if some = l.has(kind, value); some != all {
			return some
		}
	}
}

func (l *list) has(kind SourceKind, value string) (found bool) {
	if kind == User {
		_, found = l.users[value]
		return found
	}
	var room [len(marker) + 2*hashBytes]byte
	_, found = l.apiKeys[string(appendHash(room[:0], hashOf(prefixAPIKey, value)))]
	return found
}

// network finds the one that contains the address. It can only be the last that
// begins at or before it, because none is within another.
func (l *list) network(ip netip.Addr) (netip.Prefix, bool) {
	ip = canonicalIP(ip)
	after := sort.Search(len(l.networks), func(i int) bool { return ip.Less(l.networks[i].Addr()) })
	if after == 0 || !l.networks[after-1].Contains(ip) {
		return netip.Prefix{}, false
	}
	return l.networks[after-1], true
}

// outermost sorts networks and leaves out those within others.
func outermost(networks []netip.Prefix) []netip.Prefix {
	slices.SortFunc(networks, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	kept := networks[:0]
	for _, n := range networks {
		if len(kept) == 0 || !kept[len(kept)-1].Contains(n.Addr()) {
			kept = append(kept, n)
		}
	}
	return kept
}

// canonicalNetwork masks a network, and makes IPv4 of one that is mapped into IPv6.
func canonicalNetwork(n netip.Prefix) netip.Prefix {
	if n.Addr().Is4In6() && n.Bits() >= 96 {
		n = netip.PrefixFrom(n.Addr().Unmap(), n.Bits()-96)
	}
	return n.Masked()
}
