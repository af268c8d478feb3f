package gateway

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/middleware/httplimit"
)

// peers tells who is believed about the client, and writes what upstreams are to
// believe.
type peers struct {
	clients  *clientip.Resolver
	networks []netip.Prefix
	header   httplimit.ProxyHeader
}

// forged are headers that upstreams may take for the truth about who the client is or
// what it asked for. Proxies write them, so a client that does is up to something.
// Those that begin with X-Forwarded are not listed.
var forged = map[string]bool{
	"forwarded": true, "x-real-ip": true, "client-ip": true, "x-client-ip": true, "true-client-ip": true,
	"x-cluster-client-ip": true, "x-original-forwarded-for": true, "cf-connecting-ip": true,
	"cf-connecting-ipv6": true, "fastly-client-ip": true, "x-envoy-external-address": true,
	"x-original-url": true, "x-original-uri": true, "x-original-host": true, "x-rewrite-url": true,
}

// longestForged is the length of the longest name above.
const longestForged = len("x-original-forwarded-for")

// isForged also knows a name with underscores for dashes, which is the same to
// everything that makes variables of an environment from headers.
func isForged(name string) (is, odd bool) {
	if name == "" || name[0] != 'X' && name[0] != 'F' && name[0] != 'C' && name[0] != 'T' {
		return false, false // names are canonical
	}
	var room [longestForged]byte
	folded := room[:0]
	for i := range min(len(name), longestForged) {
		b := name[i]
		switch {
		case b == '_':
			b, odd = '-', true
		case 'A' <= b && b <= 'Z':
			b += 'a' - 'A'
		}
		folded = append(folded, b)
	}
	if strings.HasPrefix(string(folded), "x-forwarded") {
		return true, odd
	}
	return len(name) <= longestForged && forged[string(folded)], odd
}

// believed reports who holds the connection, and whether it is a proxy whose word about
// its client counts. Two headers that name different clients count for nothing.
func (p *peers) believed(in *http.Request) (netip.Addr, bool) {
	peer, _ := p.clients.Client(in.RemoteAddr, nil)
	if !peer.IsValid() {
		return peer, false
	}
	for _, n := range p.networks {
		if n.Contains(peer) {
			_, doubt := p.clients.Client(in.RemoteAddr, in.Header)
			return peer, doubt != clientip.Contradiction
		}
	}
	return peer, false
}

// write says in the headers of a request on its way out who sent it. The values live in
// the room.
func (p *peers) write(in *http.Request, out http.Header, room *[3]string) {
	peer, believed := p.believed(in)
	for name := range out {
		if is, odd := isForged(name); is && (odd || !believed) {
			delete(out, name)
		}
	}
	set := func(i int, name, value string) {
		room[i] = value
		out[name] = room[i : i+1 : i+1]
	}
	if peer.IsValid() {
		value := peer.String()
		if before := in.Header["X-Forwarded-For"]; believed && p.header != httplimit.Forwarded && len(before) > 0 {
			value = strings.Join(before, ", ") + ", " + value
		}
		set(0, "X-Forwarded-For", value)
	}
	if host := in.Header["X-Forwarded-Host"]; believed && len(host) > 0 {
		out["X-Forwarded-Host"] = host
	} else if in.Host != "" {
		set(1, "X-Forwarded-Host", in.Host)
	}
	switch proto := in.Header["X-Forwarded-Proto"]; {
	case believed && len(proto) > 0:
		out["X-Forwarded-Proto"] = proto
	case in.TLS != nil:
		set(2, "X-Forwarded-Proto", "https")
	default:
		set(2, "X-Forwarded-Proto", "http")
	}
	if all := in.Header["Forwarded"]; believed && p.header != httplimit.XForwardedFor && len(all) > 0 {
		out["Forwarded"] = all
	}
}
