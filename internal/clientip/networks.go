package clientip

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sort"
)

// networks are sorted, and none is within another, so that one comparison finds the
// only one that can contain an address: lists of a CDN are long.
type networks []netip.Prefix

func newNetworks(prefixes []netip.Prefix) (networks, error) {
	all := make(networks, 0, len(prefixes))
	for _, p := range prefixes {
		switch {
		case !p.IsValid():
			return nil, fmt.Errorf("%v is no network; write for example 10.0.0.0/8", p)
		case p.Addr().Is4In6() && p.Bits() >= 96:
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if p.Bits() == 0 {
			return nil, fmt.Errorf("%v trusts everybody, and whoever is trusted may name any client; list the networks of your proxies", p)
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
