// Package clientip finds the address of the client that sent a request. It is the
// address of the connection, unless that is a trusted proxy: then it is the address
// that the proxy names, and if that is a trusted proxy, too, the address that this one
// names, and so on. Entries beyond the first address that is not trusted are not read,
// because the client may have forged them.
package clientip

import (
	"cmp"
	"fmt"
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
